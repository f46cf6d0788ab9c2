"""Least squares that outliers cannot dominate."""

from dataclasses import dataclass
from typing import Any

from bifactor.arrays import Array, namespace
from bifactor.kernels import pointwise
from bifactor.losses.base import NUMBERS, Loss
from bifactor.validation import settle_positive


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
