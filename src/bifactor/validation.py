"""The checks that many doors share."""

from numbers import Real
from typing import Any

import numpy as np

from bifactor.arrays import Array
from bifactor.errors import InputError


def require_positive(value: Any, name: str, advice: str) -> None:
    """A finite real number > 0."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) < np.inf:
        raise InputError(f"{name}={value!r} is not a finite number > 0. {advice}")


def require_finite(array: Array, what: str, advice: str) -> None:
    bad = int(array.size - np.count_nonzero(np.isfinite(array)))
    if bad:
        raise InputError(f"{what} holds {bad} NaN or infinite value{'s' if bad > 1 else ''}. {advice}")


def is_count(value: Any, least: int) -> bool:
    """Whether value is an integer ≥ least, of Python's or NumPy's; a bool is not."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool) and int(value) >= least
