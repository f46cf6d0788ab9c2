"""The rotation of factors with covariances that minimises the cost of the priors."""

import numpy as np
import scipy

from bifactor.arrays import Array

OFTEN, SELDOM = 10, 5
"""Factors are rotated after each of the first OFTEN sweeps, and then after every SELDOM sweeps."""


def is_due(age: int) -> bool:
    """Whether factors are rotated in the sweep of this number."""
    return age < OFTEN or age % SELDOM == 0


def best_turn(left: Array, right: Array, shared: tuple[int, int] | None = None) -> Array | None:
    """R such that RᵀPR and R⁻¹QR⁻ᵀ are diagonal and equal; P and Q are the second moments of the two factors.

    With a precision fitted to each column, the divergence from the priors is ½m·Σ log of the diagonal of P and the same
    for Q, up to terms that no R changes. By Hadamard's inequality it is least if both are diagonal. None if a column
    has vanished, or there is none.

    If all columns of a factor share one precision, `shared` are the numbers of rows: see `_shared_scales`.
    """
    if len(left) == 0:
        return None
    try:
        L = np.linalg.cholesky(left)
    except np.linalg.LinAlgError:
        return None
    values, Q = np.linalg.eigh(L.T @ right @ L)
    values, Q = values[::-1], Q[:, ::-1]
    if not values[-1] > 0:
        return None
    sizes = values**0.25
    return np.linalg.solve(L.T, Q) * (sizes if shared is None else sizes * _shared_scales(sizes**2, *shared))


def _shared_scales(sizes: Array, m: int, n: int) -> Array:
    """The s for moments diag(sizes·s²) of U and diag(sizes/s²) of V that minimises the cost of shared priors.

    The cost is ½mr·log Σ sizes·s² + ½nr·log Σ sizes/s² − (m − n)·Σ log s, which is convex in log s; at its minimum, the
    derivative with respect to R is zero, too.
    """
    logs, r = np.log(sizes), sizes.size

    def cost(t: Array) -> tuple[float, Array]:
        parts = logs + t, logs - t
        value = m * r * scipy.special.logsumexp(parts[0]) + n * r * scipy.special.logsumexp(parts[1])
        slope = m * r * scipy.special.softmax(parts[0]) - n * r * scipy.special.softmax(parts[1])
        return (value - (m - n) * np.sum(t)) / (m + n), (slope - (m - n)) / (m + n)

    return np.exp(scipy.optimize.minimize(cost, np.zeros(r), jac=True, method="BFGS").x / 2)
