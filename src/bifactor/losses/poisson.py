"""Counts with the exponential link."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from bifactor.arrays import Array, dtype_of, host, namespace
from bifactor.kernels import pointwise
from bifactor.losses.base import COUNTS, Loss


@dataclass(frozen=True)
class Poisson(Loss):
    """ℓ(z; y) = e^z − yz for counts y ≥ 0 with mean e^z. No global L.

    Up to a constant, this is the negative log-likelihood of y ~ Poisson(e^z). Beyond z = 300 (30 in single precision),
    a rate of 10¹³⁰ (10¹³), the exponential is continued by its second-order expansion, so that no trial step can
    overflow. As its curvature has no useful bound, step rules that need L reject this loss: use `steps.Backtracking`.
    """

    targets = COUNTS
    pointwise = staticmethod(pointwise.poisson)

    @property
    def smoothness(self) -> None:
        return None

    def typical_curvature(self, y: Array) -> float:
        """The mean count: ℓ″ = e^z, the rate."""
        return max(float(np.mean(host(y), dtype=np.float64)), 0.1)

    def lowest(self, y: Array) -> Array:
        """y − y log y, at z = log y."""
        return y - scipy.special.xlogy(y, y)

    def parameter(self, dtype: Any) -> float:
        """The z at which the continuation starts."""
        return 300.0 if np.dtype(dtype).itemsize >= 8 else 30.0

    def value(self, z: Array, y: Array) -> Array:
        rate, t = self._split(z)
        return rate * (1.0 + t * (1.0 + 0.5 * t)) - y * z

    def gradient(self, z: Array, y: Array) -> Array:
        rate, t = self._split(z)
        return rate * (1.0 + t) - y

    def curvature(self, z: Array, y: Array) -> Array:
        return self._split(z)[0]

    def mean(self, z: Array) -> Array:
        rate, t = self._split(z)
        return rate * (1.0 + t)

    def _split(self, z: Array) -> tuple[Array, Array]:
        """e^{min(z, cap)} and (z − cap)₊."""
        xp = namespace(z)
        near = xp.minimum(z, xp.full_like(z, self.parameter(dtype_of(z))))
        return xp.exp(near), z - near
