"""The order of observed entries in memory.

Entries are stored as coordinates sorted by (tile of columns, row, column). A loop in this order uses one row of the
long factor at a time and a tile of the short one that stays in the cache, which makes the fused pass fast (measured
against plain row order: 1.6× at 138,000 × 27,000 with 20 M entries of rank 32, 3× at 1,000,000 × 100,000 with 10 M of
rank 10).
"""

from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import scipy

from bifactor._compat import cached_property
from bifactor.arrays import Array

TILE = 4096
"""Columns per tile: at rank 32 in double precision a tile of the factor takes 1 MB, a typical L2."""

RUN = 2
"""The smallest average number of entries of a row in a tile; with fewer, tiles cost more than they save."""

DENSE, LARGEST = 8, 1 << 20
"""The numbers of entries of a matrix, per known entry and in total, up to which the reference forms it: BLAS computes
eight numbers in the time of gathering rows for one."""

COUNTED = 1 << 20
"""The number of entries that are counted at a time, because counting copies them to larger integers."""


@dataclass(frozen=True, eq=False)
class EntryLayout:
    """Sorted coordinates of an `n_outer` × `n_inner` matrix, `n_outer` ≥ `n_inner`.

    `tiles` holds the start of each tile, and the end. Rows are owned by one thread at a time, and the short side is
    accumulated in private copies, so results depend on the number of threads but not on timing.
    """

    outer: Array
    inner: Array
    n_outer: int
    n_inner: int
    tiles: Array
    given: tuple[Array, Array | None] | None = field(default=None, repr=False)
    """The numbers of entries in each row of both sides, or of the outer side only, if they are known."""
    _spans: dict[int, list[tuple[Array, Array]]] = field(default_factory=dict, repr=False)

    @property
    def size(self) -> int:
        return int(self.outer.size)

    def part(self, chosen: slice) -> "EntryLayout":
        """Some of the entries, in one tile."""
        outer, inner = self.outer[chosen], self.inner[chosen]
        return EntryLayout(outer, inner, self.n_outer, self.n_inner, np.array([0, outer.size]))

    def sums(self, weights: Array | None) -> tuple[Array, Array]:
        """The sums of the weights, or the numbers of entries, over each row of the outer side and of the inner one."""
        if weights is None and self.given is not None and self.given[1] is not None:
            return self.given[0], self.given[1]
        outer, inner = np.zeros(self.n_outer), np.zeros(self.n_inner)
        for start in range(0, self.size, COUNTED):
            part = slice(start, start + COUNTED)
            w = None if weights is None else weights[part]
            outer += np.bincount(self.outer[part], w, self.n_outer)
            inner += np.bincount(self.inner[part], w, self.n_inner)
        return outer, inner

    @cached_property
    def places(self) -> Array | None:
        """The place of each entry in the whole matrix, row by row; None if that is too large to be formed."""
        if self.n_outer * self.n_inner > min(DENSE * self.size, LARGEST):
            return None
        return self.outer.astype(np.intp) * self.n_inner + self.inner

    @cached_property
    def starts(self) -> Array | None:
        """The start of each row of the outer side, and the end; None if tiles divide rows."""
        if np.any(self.outer[1:] < self.outer[:-1]):
            return None
        return np.concatenate([[0], np.cumsum(self.row_counts)]).astype(self.inner.dtype)

    @cached_property
    def counts(self) -> tuple[Array, Array]:
        """The numbers of entries in each row of both sides."""
        return self.sums(None)

    @property
    def row_counts(self) -> Array:
        """The numbers of entries in each row of the outer side alone."""
        return self.counts[0] if self.given is None else self.given[0]

    def spans(self, threads: int) -> list[tuple[Array, Array]]:
        """For each thread, the (start, stop) of its rows in every tile, balanced by entries."""
        # Private copies of the short side must cost less than their entries, and not many times the factors.
        most = min(self.size, 4 * (self.n_outer + self.n_inner)) // self.n_inner
        count = max(1, min(threads, most))
        if count not in self._spans:
            self._spans[count] = self._cut(count)
        return self._spans[count]

    def ranges(self, inner: bool, first: int, last: int, parts: int) -> list[tuple[Array, Array, int, int]]:
        """Rows `first` … `last` of one side in `parts` parts of about equally many entries: (start, stop, from, to).

        Start and stop bound the entries of a part in each tile; on the inner side, others lie among them.
        """
        ends = np.cumsum((self.counts[1] if inner else self.row_counts)[first:last])
        shares = ends[-1] * np.arange(1, parts) / parts if ends.size else np.zeros(0)
        cuts = np.unique(np.r_[first, first + np.searchsorted(ends, shares, side="right"), last])
        if inner:
            return [(self.tiles[:-1], self.tiles[1:], int(low), int(high)) for low, high in pairwise(cuts)]
        edges = self._edges(cuts)
        return [(*edge, int(low), int(high)) for edge, (low, high) in zip(pairwise(edges), pairwise(cuts), strict=True)]

    def _edges(self, cuts: Array) -> Array:
        """The start of the entries of these rows of the outer side in each tile."""
        edges = np.empty((cuts.size, self.tiles.size - 1), dtype=np.int64)
        for tile, (start, stop) in enumerate(pairwise(self.tiles)):
            edges[:, tile] = start + np.searchsorted(self.outer[start:stop], cuts)
        return edges

    def _cut(self, count: int) -> list[tuple[Array, Array]]:
        row_ends = np.cumsum(self.row_counts)
        shares = np.arange(1, count) * self.size // count
        cuts = np.r_[0, np.searchsorted(row_ends, shares, side="right"), self.n_outer]
        return list(pairwise(self._edges(cuts)))


