"""Where the observed entries lie in memory.

Entries are kept as coordinates sorted by (tile of columns, row, column). Walking them in that order
touches one row of the long factor at a time and a tile of the short one that stays in cache, which is
what makes the fused pass fast (measured: 1.6× over plain row order at 20 M entries, rank 32).
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bifactor.arrays import Array

TILE = 4096
"""Columns per tile: at rank 32 in double precision a tile of the factor takes 1 MB, a typical L2."""

RUN = 8
"""Tiles must not cut a row's entries into runs shorter than this on average, or they cost more than they save."""


@dataclass(frozen=True)
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

    @property
    def size(self) -> int:
        return int(self.outer.size)

    @cached_property
    def _row_ends(self) -> Array:
        return np.cumsum(np.bincount(self.outer, minlength=self.n_outer))

    def spans(self, threads: int) -> list[tuple[Array, Array]]:
        """For each thread the (start, stop) of its rows inside every tile, balanced by entries."""
        # A private copy of the short side must cost less than the entries it serves.
        count = max(1, min(threads, self.size // max(self.n_inner, 1)))
        shares = np.arange(1, count) * self.size // count
        cuts = np.concatenate(([0], np.searchsorted(self._row_ends, shares, side="right"), [self.n_outer]))
        edges = np.empty((self.tiles.size - 1, cuts.size), dtype=np.int64)
        for tile, (start, stop) in enumerate(zip(self.tiles[:-1], self.tiles[1:], strict=True)):
            edges[tile] = start + np.searchsorted(self.outer[start:stop], cuts)
        return [(np.ascontiguousarray(edges[:, k]), np.ascontiguousarray(edges[:, k + 1])) for k in range(count)]


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
