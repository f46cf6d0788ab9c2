"""The nearest matrix in a nuclear-norm ball with bounded entries, by the method of multipliers on dense matrices."""

from dataclasses import dataclass

import numpy as np

from bifactor.arrays import Array, epsilon, norm, thin_svd
from bifactor.problems.state import Value
from bifactor.solvers.parts.shrinkage import ball_threshold

RELAXATION = 1.6
"""The over-relaxation of X₁ (Boyd et al., 2011, section 3.4.3)."""

EVERY, APART, UNTIL = 10, 3.0, 500
"""The penalty μ is doubled or halved every EVERY iterations, up to UNTIL, if the relative sizes of X₁ − X₂ and of the
change of X₂ differ by more than the factor APART (section 3.4.1). In the authors' toolbox, μ starts at 1 and grows by
1.05, with which X stops up to 1e-4 away from the nearest matrix, and farther if B lies far outside (measured against
Dykstra's algorithm)."""

TOL, MOST = 1e-10, 1000
"""Accuracy, relative to X, and the largest number of iterations."""


@dataclass(frozen=True)
class Split(Value, key="spg.split"):
    """X₂ in the ball, and the multiplier of X₁ = X₂ with X₁ in the box: a start for the next projection."""

    X2: Array
    Y: Array


def project(B: Array, radius: float, bound: float, known: Split) -> tuple[Array, Split]:
    """argmin ‖X − B‖_F over ‖X‖_* ≤ radius and |Xᵢⱼ| ≤ bound, always feasible.

    If the nearest matrix in one of the sets is also in the other, it is the solution. Otherwise the result is scaled
    down at the end to satisfy the constraints exactly.

    References
    ----------
    S. Boyd, N. Parikh, E. Chu, B. Peleato and J. Eckstein, Distributed optimization and statistical learning via the
    alternating direction method of multipliers, Found. Trends Mach. Learn. 3 (2011).
    """
    cut = clipped(B, bound)
    if _nuclear(cut) <= radius:
        return cut, Split(cut, 0 * B)
    low = in_ball(B, radius)
    if float(np.max(np.abs(low))) > bound:
        return _alternating(B, radius, bound, known, cut)
    return _inside(low, radius, bound), Split(low, low - B)


def _alternating(B: Array, radius: float, bound: float, known: Split, cut: Array) -> tuple[Array, Split]:
    near = in_ball(cut, radius)
    X2, Y, mu = known.X2, known.Y, max(1.0, norm(B - near) / norm(near))  # Y ends up as large as B − X
    tol = max(TOL, 10 * epsilon(B))
    for count in range(1, MOST + 1):
        X1 = clipped((B + Y + mu * X2) / (1 + mu), bound)
        between = RELAXATION * X1 + (1 - RELAXATION) * X2
        old, X2 = X2, in_ball(between - Y / mu, radius)
        Y = Y - mu * (between - X2)
        size, apart, change = norm(X1), norm(X1 - X2), norm(X2 - old)
        if not max(apart, change) > tol * size:
            break
        if count % EVERY == 0 and count <= UNTIL:
            left, right = apart * norm(Y), mu * change * size
            mu *= 2.0 if left > APART * right else 0.5 if right > APART * left else 1.0
    return _inside((X1 + X2) / 2, radius, bound), Split(X2, Y)


def _inside(X: Array, radius: float, bound: float) -> Array:
    return X / max(1.0, _nuclear(X) / radius, float(np.max(np.abs(X))) / bound)


def clipped(X: Array, bound: float) -> Array:
    """The nearest matrix with entries of modulus ≤ bound."""
    size = np.abs(X)
    return np.where(size > bound, X * (bound / np.where(size > 0, size, 1.0)), X).astype(X.dtype)


def in_ball(X: Array, radius: float) -> Array:
    """The nearest matrix with ‖X‖_* ≤ radius."""
    A, s, Bh = thin_svd(X)
    return (A * np.maximum(s.astype(np.float64) - ball_threshold(s, radius), 0).astype(s.dtype)) @ Bh


def _nuclear(X: Array) -> float:
    return float(np.sum(thin_svd(X)[1]))
