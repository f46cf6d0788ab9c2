"""Intervals for means over users."""

from typing import Any

import numpy as np

from bifactor.arrays import Array
from bifactor.errors import InputError
from bifactor.validation import is_count, require_finite, require_seed

DRAWS = 1000
BLOCK = 1 << 22
"""Random numbers drawn at a time."""

FEW = 16
"""Users per distinct value above which it is faster to draw how often each value occurs."""


def interval(values: Any, level: float = 0.95, draws: int = DRAWS, seed: int = 0) -> tuple[float, float]:
    """Percentile bootstrap interval for the mean of `values`, one for each user.

    All users are resampled with replacement `draws` times; the interval contains the share `level` of the means. For
    two models on the same users, pass the differences of their values. (NaN, NaN) if there are no users.
    """
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise InputError(f"values has {array.ndim} dimensions. Pass a vector with one number for each user.")
    require_finite(array, "values", "Leave out users without a value.")
    if isinstance(level, bool) or not isinstance(level, (int, float)) or not 0 < level < 1:
        raise InputError(f"level={level!r} is not between 0 and 1. Choose a share such as 0.95.")
    if not is_count(draws, 1):
        raise InputError(f"draws={draws!r} is not an integer ≥ 1. Choose at least a few hundred.")
    require_seed(seed)
    if array.size == 0:
        return float("nan"), float("nan")
    means = _means(array, int(draws), np.random.default_rng(seed))
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def _means(values: Array, draws: int, rng: np.random.Generator) -> Array:
    """Means of users drawn with replacement."""
    distinct, counts = np.unique(values, return_counts=True)
    few = distinct.size * FEW <= values.size
    means, step = np.empty(draws), max(1, BLOCK // (distinct.size if few else values.size))
    for first in range(0, draws, step):
        count = min(step, draws - first)
        if few:  # the same distribution: draw the number of users with each value
            drawn = rng.multinomial(values.size, counts / values.size, size=count)
            means[first : first + count] = drawn @ distinct / values.size
        else:
            users = rng.integers(0, values.size, (count, values.size), dtype=np.int32)
            means[first : first + count] = values[users].mean(axis=1)
    return means
