"""Where the observed entries lie in memory.

Entries are kept as coordinates sorted by (tile of columns, row, column). Walking them in that order
touches one row of the long factor at a time and a tile of the short one that stays in cache, which is
what makes the fused pass fast (measured over plain row order: 1.6× at 138,000 × 27,000 with 20 M entries of rank 32,
3× at 1,000,000 × 100,000 with 10 M of rank 10).
"""

from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from bifactor.arrays import Array

TILE = 4096
"""Columns per tile: at rank 32 in double precision a tile of the factor takes 1 MB, a typical L2."""

RUN = 2
"""Tiles must not cut a row's entries into runs shorter than this on average, or they cost more than they save."""


@dataclass(frozen=True, eq=False)
class Layout:
    """Sorted coordinates of an `n_outer` × `n_inner` matrix, `n_outer` ≥ `n_inner`.

    `tiles` holds where each tile starts (and the end). Rows are owned by one thread at a time, the short
    side is accumulated in private copies, so results depend on the number of threads but not on timing.
    """

    outer: Array
    inner: Array
    n_outer: int
    n_inner: int
    tiles: Array
    _spans: dict[int, list[tuple[Array, Array]]] = field(default_factory=dict, repr=False)

    @property
    def size(self) -> int:
        return int(self.outer.size)

    def spans(self, threads: int) -> list[tuple[Array, Array]]:
        """For each thread the (start, stop) of its rows inside every tile, balanced by entries."""
        # Private copies of the short side must cost less than the entries they serve, and not many times the factors.
        most = min(self.size, 4 * (self.n_outer + self.n_inner)) // self.n_inner
        count = max(1, min(threads, most))
        if count not in self._spans:
            self._spans[count] = self._cut(count)
        return self._spans[count]

    def _cut(self, count: int) -> list[tuple[Array, Array]]:
        row_ends = np.cumsum(np.bincount(self.outer, minlength=self.n_outer))
        shares = np.arange(1, count) * self.size // count
        cuts = np.r_[0, np.searchsorted(row_ends, shares, side="right"), self.n_outer]
        edges = np.empty((cuts.size, self.tiles.size - 1), dtype=np.int64)
        for tile, (start, stop) in enumerate(pairwise(self.tiles)):
            edges[:, tile] = start + np.searchsorted(self.outer[start:stop], cuts)
        return list(pairwise(edges))


def arrange(outer: Array, inner: Array, n_outer: int, n_inner: int) -> tuple[Layout, Array | None]:
    """Sort coordinates into a `Layout`; also the permutation, or None where they were sorted already.

    Stable, so entries that repeat a coordinate keep the order they came in.
    """
    index = np.int32 if max(n_outer, n_inner) <= np.iinfo(np.int32).max else np.int64
    outer, inner = outer.astype(index), inner.astype(index)
    per_row = outer.size / max(n_outer, 1)
    n_tiles = int(max(1, min(-(-n_inner // TILE), per_row // RUN)))
    width = -(-n_inner // n_tiles)
    # One sortable key per entry; it fits because tile·n_outer·n_inner < 2⁶³ for any matrix one can hold.
    key = (inner // width).astype(np.int64) * n_outer + outer
    key *= n_inner
    key += inner
    order = None
    if np.any(key[1:] < key[:-1]):
        order = np.argsort(key, kind="stable")
        outer, inner = outer[order], inner[order]
    tile_of = inner // width
    tiles = np.searchsorted(tile_of, np.arange(n_tiles + 1)).astype(np.int64)
    return Layout(outer, inner, n_outer, n_inner, tiles), order
