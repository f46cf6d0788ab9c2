"""Singular values lowered or cut off: the projections and proximal maps of methods that work on X itself.

Only the singular pairs that stay are computed, of a matrix known by its products.
"""

from collections.abc import Callable

import numpy as np

from bifactor.arrays import Array, epsilon, herm, thin_svd
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
    lowered = s.astype(np.float64) - theta  # a θ of nearly s itself leaves nothing right in single precision
    stay = lowered > 0
    return A[:, stay], lowered[stay].astype(s.dtype), B[:, stay]


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


def blend(U: Array, V: Array, P: Array, Q: Array, t: float, limit: int) -> tuple[Array, Array, bool]:
    """Factors of (1 − t)UVᴴ + tPQᴴ with no more than `limit` columns, and whether they are exact.

    Where there would be more, the singular values beyond are left out: the nearest such matrix, of no larger norm.
    """
    psd = V is U and Q is P
    if t == 1 or not U.any():
        left = t**0.5 * P
        return left, left if psd else t**0.5 * Q, True
    left = np.hstack([(1 - t) ** 0.5 * U, t**0.5 * P])
    right = left if psd else np.hstack([(1 - t) ** 0.5 * V, t**0.5 * Q])
    if left.shape[1] <= limit:
        return left, right, True
    A, s, B = triplets(left, right)
    exact = not np.any(s[limit:] > s.size * epsilon(s) * s[0])
    return *factors(A[:, :limit], s[:limit], B[:, :limit], psd), exact


def triplets(U: Array, V: Array) -> tuple[Array, Array, Array]:
    """The singular triplets (A, s, B) of UVᴴ, through small matrices only."""
    QU, RU = np.linalg.qr(U)
    QV, RV = (QU, RU) if V is U else np.linalg.qr(V)
    left, s, right = thin_svd(RU @ herm(RV))
    return QU @ left, s, QV @ herm(right)
