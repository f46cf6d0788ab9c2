"""The nearest matrix in a nuclear-norm ball with bounded entries, by the method of multipliers on dense matrices."""

from dataclasses import dataclass

import numpy as np

from bifactor.arrays import Array, epsilon, norm, thin_svd
from bifactor.shrinkage import ball_threshold

PENALTY, GROWTH = 0.998, 1.01
"""The penalty μ at first, and what it is multiplied by. The authors' toolbox has 1.05, which brings X to rest up to
1e-4 away from the nearest matrix (measured against Dykstra's algorithm)."""

TOL, MOST = 1e-10, 1000
"""Accuracy, relative to X, and iterations."""


@dataclass(frozen=True)
class Split:
    """X₂ in the ball, and the multiplier of X₁ = X₂ with X₁ in the box: where the next projection may begin."""

    X2: Array
    Y: Array


def project(B: Array, radius: float, bound: float, known: Split) -> tuple[Array, Split]:
    """argmin ‖X − B‖_F over ‖X‖_* ≤ radius and |Xᵢⱼ| ≤ bound, always inside of both.

    μ starts anew at each call: carried on, as the multipliers are, it would soon hold X where it was. What is left of
    the constraints at the end is taken off by scaling.
    """
    if _nuclear(B) <= radius and float(np.max(np.abs(B))) <= bound:
        return B, known
    X2, Y, mu = known.X2, known.Y, PENALTY
    tol = max(TOL, 10 * epsilon(B))
    for _ in range(MOST):
        X1 = clipped((B + Y + mu * X2) / (1 + mu), bound)
        old, X2 = X2, in_ball(X1 - Y / mu, radius)
        Y = Y - mu * (X1 - X2)
        mu *= GROWTH
        if not max(norm(X1 - X2), norm(X2 - old)) > tol * norm(X1):
            break
    X = (X1 + X2) / 2
    excess = max(1.0, _nuclear(X) / radius, float(np.max(np.abs(X))) / bound)
    return X / excess, Split(X2, Y)


def clipped(X: Array, bound: float) -> Array:
    """The nearest matrix with entries of modulus ≤ bound."""
    size = np.abs(X)
    return np.where(size > bound, X * (bound / np.where(size > 0, size, 1.0)), X).astype(X.dtype)


def in_ball(X: Array, radius: float) -> Array:
    """The nearest matrix with ‖X‖_* ≤ radius."""
    A, s, Bh = thin_svd(X)
    return (A * np.maximum(s - s.dtype.type(ball_threshold(s, radius)), 0)) @ Bh


def _nuclear(X: Array) -> float:
    return float(np.sum(thin_svd(X)[1]))
