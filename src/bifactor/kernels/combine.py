"""Sums and multiples of tall arrays, in reused memory if there is some."""

import numpy as np

from bifactor.arrays import Array
from bifactor.kernels.memory import empty


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
