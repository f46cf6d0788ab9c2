"""Factors with covariances, turned to where the priors cost least."""

import numpy as np

from bifactor.arrays import Array
from bifactor.kernels.blocks_reference import chunks, transposed, triangle


def best_turn(left: Array, right: Array) -> Array | None:
    """R for which RᵀPR and R⁻¹QR⁻ᵀ are both diagonal, and alike; P and Q are second moments of the two factors.

    With a precision fitted to each column, the divergence from the priors is ½m·Σ log of the diagonal of P and the same
    of Q, beside what no R changes. By Hadamard's inequality that is least where both are diagonal. None where a column
    has vanished, or there is none.
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
    return np.linalg.solve(L.T, Q) * values**0.25


def turned_covariances(packed: Array, R: Array) -> Array:
    """RᵀCR of each row."""
    rank = len(R)
    first, second = triangle(rank)
    found = np.empty_like(packed)
    for part in chunks(len(packed), rank**2):
        found[part] = (R.T @ transposed(packed[part], rank) @ R)[:, first, second]
    return found
