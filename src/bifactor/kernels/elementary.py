"""Functions of `math`, written such that compiled loops over them use SIMD.

In plain Python they call `math`. `elementary_numba` has the compiled forms, twenty times as fast as calls of the C
library in single precision (0.2 ns for an exponential, instead of 4.4 ns).
"""

import math


def exp(x: float) -> float:
    """eˣ for x ≤ 700, or 88 in single precision; beyond that, compiled loops return e to about that power."""
    return math.exp(x)


def log1p(x: float) -> float:
    """log(1 + x) for 0 ≤ x ≤ 1."""
    return math.log1p(x)


def like(x: float, number: float) -> float:
    """A number in the precision of x: a Python constant would change single precision to double."""
    return number
