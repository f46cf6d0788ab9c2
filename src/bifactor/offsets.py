"""Offsets of rows and columns: X = b1ᴴ + 1cᴴ + the rest.

They are the first two columns of the factors, U = [1, b, …] and V = [c, 1, …], each half fixed. So every operator, loss
and solver fits them jointly with the rest, and a ridge holds b and c as it holds the other columns.
"""

import numpy as np

from bifactor.arrays import Array

COLUMNS = 2

FIXED_LEFT, FIXED_RIGHT = 0, 1
"""The column of U, and that of V, that is all ones."""


def prepended(U: Array, V: Array) -> tuple[Array, Array]:
    """Factors with the two columns in front, b and c at zero."""
    ones, zeros = np.eye(COLUMNS, dtype=U.dtype)
    left, right = (np.tile(row, (F.shape[0], 1)) for row, F in ((ones, U), (zeros, V)))
    return np.hstack([left, U]), np.hstack([right, V])


def held(dU: Array, dV: Array) -> tuple[Array, Array]:
    """A gradient or direction without its parts in the fixed columns."""
    dU, dV = dU.copy(), dV.copy()
    dU[:, FIXED_LEFT] = 0
    dV[:, FIXED_RIGHT] = 0
    return dU, dV


def free(columns: int) -> tuple[Array, Array]:
    """The columns of U and of V that are not fixed."""
    index = np.arange(columns)
    return index[index != FIXED_LEFT], index[index != FIXED_RIGHT]
