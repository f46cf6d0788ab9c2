"""What is known of rows beside the values of their entries: sparse matrices with one line for each row."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from bifactor.arrays import Array
from bifactor.caching import cached_property
from bifactor.errors import InputError
from bifactor.words import counted


@dataclass(frozen=True, eq=False)
class Features:
    """Numbers that describe rows, one line for each."""

    matrix: sparse.csr_array

    @classmethod
    def of(cls, given: Any, name: str) -> "Features | None":
        """From an array or a sparse matrix; None where nothing is in it."""
        if given is None or isinstance(given, Features):
            return given
        table = given if sparse.issparse(given) else _table(given)
        if table.ndim != 2 or table.dtype.kind not in "biuf":
            raise InputError(f"{name} is not a table of real numbers. Pass one line of features for each row.")
        matrix = sparse.csr_array(table).astype(np.float64)
        if not np.all(np.isfinite(matrix.data)):
            raise InputError(f"Some of {name} are NaN or infinite. Fill them in, or leave these columns out.")
        matrix.eliminate_zeros()
        return cls(matrix) if matrix.nnz else None

    @cached_property
    def with_ones(self) -> sparse.csr_array:
        """With a one for each row behind, so that features need not be around zero."""
        return sparse.csr_array(sparse.hstack([self.matrix, np.ones((self.matrix.shape[0], 1))]))

    def require_rows(self, rows: int, name: str) -> None:
        if self.matrix.shape[0] != rows:
            lines = counted(self.matrix.shape[0], "line")
            raise InputError(f"{name} has {lines}, and there are {rows:,} of what it describes. Pass one for each.")


def ones(rows: int) -> sparse.csr_array:
    """The features of rows of which nothing is known."""
    return sparse.csr_array(np.ones((rows, 1)))


def pattern(rows: Array, cols: Array, known: Array, shape: tuple[int, int], side: int) -> sparse.csr_array:
    """Which columns each row is known in (`side` 0), or which rows each column (1), as lines of length 1.

    An entry counts where `known` is above 0.
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
