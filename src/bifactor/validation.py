"""Checks of arguments that many functions use."""

from numbers import Real
from typing import Any

import numpy as np

from bifactor.arrays import Array, is_foreign, to_numpy
from bifactor.errors import InputError

# Counts in text and in JSON.


def pluralize(count: int, noun: str) -> str:
    """A number with its noun: 1 entry, 1,200 entries."""
    several = noun.removesuffix("y") + "ies" if noun.endswith("ry") else noun + "s"
    return f"{count:,} {noun if count == 1 else several}"


def whole(number: float) -> int | float:
    """The number, as an int if it is an integer."""
    return int(number) if float(number).is_integer() else float(number)


MIN_SETTING, MAX_SETTING = 1e-100, 1e100
"""Settings beyond these are mistakes: their squares would overflow or underflow."""


def positive(value: Any, name: str, advice: str) -> float:
    """A real number > 0 within range, as a Python float: NumPy scalars would change the precision of arrays."""
    if isinstance(value, bool) or not isinstance(value, Real) or not MIN_SETTING <= float(value) <= MAX_SETTING:
        raise InputError(f"{name}={value!r} is not a finite number > 0. {advice}")
    return float(value)


def settle_positive(settings: Any, name: str, advice: str, optional: bool = False) -> None:
    """Check a field of a frozen dataclass and store it as a Python float; None is kept if it is `optional`."""
    value = getattr(settings, name)
    if value is not None or not optional:
        object.__setattr__(settings, name, positive(value, name, advice))


def weight_vector(values: Any, name: str) -> Array:
    """One weight ≥ 0 for each row, column or component, in double precision."""
    there = to_numpy(values) if is_foreign(values) else values
    w = np.array(there, dtype=np.float64)  # a copy, because the caller may change it later
    if w.ndim != 1 or w.size == 0 or not np.all(np.isfinite(w)) or np.any(w < 0) or not np.any(w > 0):
        raise InputError(f"{name} must be a vector of finite weights ≥ 0, not all zero. Leave it out for ones.")
    return w


def require_weights(weights: Array | None, name: str, size: int, shape: tuple[int, int], owner: str) -> None:
    """Require one weight for each row or column; None stands for ones."""
    if weights is not None and weights.shape != (size,):
        raise InputError(
            f"{owner} has {weights.size} weights in {name}, but X is {shape[0]}×{shape[1]}. Pass one for each."
        )


def require_instance(value: Any, kind: type, name: str) -> None:
    """Require an instance of a class."""
    if not isinstance(value, kind):
        what = f"{'an' if kind.__name__[0] in 'AEIOU' else 'a'} {kind.__name__}"
        raise InputError(f"{name} is {value!r}, not {what}. Pass an instance, not a class or a name.")


def require_flag(value: Any, name: str) -> None:
    """Require True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise InputError(f"{name}={value!r} is not a boolean. Pass True or False.")


def settle_nonnegative(settings: Any, name: str, advice: str) -> None:
    """Check a field of a frozen dataclass that may be zero, and store it as a Python float."""
    value = getattr(settings, name)
    if not is_at_least_zero(value):
        raise InputError(f"{name}={value!r} is not a finite number ≥ 0. {advice}")
    object.__setattr__(settings, name, float(value))


def require_rows(factor: Array, rows: int) -> None:
    """Require a matrix with this many rows; compiled loops do not check bounds, so this is done before them."""
    if factor.ndim != 2 or factor.shape[0] != rows or factor.shape[1] == 0:
        raise InputError(
            f"A factor has shape {tuple(factor.shape)}. Pass a matrix of {pluralize(rows, 'row')} for that side of X."
        )


def require_pair(U: Array, V: Array, shape: tuple[int, int]) -> None:
    """Require two matrices with a product of this shape, for the same reason."""
    require_rows(U, shape[0])
    require_rows(V, shape[1])
    if U.shape[1] != V.shape[1]:
        raise InputError(
            f"Factors with {U.shape[1]} and {V.shape[1]} columns have no product UVᴴ. Pass equal numbers of columns."
        )


def require_measurements(w: Array, size: int) -> None:
    """Require one number per measurement, for the same reason."""
    if tuple(w.shape) != (size,):
        raise InputError(f"w has shape {tuple(w.shape)}, but there are {size:,} measurements. Pass one number each.")


def indices(values: Array, name: str, size: int) -> Array:
    """A vector of integers from 0 to size − 1; `InputError` if it is anything else."""
    index = np.asarray(to_numpy(values) if hasattr(values, "shape") else values)
    if index.size == 0:
        return np.empty(0, dtype=np.int64)
    if index.ndim != 1 or index.dtype.kind not in "iu":
        raise InputError(
            f"{name} is {index.dtype} with {index.ndim} dimension(s). Pass a vector of integers, counted from 0."
        )
    low, high = int(index.min()), int(index.max())
    if low < 0 or high >= size:
        raise InputError(
            f"{name} runs from {low} to {high}, but X has indices 0 to {size - 1} on that side. "
            "Count indices from 0, and check the shape."
        )
    return index


def require_finite(array: Array, what: str, advice: str) -> None:
    """Raise `InputError` with the number of NaN and infinite values, if there are any."""
    bad = int(np.count_nonzero(~np.isfinite(to_numpy(array))))
    if bad:
        raise InputError(f"{what} holds {pluralize(bad, 'NaN or infinite value')}. {advice}")


def is_count(value: Any, least: int) -> bool:
    """Whether value is a Python or NumPy integer ≥ least; a bool is not."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool) and int(value) >= least


def require_seed(seed: Any) -> None:
    if not is_count(seed, 0):
        raise InputError(f"seed={seed!r} is not possible. Pass an integer ≥ 0; the same seed gives the same result.")


def require_rank(rank: Any, shape: tuple[int, int], least: int = 1, also: str = "") -> int:
    """A rank ≥ least that is possible for matrices of this shape; `also` names other values that may be passed."""
    m, n = shape
    if not is_count(rank, least) or int(rank) > min(m, n):
        choice = f"Choose an integer from {least} to {min(m, n)}{also}."
        raise InputError(f"rank={rank!r} is not possible for a {m}×{n} matrix. {choice}")
    return int(rank)


def is_at_least_zero(value: Any) -> bool:
    """Whether value is a finite real number ≥ 0."""
    return isinstance(value, Real) and not isinstance(value, bool) and 0 <= float(value) < np.inf
