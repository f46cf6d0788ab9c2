"""`SparseTable`: all cells of a table, few of which are stored."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from bifactor._compat import cached_property
from bifactor.arrays import Array


@dataclass(frozen=True, eq=False)
class SparseTable:
    """The values y of all cells of a table: those stored, row by row, and one value for all others.

    Parameters
    ----------
    indptr, cols, y : array
        The stored cells, as in SciPy's csr arrays, with ascending and distinct columns within a row.
    rest : float
        The value of cells that are not stored.
    shape : (int, int)
        The shape of the table.
    rows : array
        A weight for each row; empty for ones.
    own : array
        The weights of stored cells, including those of their rows; 0 leaves a cell out. Empty if they are those of the
        rows.
    """

    indptr: Array
    cols: Array
    y: Array
    rest: float
    shape: tuple[int, int]
    rows: Array
    own: Array

    @property
    def dtype(self) -> Any:
        return self.y.dtype

    @property
    def stored_rows(self) -> Array:
        """The row of each stored cell."""
        return np.repeat(np.arange(self.shape[0]), np.diff(self.indptr))

    @cached_property
    def row_weights(self) -> Array:
        """The weight of each row, also if these are ones."""
        return self.rows if self.rows.size else np.ones(self.shape[0], self.dtype)

    @property
    def weights(self) -> Array:
        """The weight of each stored cell, also if these are ones."""
        return self.own if self.own.size else self.row_weights[self.stored_rows]

    @property
    def total(self) -> float:
        """The sum of the weights of all cells."""
        known = self.own if self.own.size else np.empty(0)
        others = self.shape[1] - np.diff(self.indptr) if known.size else np.full(self.shape[0], self.shape[1])
        return float(np.sum(others * self.row_weights, dtype=np.float64) + np.sum(known, dtype=np.float64))

    @property
    def seen(self) -> int:
        """The number of cells with a weight above 0."""
        rows = np.count_nonzero(self.rows) if self.rows.size else self.shape[0]
        left_out = np.count_nonzero((self.own == 0) & (self.row_weights[self.stored_rows] > 0)) if self.own.size else 0
        return int(rows * self.shape[1] - left_out)

    def at(self, rows: Array, cols: Array) -> tuple[Array, Array]:
        """y and weights of some cells."""
        places, stored = self._places(rows, cols)
        y, weights = np.full(rows.shape, self.rest, self.dtype), self.row_weights[rows]
        y[stored] = self.y[places[stored]]
        if self.own.size:
            weights[stored] = self.own[places[stored]]
        return y, weights

    def without(self, rows: Array, cols: Array) -> "SparseTable":
        """The same with a weight of 0 at some cells, none of which may be repeated."""
        places, stored = self._places(rows, cols)
        weights = np.array(self.weights)
        weights[places[stored]] = 0
        new = ~stored
        row = np.concatenate([self.stored_rows, rows[new]])
        col = np.concatenate([self.cols, cols[new]])
        y = np.concatenate([self.y, np.full(int(new.sum()), self.rest, self.dtype)])
        order = np.lexsort((col, row))
        indptr = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=self.shape[0]))])
        own = np.concatenate([weights, np.zeros(int(new.sum()), self.dtype)])[order]
        return replace(self, indptr=indptr, cols=col[order].astype(self.cols.dtype), y=y[order], own=own)

    def take(self, rows: Array) -> "SparseTable":
        """Some of the rows, by index."""
        lengths = np.diff(self.indptr)[rows]
        indptr = np.concatenate([[0], np.cumsum(lengths)])
        places = np.arange(indptr[-1]) + np.repeat(self.indptr[rows] - indptr[:-1], lengths)
        own, weights = (a[at] if a.size else a for a, at in ((self.own, places), (self.rows, rows)))
        shape = len(rows), self.shape[1]
        return SparseTable(indptr, self.cols[places], self.y[places], self.rest, shape, weights, own)

    def part(self, start: int, stop: int) -> "SparseTable":
        """Some of the rows."""
        low, high = (int(self.indptr[k]) for k in (start, stop))
        return replace(
            self,
            indptr=self.indptr[start : stop + 1] - low,
            cols=self.cols[low:high],
            y=self.y[low:high],
            own=self.own[low:high],
            shape=(stop - start, self.shape[1]),
            rows=self.rows[start:stop],
        )

    def dense(self) -> tuple[Array, Array]:
        """y and weights of all cells, as matrices."""
        at = self.stored_rows, self.cols
        y = np.full(self.shape, self.rest, self.dtype)
        weights = np.repeat(self.row_weights[:, None], self.shape[1], axis=1)
        y[at], weights[at] = self.y, self.weights
        return y, weights

    def _places(self, rows: Array, cols: Array) -> tuple[Array, Array]:
        """The places of cells among those stored, and whether they are stored."""
        n = self.shape[1]
        known, wanted = self.stored_rows * n + self.cols, rows.astype(np.int64) * n + cols
        places = np.searchsorted(known, wanted)
        inside = places < known.size
        stored = np.zeros(wanted.shape, bool)
        stored[inside] = known[places[inside]] == wanted[inside]
        return places, stored


def sparse_table(Y: Any, rest: float, rows: Array | None = None) -> SparseTable:
    """A sheet from an array, where NaN marks a missing cell, or a sparse matrix, whose stored values are finite."""
    if sparse.issparse(Y):
        stored = sparse.csr_array(Y)
        if not stored.has_canonical_format:
            stored = stored.copy()
            stored.sum_duplicates()
        indptr, cols, y = stored.indptr, stored.indices, stored.data
    else:
        kept = rest != Y
        cols = np.nonzero(kept)[1]
        indptr, y = np.concatenate([[0], np.cumsum(kept.sum(axis=1))]), Y[kept]
    weights = np.empty(0, y.dtype) if rows is None else rows.astype(y.dtype)
    found = SparseTable(indptr, cols.astype(np.int32), y, float(rest), Y.shape, weights, np.empty(0, y.dtype))
    holes = np.isnan(y)
    if not holes.any():
        return found
    own = np.where(holes, y.dtype.type(0), found.weights)
    return replace(found, y=np.where(holes, y.dtype.type(rest), y), own=own)


def full_sparse_table(Y: Array, weights: Array) -> SparseTable:
    """A sheet from an array with a weight for each cell: all of them are stored."""
    (m, n), holes = Y.shape, np.isnan(Y).ravel()
    y, own = (np.where(holes, 0, a.ravel()).astype(Y.dtype) for a in (Y, weights))
    # A cell without weight may have any value; that of another one is certainly valid.
    y[own == 0] = y[np.argmax(own > 0)]
    cols = np.tile(np.arange(n, dtype=np.int32), m)
    # The rows have the unit of the cells.
    return SparseTable(np.arange(m + 1) * n, cols, y, float(y[0]), (m, n), own.reshape(m, n).max(axis=1), own)
