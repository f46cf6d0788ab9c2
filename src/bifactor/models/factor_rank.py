"""How many factors a table with holes has."""

from typing import Any

import numpy as np

from bifactor.models.factor_analysis import LARGEST_RANK, fit_factors

SEARCHED = 2000
"""Rows, chosen at random, that the number is found from."""


def best_rank(Y: Any, *, seed: int = 0, **settings: Any) -> int:
    """The number of components for which the bound of the evidence is largest, up to 30.

    The bound rises with the number and then falls, so it is enough to compare neighbours. `settings` are those of
    `fit_factors`.
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
