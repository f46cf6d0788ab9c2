"""Losses of counts: Poisson, negative binomial, and counts whose mean is itself linear in X."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from bifactor.arrays import Array, dtype_of, expit, namespace, to_numpy
from bifactor.kernels import pointwise
from bifactor.losses.base import COUNTS, Loss
from bifactor.validation import settle_positive


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
        return max(float(np.mean(to_numpy(y), dtype=np.float64)), 0.1)

    def saturated(self, y: Array) -> Array:
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


# Counts with a variance larger than that of the Poisson distribution.

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
        mean = max(float(np.mean(to_numpy(y), dtype=np.float64)), 0.1)
        return mean * self.theta / (mean + self.theta)

    def saturated(self, y: Array) -> Array:
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


# Counts whose mean is itself linear in X, as in photon counting and quantum tomography.


@dataclass(frozen=True)
class ExpectedCounts(Loss):
    """ℓ(z; y) = z − y log z for counts y ≥ 0 with mean z > 0 (z for y = 0). No global L.

    Up to a constant, this is the negative log-likelihood of y ~ Poisson(z), with the identity link where `Poisson` has
    the exponential. Below z = `floor` the term −y log z is continued by its second-order expansion at `floor`, and
    below 0 the term z²/(2·floor) is added, so that ℓ is convex, smooth and bounded below for every z: a solver that
    does not keep X positive, as FGD does, can leave the domain without diverging.

    For tomography z_{s,o} = N_s·tr(ρ Π_{s,o}), with N_s shots of setting s and all its outcomes o among the
    measurements. Then the minimiser over ρ ⪰ 0 is the maximum-likelihood state and has unit trace without a constraint:
    Σ_o tr(ρ Π_{s,o}) = tr ρ, so f(tρ) = N·t·tr ρ − N log t + const with N = Σ N_s, least in t where tr(tρ) = 1; and for
    unit trace f is −Σ y log tr(ρ Π) + const, the multinomial likelihood. The same holds at any fixed rank.

    Parameters
    ----------
    floor : float
        A mean count, in the units of z, well below any mean that matters: a thousandth of a count by default. The
        curvature is at most y/floor², which is not a useful bound, so step rules that need L reject this loss: use
        `steps.Backtracking`.

    References
    ----------
    Z. Hradil, Quantum-state estimation, Phys. Rev. A 55 (1997).
    """

    floor: float = 1e-3
    targets = COUNTS
    pointwise = staticmethod(pointwise.expected_counts)

    def __post_init__(self) -> None:
        settle_positive(self, "floor", "Choose one in the units of z, well below one count.")

    @property
    def smoothness(self) -> None:
        return None

    def typical_curvature(self, y: Array) -> float:
        """1/ȳ: ℓ″ = y/z² where z is the mean count."""
        return 1 / max(float(np.mean(to_numpy(y), dtype=np.float64)), self.floor)

    def parameter(self, dtype: Any) -> float:
        return self.floor

    def value(self, z: Array, y: Array) -> Array:
        near, t = self._split(z)
        return z - y * (namespace(z).log(near) + t * (1.0 - 0.5 * t)) + 0.5 * self._below(z) ** 2 / self.floor

    def gradient(self, z: Array, y: Array) -> Array:
        near, t = self._split(z)
        return 1.0 - y * (1.0 - t) / near + self._below(z) / self.floor

    def curvature(self, z: Array, y: Array) -> Array:
        xp = namespace(z)
        return y / self._split(z)[0] ** 2 + xp.where(z < 0, xp.full_like(z, 1 / self.floor), xp.zeros_like(z))

    def mean(self, z: Array) -> Array:
        return z

    @staticmethod
    def _below(z: Array) -> Array:
        """min(z, 0)."""
        xp = namespace(z)
        return xp.minimum(z, xp.zeros_like(z))

    def _split(self, z: Array) -> tuple[Array, Array]:
        """max(z, floor), and the relative distance of z below the floor, min(z − floor, 0)/floor."""
        xp = namespace(z)
        near = xp.maximum(z, xp.full_like(z, self.floor))
        return near, (z - near) / near
