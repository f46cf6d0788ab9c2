"""Least squares that outliers cannot dominate."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from bifactor.arrays import Array, namespace, weighted_median
from bifactor.kernels import pointwise
from bifactor.losses.base import NUMBERS, Loss
from bifactor.validation import SMALLEST, settle_positive

EFFICIENT, NORMAL = 1.345, 1.4826
"""δ in standard deviations, and the standard deviation of normal noise in terms of its MAD (Huber and Ronchetti)."""


@dataclass(frozen=True)
class Huber(Loss):
    """ℓ(z; y) = ½|d|² for |d| ≤ δ, δ|d| − ½δ² beyond, with d = z − y. L = 1.

    References
    ----------
    P. J. Huber, Robust estimation of a location parameter, Ann. Math. Statist. 35 (1964).
    """

    delta: float = 1.0
    targets = NUMBERS
    least = 0.0
    pointwise = staticmethod(pointwise.huber)

    def __post_init__(self) -> None:
        settle_positive(self, "delta", "Choose one in the units of z.")

    @property
    def smoothness(self) -> float:
        return 1.0

    def parameter(self, dtype: Any) -> float:
        return self.delta

    @property
    def fitted(self) -> tuple[float, ...]:  # type: ignore[override]
        return (self.delta,)

    def with_fitted(self, fitted: tuple[float, ...]) -> "Huber":
        return Huber(*fitted)

    def refit(self, z: Array, y: Array, weights: Array | None) -> "Huber":
        """δ = 1.345·1.4826·MAD of the residuals: 95 % efficient where the noise is normal.

        If more than half of the residuals are equal, the MAD is 0 and δ is kept.
        """
        residual = np.abs(z - y) if np.iscomplexobj(z) or np.iscomplexobj(y) else z - y
        centre = 0.0 if np.iscomplexobj(z) else weighted_median(residual, weights)
        spread = weighted_median(np.abs(residual - centre), weights)
        return Huber(EFFICIENT * NORMAL * spread) if EFFICIENT * NORMAL * spread > SMALLEST else self

    def value(self, z: Array, y: Array) -> Array:
        xp = namespace(z, y)
        d = xp.abs(z - y)
        near = xp.where(d < self.delta, d, self.delta)
        return near * (d - 0.5 * near)

    def gradient(self, z: Array, y: Array) -> Array:
        xp = namespace(z, y)
        d = z - y
        size = xp.abs(d)
        return d * xp.where(size > self.delta, self.delta / xp.where(size > self.delta, size, 1.0), 1.0)

    def curvature(self, z: Array, y: Array) -> Array:
        xp = namespace(z, y)
        d = xp.abs(z - y)
        return xp.where(d <= self.delta, xp.ones_like(d), xp.zeros_like(d))

    def mean(self, z: Array) -> Array:
        return z
