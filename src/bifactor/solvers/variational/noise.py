"""Precisions with a gamma posterior, whose prior has mean 1 and a fitted strength."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy

from bifactor.arrays import Array
from bifactor.problems.state import Value

STRENGTH, WEAKEST, STRONGEST = 10.0, 0.1, 1e4
"""The number of measurements that the prior is worth: the initial value, and its range."""


@dataclass(frozen=True)
class Precisions(Value, key="variational.precisions"):
    """E[τᵢ] for each row, τᵢ ~ Gamma(t/2, t/2) before the data."""

    mean: Array
    cost: float = 0.0
    """Σ KL(q(τᵢ) ‖ prior) − ½nᵢE[log τᵢ], over the rows with measurements: their part of the negative bound."""
    strength: float = STRENGTH
    """t."""


class PrecisionStats(NamedTuple):
    """Statistics of precisions, for their strength and their part of the bound; those of blocks can be added."""

    constant: float
    """The part of the cost that does not depend on the strength."""
    apart: float
    """Σ E[log τᵢ] − E[τᵢ]."""
    seen: int

    def strength(self, before: float, weakest: float = WEAKEST) -> float:
        """The fitted strength, no less than `weakest`; the previous one without measurements."""
        return 2 * _half_strength(self.apart / self.seen, weakest) if self.seen else before

    def cost(self, strength: float) -> float:
        """The sum of KL(Gamma(shape, rate) ‖ Gamma(h, h)) − ½nE[log τ], where h is half the strength."""
        h = strength / 2
        return float(self.constant - h * self.apart + self.seen * (scipy.special.gammaln(h) - h * np.log(h)))


def fit_precisions(counts: Array, errors: Array, strength: float, weakest: float = WEAKEST) -> Precisions:
    """The posterior for nᵢ measurements whose expected squares sum to errors[i], and then the best strength.

    The strength is no less than `weakest`.
    """
    mean, told = update_precisions(counts, errors, strength)
    strength = told.strength(strength, weakest)
    return Precisions(mean, told.cost(strength), strength)


def update_precisions(counts: Array, errors: Array, strength: float) -> tuple[Array, PrecisionStats]:
    """E[τᵢ] of the posterior for a strength, 1 without measurements; and the statistics for the strength."""
    seen = counts > 0
    numbers = counts[seen]
    if numbers.size and np.all(numbers == numbers[0]):  # as for single entries: one evaluation for all is faster
        numbers = numbers[:1]
    shape, rate = (numbers + strength) / 2, (errors[seen] + strength) / 2
    expected, digamma = shape / rate, scipy.special.digamma(shape)
    logarithm = digamma - np.log(rate)
    mean = np.ones(len(counts))
    mean[seen] = expected
    constant = shape * digamma - scipy.special.gammaln(shape) - shape - numbers * logarithm / 2
    return mean, PrecisionStats(
        float(np.sum(constant)), float(np.sum(logarithm - expected)), int(np.count_nonzero(seen))
    )


def expected_precisions(counts: Array, errors: Array, strength: float) -> Array:
    """The mean of the posterior for a known strength; 1 without measurements."""
    return np.where(counts > 0, (counts + strength) / (errors + strength), 1.0)


def _half_strength(mean: float, weakest: float) -> float:
    """argmax over h of h log h − log Γ(h) + h·mean, within its range."""

    def slope(h: float) -> float:
        return float(np.log(h) + 1 - scipy.special.digamma(h) + mean)

    low, high = weakest / 2, STRONGEST / 2
    if slope(high) >= 0:
        return high
    return low if slope(low) <= 0 else float(scipy.optimize.brentq(slope, low, high, rtol=1e-8))
