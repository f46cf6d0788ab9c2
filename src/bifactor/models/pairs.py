"""Pairs of rows and columns with known entries, row by row."""

from dataclasses import dataclass

import numpy as np
import scipy

from bifactor.arrays import Array
from bifactor.tables import Observations


@dataclass(frozen=True, eq=False)
class Pairs:
    """The columns of row i are columns[starts[i]:starts[i + 1]], each once, in order."""

    starts: Array
    columns: Array
    weights: Array | None = None
    """Weight of each pair, in single precision; None if all weights are 1, or are not needed."""

    @classmethod
    def of(cls, data: Observations, weighted: bool = False) -> "Pairs":
        """Pairs of some data, optionally with weights."""
        kept = data.weights if weighted and data.weights is not None else np.ones(data.rows.size, bool)
        # Counting is faster than sorting: a sparse matrix orders them.
        return cls.stored(scipy.sparse.csr_array((kept, (data.rows, data.cols)), shape=data.shape))

    @classmethod
    def stored(cls, matrix: "scipy.sparse.csr_array") -> "Pairs":
        """Pairs of a sparse matrix, whose values are weights."""
        matrix.sum_duplicates()
        weights = None if np.all(matrix.data == 1) else matrix.data.astype(np.float32)
        return cls(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), weights)

    @property
    def size(self) -> int:
        return int(self.columns.size)

    @property
    def counts(self) -> Array:
        """Number of columns of each row."""
        return np.diff(self.starts)

    def fits(self, shape: tuple[int, int]) -> bool:
        """Whether these are valid pairs of a matrix of this shape, which is checked after reading a file."""
        starts, columns = self.starts, self.columns
        integers = starts.dtype.kind == columns.dtype.kind == "i"  # unsigned ones become floats in sums
        if not integers or starts.shape != (shape[0] + 1,) or columns.ndim != 1:
            return False
        if starts[0] != 0 or starts[-1] != columns.size or np.any(starts[1:] < starts[:-1]):
            return False
        weights = np.ones(columns.size) if self.weights is None else self.weights
        if weights.shape != columns.shape or weights.dtype.kind != "f":
            return False
        if not np.all((weights > 0) & (weights < np.inf)):
            return False
        if columns.size == 0:
            return True
        rising = columns[1:] > columns[:-1]
        rising[starts[(starts > 0) & (starts < columns.size)].astype(np.int64) - 1] = True  # separately in each row
        return bool(columns.min() >= 0 and columns.max() < shape[1] and rising.all())

    def known(self, columns: int) -> tuple[Array, Array]:
        """Masks of the rows and of the columns, of the given number, that are in a pair."""
        return np.diff(self.starts) > 0, np.bincount(self.columns, minlength=columns) > 0

    def __getitem__(self, row: int) -> Array:
        return self.columns[self.starts[row] : self.starts[row + 1]]

    def sure(self, row: int) -> Array:
        """Weights of a row."""
        part = slice(self.starts[row], self.starts[row + 1])
        return np.ones(self[row].size) if self.weights is None else self.weights[part].astype(np.float64)

    def with_rows(self, data: Observations, weighted: bool = False) -> "Pairs":
        """The pairs with rows replaced by those of some data, which may have more rows and columns."""
        old = np.repeat(np.arange(self.starts.size - 1), self.counts)
        stay = ~np.isin(old, data.rows)
        rows = np.concatenate([old[stay], data.rows])
        cols = np.concatenate([self.columns[stay], data.cols])
        before = np.ones(self.size) if self.weights is None else self.weights
        after = np.ones(data.rows.size) if data.weights is None else data.weights
        weights = np.concatenate([before[stay], after])
        return Pairs.of(Observations(rows, cols, np.zeros(rows.size), data.shape, weights), weighted)

    def popularity(self, columns: int) -> Array:
        """Number of rows of each column, for this number of columns."""
        return np.bincount(self.columns, minlength=columns)

    def joined(self, other: "Pairs") -> "Pairs":
        """The pairs followed by the rows of others."""
        weights = None
        if self.weights is not None or other.weights is not None:
            both = (np.ones(one.size, np.float32) if one.weights is None else one.weights for one in (self, other))
            weights = np.concatenate(list(both))
        starts = np.concatenate([self.starts, self.starts[-1] + other.starts[1:]])
        return Pairs(starts, np.concatenate([self.columns, other.columns]), weights)

    def counted(self, rows: Array) -> "Pairs":
        """Numbers of columns of some rows, without the columns."""
        return Pairs.of_counts(self.counts[rows])

    @classmethod
    def of_counts(cls, counts: Array) -> "Pairs":
        """Rows with these numbers of columns, without the columns."""
        return cls(np.concatenate([[0], np.cumsum(counts)]), np.empty(0, np.int32))

    def taken(self, rows: Array) -> "Pairs":
        """Pairs of some rows, in this order."""
        counts = self.counts[rows]
        starts = np.concatenate([[0], np.cumsum(counts)])
        places = np.arange(starts[-1]) + np.repeat(self.starts[rows] - starts[:-1], counts)
        return Pairs(starts, self.columns[places], None if self.weights is None else self.weights[places])
