"""Precisions with a gamma posterior, whose prior has mean 1 and a strength that is fitted."""

from dataclasses import dataclass

import numpy as np
import scipy

from bifactor.arrays import Array
from bifactor.problems.state import Value

STRENGTH, WEAKEST, STRONGEST = 10.0, 0.1, 1e4
"""Measurements that the prior counts for: at first, at least and at most."""


@dataclass(frozen=True)
class Precisions(Value):
    """E[τᵢ] for each row, τᵢ ~ Gamma(t/2, t/2) before the data."""

    mean: Array
    cost: float = 0.0
    """Σ KL(q(τᵢ) ‖ prior) − ½nᵢE[log τᵢ], over the rows with measurements: their part in the negative bound."""
    strength: float = STRENGTH
    """t."""


def fitted_precisions(counts: Array, errors: Array, strength: float, weakest: float = WEAKEST) -> Precisions:
    """The posterior for nᵢ measurements whose expected squares sum to errors[i], and then the strength that fits.

    That is no less than `weakest`.
    """
    seen = counts > 0
    numbers = counts[seen]
    if numbers.size and np.all(numbers == numbers[0]):  # as of single entries, where special functions of each are slow
        numbers = numbers[:1]
    shape, rate = (numbers + strength) / 2, (errors[seen] + strength) / 2
    expected, logarithm = shape / rate, scipy.special.digamma(shape) - np.log(rate)
    half = _half_strength(float(np.mean(logarithm - expected)), weakest) if shape.size else strength / 2
    mean = np.ones(len(counts))
    mean[seen] = expected
    # KL(Gamma(shape, rate) ‖ Gamma(half, half))
    apart = (shape - half) * scipy.special.digamma(shape) - scipy.special.gammaln(shape) + scipy.special.gammaln(half)
    apart = apart + half * np.log(rate / half) + shape * (half - rate) / rate
    return Precisions(mean, float(np.sum(apart - numbers * logarithm / 2)), 2 * half)


def expected_precisions(counts: Array, errors: Array, strength: float) -> Array:
    """The mean of the posterior for a strength that is known; 1 where there is no measurement."""
    return np.where(counts > 0, (counts + strength) / (errors + strength), 1.0)


def _half_strength(mean: float, weakest: float) -> float:
    """argmax over h of h log h − log Γ(h) + h·mean, within its range."""

    def slope(h: float) -> float:
        return float(np.log(h) + 1 - scipy.special.digamma(h) + mean)

    low, high = weakest / 2, STRONGEST / 2
    if slope(high) >= 0:
        return high
    return low if slope(low) <= 0 else float(scipy.optimize.brentq(slope, low, high, rtol=1e-8))
