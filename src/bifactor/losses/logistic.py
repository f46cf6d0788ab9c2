"""Binary data through the logistic link."""

from dataclasses import dataclass

from bifactor.arrays import Array, expit, namespace
from bifactor.kernels import pointwise
from bifactor.losses.base import SIGNS, Loss


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
