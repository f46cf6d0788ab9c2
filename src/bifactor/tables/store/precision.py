"""The type of values in a block store."""

from typing import Any

import numpy as np

from bifactor.arrays import Array
from bifactor.errors import InputError
from bifactor.kernels.census_reference import ERROR, LEAST, MOST

PRECISE = 1e-6
"""Largest rounding error in single precision, as a share of the range of values."""

SMALLEST, LARGEST = 1e-2, 1e9
"""Least range and largest magnitude of values in single precision: beyond them, precisions of a fit overflow."""


def dtype_name(dtype: Any) -> str | None:
    """The name of a type that a user asks for; raise `InputError` if it is not possible."""
    try:
        name = None if dtype is None else np.dtype(dtype).name
    except (TypeError, ValueError):
        name = ""
    if name not in (None, "float32", "float64"):
        raise InputError(f"dtype={dtype!r} is not possible. Choose float32 or float64.")
    return name


def precision(about: Array) -> str:
    """Single precision, unless its rounding error is too large a share of the range of values, or its range is."""
    spread = about[MOST] - about[LEAST]
    exact = about[ERROR] <= PRECISE * spread or (spread == 0 and np.isfinite(about[ERROR]))
    usual = spread == 0 or (spread >= SMALLEST and max(about[MOST], -about[LEAST]) <= LARGEST)
    return "float32" if exact and usual else "float64"
