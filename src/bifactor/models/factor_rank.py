"""Number of factors of a table with missing entries."""

from typing import Any

import numpy as np

from bifactor.models.factor_analysis import LARGEST_RANK, fit_factors

SEARCHED = 2000
"""Largest number of rows used, chosen at random."""


def best_rank(Y: Any, *, seed: int = 0, **settings: Any) -> int:
    """The number of components with the largest bound of the evidence, up to 30.

    The bound increases with the number and then decreases, so it is enough to compare neighbours. `settings` are those
    of `fit_factors`.
    """
    if len(Y) > SEARCHED:
        Y = Y[np.sort(np.random.default_rng(seed).choice(len(Y), SEARCHED, replace=False))]
    bounds: dict[int, float] = {}

    def rises(rank: int) -> bool:
        for r in (rank, rank + 1):
            if r not in bounds:
                bounds[r] = fit_factors(Y, r, **settings).bound
        return bounds[rank + 1] > bounds[rank]

    known = ~np.isnan(Y)
    low, high = 0, max(0, min(LARGEST_RANK, *(int(np.count_nonzero(known.any(axis=k))) - 1 for k in (0, 1))))
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if rises(middle) else (low, middle)
    return low
