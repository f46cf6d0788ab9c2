"""Factors with covariances, turned to where the priors cost least."""

import numpy as np
import scipy

from bifactor.arrays import Array

OFTEN, SELDOM = 10, 5
"""Factors are turned after each of so many first sweeps, and then after every few."""


def is_due(age: int) -> bool:
    """Whether factors are turned in the sweep of this number."""
    return age < OFTEN or age % SELDOM == 0


def best_turn(left: Array, right: Array, shared: tuple[int, int] | None = None) -> Array | None:
    """R for which RᵀPR and R⁻¹QR⁻ᵀ are both diagonal, and alike; P and Q are second moments of the two factors.

    With a precision fitted to each column, the divergence from the priors is ½m·Σ log of the diagonal of P and the same
    of Q, beside what no R changes. By Hadamard's inequality that is least where both are diagonal. None where a column
    has vanished, or there is none.

    Where all columns of a factor share one precision, `shared` are the numbers of rows: see `_shared_scales`.
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
    """s, for moments diag(sizes·s²) of U and diag(sizes/s²) of V, that makes shared priors cost least.

    They cost ½mr·log Σ sizes·s² + ½nr·log Σ sizes/s² − (m − n)·Σ log s, which is convex in log s; where it is least,
    the derivative by R is zero too.
    """
    logs, r = np.log(sizes), sizes.size

    def cost(t: Array) -> tuple[float, Array]:
        parts = logs + t, logs - t
        value = m * r * scipy.special.logsumexp(parts[0]) + n * r * scipy.special.logsumexp(parts[1])
        slope = m * r * scipy.special.softmax(parts[0]) - n * r * scipy.special.softmax(parts[1])
        return (value - (m - n) * np.sum(t)) / (m + n), (slope - (m - n)) / (m + n)

    return np.exp(scipy.optimize.minimize(cost, np.zeros(r), jac=True, method="BFGS").x / 2)