def tiling(size: int, n_outer: int, n_inner: int) -> tuple[int, int]:
    """The number of tiles for this many entries, and their width in columns."""
    n_tiles = int(max(1, min(-(-n_inner // TILE), size / max(n_outer, 1) // RUN)))
    width = -(-n_inner // n_tiles)
    return n_tiles, width


def index_type(n_outer: int, n_inner: int) -> type[np.int32 | np.int64]:
    """The type of coordinates."""
    return np.int32 if max(n_outer, n_inner) <= np.iinfo(np.int32).max else np.int64


def arrange(outer: Array, inner: Array, n_outer: int, n_inner: int) -> tuple[EntryLayout, Array | None]:
    """Sort coordinates into a `EntryLayout`; also return the permutation, or None if they were already sorted.

    The sort is stable, so entries with equal coordinates keep their order.
    """
    index = index_type(n_outer, n_inner)
    outer, inner = outer.astype(index), inner.astype(index)
    n_tiles, width = tiling(outer.size, n_outer, n_inner)
    # One sortable key per entry; it fits because tile·n_outer·n_inner < 2⁶³ for any matrix in memory.
    place = (inner // width).astype(np.int64) * n_outer + outer
    key = place * n_inner + inner
    order = None
    if np.any(key[1:] < key[:-1]):
        places = n_tiles * n_outer
        few = places + n_inner <= 2 * key.size
        order = _counted(place, inner, places, n_inner) if few else np.argsort(key, kind="stable")
        outer, inner = outer[order], inner[order]
    tile_of = inner // width
    tiles = np.searchsorted(tile_of, np.arange(n_tiles + 1)).astype(np.int64)
    return EntryLayout(outer, inner, n_outer, n_inner, tiles), order


def _counted(first: Array, second: Array, n_first: int, n_second: int) -> Array:
    """The order by `first`, then `second`, then place; for few distinct values, counting is faster than sorting."""
    order = _by_counts(second, n_second)
    return order[_by_counts(first[order], n_first)]


def _by_counts(values: Array, count: int) -> Array:
    """The stable order of numbers below `count`, by converting a sparse matrix with one entry per row to columns."""
    rows = scipy.sparse.csr_array(
        (np.ones(values.size, bool), values, np.arange(values.size + 1)), (values.size, count)
    )
    return np.asarray(rows.tocsc().indices)
