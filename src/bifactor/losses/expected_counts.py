"""Counts whose mean is itself linear in X, as in photon counting and quantum tomography."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from bifactor.arrays import Array, host, namespace
from bifactor.kernels import pointwise
from bifactor.losses.base import COUNTS, Loss
from bifactor.validation import settle_positive


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
        return 1 / max(float(np.mean(host(y), dtype=np.float64)), self.floor)

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
