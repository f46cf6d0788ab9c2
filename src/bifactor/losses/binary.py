"""Losses of labels −1 and 1, through the logistic or the normal link."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from bifactor.arrays import Array, expit, namespace, on_host
from bifactor.kernels import pointwise
from bifactor.losses.base import SIGNS, Loss
from bifactor.validation import settle_positive


@dataclass(frozen=True)
class Logistic(Loss):
    """ℓ(z; y) = log(1 + e^{−yz}) for y ∈ {−1, +1}. L = 1/4.

    This is the negative log-likelihood of P(y = 1) = 1/(1 + e^{−z}). `mean` is that probability.
    """

    targets = SIGNS
    least = 0.0
    pointwise = staticmethod(pointwise.logistic)

    @property
    def smoothness(self) -> float:
        return 0.25

    def value(self, z: Array, y: Array) -> Array:
        xp = namespace(z, y)
        return xp.logaddexp(xp.zeros_like(z), -y * z)

    def gradient(self, z: Array, y: Array) -> Array:
        return -y * expit(-y * z)

    def curvature(self, z: Array, y: Array) -> Array:
        return expit(z) * expit(-z)

    def mean(self, z: Array) -> Array:
        return expit(z)


# Binary data through the normal link.


@dataclass(frozen=True)
class Probit(Loss):
    """ℓ(z; y) = −log Φ(yz/σ) for y ∈ {−1, +1}. L = 1/σ².

    This is the negative log-likelihood of y = sign(z + noise), noise ~ N(0, σ²). With u = yz/σ and the hazard
    h = φ(u)/Φ(u): ℓ′ = −(y/σ) h and ℓ″ = h(h + u)/σ², which lies in (0, 1/σ²) and has no
    smaller bound. `mean` is P(y = 1).

    References
    ----------
    M. A. Davenport, Y. Plan, E. van den Berg and M. Wootters, 1-Bit matrix completion, Inf. Inference 3 (2014).
    """

    sigma: float = 1.0
    targets = SIGNS
    least = 0.0
    scales = True
    pointwise = staticmethod(pointwise.probit)

    def __post_init__(self) -> None:
        settle_positive(self, "sigma", "Choose one in the units of z.")

    @property
    def fitted(self) -> tuple[float, ...]:  # type: ignore[override]
        return (self.sigma,)

    def with_fitted(self, fitted: tuple[float, ...]) -> "Probit":
        return Probit(*fitted)

    def refit(self, z: Array, y: Array, weights: Array | None) -> "Probit":
        """The maximum-likelihood σ, within a factor of 10 of the present one; the loss is convex in 1/σ.

        The data determine only z/σ, so σ is meaningful only if something else fixes the scale of z, such as known
        shifts of dithered measurements.
        """
        w = 1.0 if weights is None else weights
        u = (y * z).astype(np.float64)

        def slope(s: float) -> float:  # the derivative of the loss in s = 1/σ
            return float(np.sum(w * u * Probit().gradient(s * u, np.ones_like(u))))

        low, high = 0.1 / self.sigma, 10 / self.sigma
        if not slope(low) < 0:
            return Probit(1 / low)
        return (
            Probit(1 / high)
            if slope(high) <= 0
            else Probit(1 / float(scipy.optimize.brentq(slope, low, high, rtol=1e-8)))
        )

    @property
    def smoothness(self) -> float:
        return 1.0 / self.sigma**2

    def parameter(self, dtype: Any) -> float:
        return self.sigma

    def value(self, z: Array, y: Array) -> Array:
        return -on_host(scipy.special.log_ndtr, y * z / self.sigma)

    def gradient(self, z: Array, y: Array) -> Array:
        return -(y / self.sigma) * on_host(_hazard, y * z / self.sigma)

    def curvature(self, z: Array, y: Array) -> Array:
        return on_host(self._curvature, y * z / self.sigma)

    def _curvature(self, product: Array) -> Array:
        u = np.asarray(product, dtype=np.float64)
        h = _hazard(u)
        # h + u cancels for very negative u, where a series of h(h + u) is used.
        far = 1.0 / np.minimum(u, -50.0) ** 2
        series = 1.0 - far * (1.0 - far * (6.0 - far * 50.0))
        ratio = np.where(u < -50.0, series, h * (h + np.maximum(u, -50.0)))
        return (ratio / self.sigma**2).astype(product.dtype)

    def mean(self, z: Array) -> Array:
        return on_host(scipy.special.ndtr, z / self.sigma)


def _hazard(u: Array) -> Array:
    """φ(u)/Φ(u) without overflow: √(2/π)/erfcx(−u/√2)."""
    return np.sqrt(2.0 / np.pi).astype(u.dtype) / scipy.special.erfcx(-u * np.sqrt(0.5).astype(u.dtype))
