"""Features of rows, besides the values of their entries: sparse matrices with one line for each row."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from bifactor._compat import cached_property
from bifactor.arrays import Array
from bifactor.errors import InputError
from bifactor.validation import counted


@dataclass(frozen=True, eq=False)
class Features:
    """Numbers that describe rows, one line for each."""

    matrix: sparse.csr_array

    @classmethod
    def of(cls, given: Any, name: str) -> "Features | None":
        """Features from an array or a sparse matrix; None if it has no nonzero entries."""
        if given is None or isinstance(given, Features):
            return given
        table = given if sparse.issparse(given) else _table(given)
        if table.ndim != 2 or table.dtype.kind not in "biuf":
            raise InputError(f"{name} is not a table of real numbers. Pass one line of features for each row.")
        matrix = sparse.csr_array(table).astype(np.float64)
        if not np.all(np.isfinite(matrix.data)):
            raise InputError(f"{name} has NaN or infinite values. Fill them in, or leave these columns out.")
        matrix.eliminate_zeros()
        return cls(matrix) if matrix.nnz else None

    @cached_property
    def with_ones(self) -> sparse.csr_array:
        """The features followed by a column of ones, so that they need not be centred."""
        return sparse.csr_array(sparse.hstack([self.matrix, np.ones((self.matrix.shape[0], 1))]))

    def require_rows(self, rows: int, name: str) -> None:
        if self.matrix.shape[0] != rows:
            lines = counted(self.matrix.shape[0], "line")
            raise InputError(f"{name} has {lines}, but that side of the data has {rows:,}. Pass one line for each.")


def ones(rows: int) -> sparse.csr_array:
    """A column of ones, for rows without features."""
    return sparse.csr_array(np.ones((rows, 1)))


def pattern(rows: Array, cols: Array, known: Array, shape: tuple[int, int], side: int) -> sparse.csr_array:
    """The columns in which each row is known (`side` 0), or the rows of each column (1), as lines of norm 1.

    An entry counts if `known` is above 0.
    """
    first, second = (cols, rows) if side else (rows, cols)
    used = known > 0
    lengths = np.bincount(first[used], minlength=shape[side])
    values = 1 / np.sqrt(lengths[first[used]])
    return sparse.csr_array((values, (first[used], second[used])), shape=(shape[side], shape[1 - side]))


def _table(given: Any) -> Array:
    try:
        return np.asarray(given)
    except ValueError:  # lines of different lengths
        return np.empty(0)
