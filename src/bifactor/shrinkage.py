"""Singular values lowered or cut off: the projections and proximal maps of methods that work on X itself.

Only the singular pairs that stay are computed, of a matrix known by its products.
"""

from collections.abc import Callable

import numpy as np

from bifactor.arrays import Array
from bifactor.linear_map import LinearMap
from bifactor.svd import Pairs, leading

MORE = 5
"""Pairs that are looked for beyond those of the start: what is below the threshold shows that all have been found."""


def shrunk(
    M: LinearMap,
    limit: int,
    threshold: Callable[[Array], float],
    tol: float,
    restarts: int,
    psd: bool = False,
    start: Pairs | None = None,
) -> tuple[Array, Array, Array]:
    """The singular triplets (A, s, B) of M above θ = threshold(singular values), lowered by θ; no more than `limit`.

    A constant θ makes it the proximal map of θ‖·‖_*, `ball_threshold` the projection on a ball of that norm; with fewer
    than all columns allowed, these among matrices of rank ≤ `limit`. With `psd`, among the semidefinite.
    """
    rng = np.random.default_rng(0)  # the same each time, so that runs can be repeated
    limit = min(limit, *M.shape)
    count = min(limit, MORE + (0 if start is None else start[0].shape[1]))
    while True:
        A, s, B = leading(M, count, rng, tol, restarts, psd, start=start)
        theta = threshold(s)
        if s[-1] <= theta or count == limit:
            break
        start, count = (A, B), min(limit, 2 * count)
    stay = s > theta
    return A[:, stay], s[stay] - theta, B[:, stay]


def ball_threshold(s: Array, radius: float) -> float:
    """θ ≥ 0 with Σ max(s − θ, 0) = radius for s that fall, 0 where they sum to less already."""
    above = np.maximum(s.astype(np.float64), 0.0)
    thetas = (np.cumsum(above) - radius) / np.arange(1, s.size + 1)
    # Kept are the k largest, for the last k whose own value is still above the θ of the first k.
    k = int(np.flatnonzero(above > thetas)[-1]) if np.any(above > thetas) else 0
    return max(float(thetas[k]), 0.0)


def factors(A: Array, s: Array, B: Array, psd: bool = False) -> tuple[Array, Array]:
    """Balanced factors of A diag(s) Bᴴ; X = 0 is one column of zeros."""
    if s.size == 0:
        U = np.zeros((A.shape[0], 1), A.dtype)
        return U, U if psd else np.zeros((B.shape[0], 1), B.dtype)
    root = np.sqrt(s).astype(s.dtype)
    U = np.ascontiguousarray(A * root)
    return U, U if psd else np.ascontiguousarray(B * root)
