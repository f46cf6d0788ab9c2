"""Functions that `math` has too, written here so that compiled loops over them use SIMD.

In plain Python they are those of `math`. `elementary_numba` has the compiled forms, twenty times as fast as calls of
the C library in single precision (0.2 ns for an exponential, against 4.4).
"""

import math


def exp(x: float) -> float:
    """eˣ for x ≤ 700, or 88 in single precision; beyond that a loop has e to that power."""
    return math.exp(x)


def log1p(x: float) -> float:
    """log(1 + x) for 0 ≤ x ≤ 1."""
    return math.log1p(x)


def like(x: float, number: float) -> float:
    """A number in the precision of x: beside single ones, a constant of Python's would make the rest double."""
    return number
