"""Shrinkage of singular values: the projections and proximal maps of methods that work on X itself.

Only the singular pairs that remain are computed, for a matrix given by its products.
"""

from collections.abc import Callable

import numpy as np

from bifactor.arrays import Array, epsilon
from bifactor.factors import Factors, Kind
from bifactor.linear_map import LinearMap

MORE = 5
"""The number of extra pairs beyond those of the start: one below the threshold shows that all have been found."""


def shrink_singular_values(
    kind: Kind,
    M: LinearMap,
    limit: int,
    threshold: Callable[[Array], float],
    tol: float,
    restarts: int,
    start: Factors | None = None,
) -> tuple[Array, Array, Array]:
    """The singular triplets (A, s, B) of M above θ = threshold(singular values), reduced by θ; at most `limit` of them.

    With a constant θ this is the proximal map of θ‖·‖_*, with `ball_threshold` the projection on a ball of that norm;
    if `limit` is below min(m, n), among matrices of rank ≤ `limit`. If X = UUᴴ, among semidefinite matrices.
    """
    rng = np.random.default_rng(0)  # the same each time, so that runs are reproducible
    limit = min(limit, *M.shape)
    count = min(limit, MORE + (0 if start is None else start.width))
    while True:
        A, s, B = kind.leading(M, count, rng, tol, restarts, start=start)
        theta = threshold(s)
        if s[-1] <= theta or count == limit:
            break
        start, count = kind.pair(A, B), min(limit, 2 * count)
    lowered = s.astype(np.float64) - theta  # if θ is close to s, single precision leaves no correct digits
    stay = lowered > 0
    return A[:, stay], lowered[stay].astype(s.dtype), B[:, stay]


def ball_threshold(s: Array, radius: float) -> float:
    """θ ≥ 0 with Σ max(s − θ, 0) = radius for decreasing s; 0 if their sum is already smaller."""
    above = np.maximum(s.astype(np.float64), 0.0)
    thetas = (np.cumsum(above) - radius) / np.arange(1, s.size + 1)
    # The k largest are kept, for the last k whose value is above the θ of the first k.
    k = int(np.flatnonzero(above > thetas)[-1]) if np.any(above > thetas) else 0
    return max(float(thetas[k]), 0.0)


def blend(x: Factors, y: Factors, t: float, limit: int) -> tuple[Factors, bool]:
    """Factors of (1 − t)X + tY with at most `limit` columns, and whether they are exact.

    If there would be more, the smallest singular values are left out: the nearest such matrix, of no larger norm.
    """
    if t == 1 or not x.any():
        return t**0.5 * y, True
    both = ((1 - t) ** 0.5 * x).joined(t**0.5 * y)
    if both.width <= limit:
        return both, True
    A, s, B = both.triplets()
    exact = not np.any(s[limit:] > s.size * epsilon(s) * s[0])
    return x.kind.from_triplets(A[:, :limit], s[:limit], B[:, :limit]), exact
