"""Sums and multiples of tall arrays, in reused memory if available."""

from collections.abc import Callable

import numpy as np

from bifactor.arrays import Array
from bifactor.kernels.memory import empty

AT_A_TIME = 1 << 22
"""The number of numbers in a temporary array: one for all rows would be as large as a factor."""


ALL = slice(None)


def some_rows(tall: Array) -> list[slice]:
    """Slices of the rows of a tall NumPy array; one slice of all rows for other libraries."""
    if type(tall) is not np.ndarray:
        return [ALL]
    step = max(1, AT_A_TIME // max(tall.shape[1], 1))
    return [slice(start, start + step) for start in range(0, max(len(tall), 1), step)]


def rows_of(tall: Array, rows: slice) -> Array:
    """Some rows; for all rows the array itself, because arrays of other libraries are not sliced."""
    return tall if rows == ALL else tall[rows]


def _alike(a: Array, b: Array) -> bool:
    return type(a) is type(b) is np.ndarray and a.dtype == b.dtype and a.shape == b.shape


def total(a: Array, b: Array) -> Array:
    """a + b."""
    return np.add(a, b, out=empty(a.shape, a.dtype)) if _alike(a, b) else a + b


def difference(a: Array, b: Array) -> Array:
    """a − b."""
    return np.subtract(a, b, out=empty(a.shape, a.dtype)) if _alike(a, b) else a - b


def scaled(number: float, a: Array) -> Array:
    """number·a."""
    return np.multiply(number, a, out=empty(a.shape, a.dtype)) if type(a) is np.ndarray else number * a


def plus(x: Array, a: float, y: Array) -> Array:
    """x + a·y."""
    if not _alike(x, y):
        return x + a * y
    found = scaled(a, y)
    return np.add(x, found, out=found)


def accumulated(a: Array, more: Callable[[slice], Array]) -> Array:
    """a + b, with b computed for some rows at a time; in the memory of a if it can be overwritten."""
    if type(a) is not np.ndarray or not a.flags.writeable:
        return a + more(ALL)
    for rows in some_rows(a):
        np.add(a[rows], more(rows), out=a[rows], casting="no")
    return a


def reversed_onto(a: Array, b: float, c: Array) -> Array:
    """−a + b·c, in the memory of a if possible."""
    if not _alike(a, c):
        return b * c - a
    for rows in some_rows(a):
        np.subtract(b * c[rows], a[rows], out=a[rows])
    return a
