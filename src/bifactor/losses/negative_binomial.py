"""Counts with a variance larger than that of the Poisson distribution."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from bifactor.arrays import Array, expit, host, namespace
from bifactor.kernels import pointwise
from bifactor.losses.base import COUNTS, Loss
from bifactor.losses.poisson import Poisson
from bifactor.validation import settle_positive

LOWEST, HIGHEST = 1e-3, 1e6
"""The range of θ in `refit`; above it, the distribution is practically Poisson."""


@dataclass(frozen=True)
class NegativeBinomial(Loss):
    """ℓ(z; y) = (y + θ) log(1 + e^z/θ) − yz for counts y ≥ 0 with mean μ = e^z. No global L.

    Up to a constant, this is the negative log-likelihood of counts with variance μ + μ²/θ, which tends to that of
    `Poisson` as θ grows. The curvature, at most (y + θ)/4, levels off at θ where that of `Poisson` grows with the mean,
    so that a few large counts do not outweigh all others.

    Parameters
    ----------
    theta : float
        The dispersion θ. `solvers.Refitted` fits it to the data.
    """

    theta: float = 10.0
    targets = COUNTS
    pointwise = staticmethod(pointwise.negative_binomial)

    def __post_init__(self) -> None:
        settle_positive(self, "theta", "Choose it such that the variance of a count is μ + μ²/theta.")

    @property
    def smoothness(self) -> None:
        return None

    def typical_curvature(self, y: Array) -> float:
        """μθ/(μ + θ), the mean of ℓ″ at z = log μ, where μ is the mean count."""
        mean = max(float(np.mean(host(y), dtype=np.float64)), 0.1)
        return mean * self.theta / (mean + self.theta)

    def lowest(self, y: Array) -> Array:
        """ℓ at z = log y."""
        return (y + self.theta) * np.log1p(y / self.theta) - scipy.special.xlogy(y, y)

    def parameter(self, dtype: Any) -> float:
        """log θ."""
        return self._shift

    @property
    def fitted(self) -> tuple[float, ...]:  # type: ignore[override]
        return (self.theta,)

    def with_fitted(self, fitted: tuple[float, ...]) -> "NegativeBinomial":
        return NegativeBinomial(*fitted)

    def refit(self, z: Array, y: Array, weights: Array | None) -> "NegativeBinomial":
        """The maximum-likelihood θ."""
        z, y = z.astype(np.float64), y.astype(np.float64)
        w = np.ones_like(y) if weights is None else weights
        some = y > 0

        def cost(log_theta: float) -> float:
            theta = float(np.exp(log_theta))
            gammas = scipy.special.gammaln(y[some] + theta) - scipy.special.gammaln(theta)
            losses = NegativeBinomial(theta).value(z, y)
            return float(np.sum(w * losses) + np.sum(w[some] * (y[some] * log_theta - gammas)))

        found = scipy.optimize.minimize_scalar(cost, bounds=(np.log(LOWEST), np.log(HIGHEST)), method="bounded")
        return NegativeBinomial(float(np.exp(found.x)))

    def value(self, z: Array, y: Array) -> Array:
        xp = namespace(z, y)
        t = z - self._shift
        return (y + self.theta) * xp.logaddexp(xp.zeros_like(t), t) - y * z

    def gradient(self, z: Array, y: Array) -> Array:
        return (y + self.theta) * expit(z - self._shift) - y

    def curvature(self, z: Array, y: Array) -> Array:
        t = z - self._shift
        return (y + self.theta) * expit(t) * expit(-t)

    def mean(self, z: Array) -> Array:
        """e^z, continued for large z as in `Poisson`."""
        return Poisson().mean(z)

    @property
    def _shift(self) -> float:
        return float(np.log(self.theta))
