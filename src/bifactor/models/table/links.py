"""Probabilities of levels from predictions: proportional odds for grades, discriminants for classes."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.special import expit, softmax

from bifactor.arrays import Array

ROUNDS, SMALL = 50, 1e-6
"""Largest number of Newton steps, and the step length that ends them."""

NARROWEST = 1e-8
"""Smallest distance between thresholds."""

SLOPE, HEAVY = 1.0, 1.0
"""Prior mean of the slope, and its weight in observations."""

BLUNT, MILD = 10.0, 3.0
"""Weights, in observations, of the prior of the common covariance of classes, and of the prior of class means."""


@dataclass(frozen=True, eq=False)
class Frequencies:
    """The shares of levels, whatever the predictions are."""

    shares: Array

    def probabilities(self, z: Array) -> Array:
        return np.tile(self.shares, (len(z), 1))


@dataclass(frozen=True, eq=False)
class ProportionalOdds:
    """P(level ≤ k) = σ(θₖ − bz)."""

    thresholds: Array
    slope: float

    @classmethod
    def of(cls, z: Array, y: Array, size: int) -> Self:
        """Fitted to predictions z of cells with levels y, by Newton's method on the convex −log-likelihood."""
        counts = np.bincount(y, minlength=size) + 0.5
        below = np.cumsum(counts)[:-1] / counts.sum()
        theta, b = np.log(below / (1 - below)), SLOPE
        # Half an observation in each level, at z = 0, keeps thresholds apart if a level does not occur.
        z, y = np.append(z, np.zeros(size)), np.append(y, np.arange(size))
        w = np.append(np.ones(len(z) - size), np.full(size, 0.5))
        value = _loss(theta, b, z, y, w)
        for _ in range(ROUNDS):
            step = np.linalg.solve(*_quadratic(theta, b, z, y, w))
            share = 1.0
            while share > 1e-8:
                there, slope = theta - share * step[:-1], b - share * step[-1]
                if np.all(np.diff(there) > NARROWEST) and (found := _loss(there, slope, z, y, w)) <= value:
                    theta, b, value = there, float(slope), found
                    break
                share /= 2
            if share * np.abs(step).max() < SMALL or share <= 1e-8:
                break
        return cls(theta, b)

    def probabilities(self, z: Array) -> Array:
        ends = np.zeros((len(z), 1))
        below = expit(self.thresholds - self.slope * z[:, None])
        return np.diff(np.concatenate([ends, below, ends + 1], axis=1), axis=1)


def _sides(theta: Array, b: float, z: Array, y: Array) -> tuple[Array, Array]:
    """θ above and below each observation, minus bz; ±40 beyond the last threshold."""
    ends = np.concatenate([[-40.0], theta, [40.0]])
    return ends[y + 1] - b * z, ends[y] - b * z


def _loss(theta: Array, b: float, z: Array, y: Array, w: Array) -> float:
    """−log-likelihood: two logistic observations, and the gap between the thresholds."""
    above, below = _sides(theta, b, z, y)
    cells = np.logaddexp(0, -above) + np.logaddexp(0, below) - np.log(-np.expm1(below - above))
    return float(w @ cells) + HEAVY / 2 * (b - SLOPE) ** 2


def _quadratic(theta: Array, b: float, z: Array, y: Array, w: Array) -> tuple[Array, Array]:
    """Hessian and gradient of the loss in (θ, b)."""
    size = len(theta) + 1
    above, below = _sides(theta, b, z, y)
    p, q, gap = expit(above), expit(below), 1 / np.expm1(np.minimum(above - below, 80))
    up, down, bend = w * (p - 1 - gap), w * (q + gap), w * gap * (1 + gap)
    steep_up, steep_down = w * p * (1 - p), w * q * (1 - q)

    def per_threshold(at_upper: Array, at_lower: Array) -> Array:
        both = np.bincount(y + 1, at_upper, size + 1) + np.bincount(y, at_lower, size + 1)
        return both[1:size]

    H = np.diag(np.append(per_threshold(steep_up + bend, steep_down + bend), 0.0))
    inner = np.arange(size - 2)
    H[inner, inner + 1] = H[inner + 1, inner] = -np.bincount(y, bend, size)[1 : size - 1]
    H[:-1, -1] = H[-1, :-1] = -per_threshold(steep_up * z, steep_down * z)
    H[-1, -1] = (steep_up + steep_down) @ z**2 + HEAVY
    slope = -np.sum((up + down) * z) + HEAVY * (b - SLOPE)
    return H + 1e-10 * np.eye(size), np.append(per_threshold(up, down), slope)


@dataclass(frozen=True, eq=False)
class Discriminant:
    """Classes as normal distributions of the predictions with a common covariance, so that log odds are linear."""

    slopes: Array
    offsets: Array

    @classmethod
    def of(cls, Z: Array, y: Array, size: int) -> Self:
        n, width = Z.shape
        counts = np.bincount(y, minlength=size)
        sums = np.zeros((size, width))
        np.add.at(sums, y, Z)
        apart = Z - (sums / np.maximum(counts, 1)[:, None])[y]
        scatter = apart.T @ apart
        blunt = max(float(np.trace(scatter)) / (width * max(n, 1)), 1e-12)
        precision = np.linalg.inv((scatter + BLUNT * blunt * np.eye(width)) / (n + BLUNT))
        means = (sums + MILD * Z.mean(axis=0)) / (counts + MILD)[:, None]
        slopes = means @ precision
        offsets = np.log(counts + 0.5) - 0.5 * np.sum(slopes * means, axis=1)
        return cls(slopes, offsets)

    def probabilities(self, Z: Array) -> Array:
        return softmax(Z @ self.slopes.T + self.offsets, axis=1)
