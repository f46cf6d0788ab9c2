"""Least squares."""

from dataclasses import dataclass

from bifactor.arrays import Array, namespace
from bifactor.kernels import pointwise
from bifactor.losses.base import NUMBERS, Loss


@dataclass(frozen=True)
class Squared(Loss):
    """ℓ(z; y) = ½|z − y|², for real or complex measurements. L = 1."""

    targets = NUMBERS
    least = 0.0
    quadratic = True
    pointwise = staticmethod(pointwise.squared)

    @property
    def smoothness(self) -> float:
        return 1.0

    def value(self, z: Array, y: Array) -> Array:
        return 0.5 * namespace(z, y).abs(z - y) ** 2

    def gradient(self, z: Array, y: Array) -> Array:
        return z - y

    def curvature(self, z: Array, y: Array) -> Array:
        xp = namespace(z, y)
        return xp.ones_like(xp.abs(z - y))

    def mean(self, z: Array) -> Array:
        return z
