"""Distances of a result from the truth."""

import numpy as np

from bifactor.arrays import Array, herm, hstack, product_norm, thin_svd, triangular
from bifactor.errors import InputError
from bifactor.factors import Free


def distance(U: Array, V: Array, U_star: Array, V_star: Array) -> float:
    """DIST(U, V; X*) = min over unitary R of ‖[U; V] − [U*; V*] R‖_F, with X* = U*V*ᴴ.

    This is the paper's distance between a pair of factors and the balanced factorisations of X*. (U*, V*) may be any
    factorisation of X* with as many columns as U; it is balanced here. The minimiser R is that of the orthogonal
    Procrustes problem.
    """
    if U.shape != U_star.shape or V.shape != V_star.shape:
        raise InputError(
            f"The factors have shapes {U.shape}, {V.shape} and {U_star.shape}, {V_star.shape}. Pass equal shapes."
        )
    U_star, V_star = balanced(U_star, V_star)
    left, _, right = thin_svd(herm(U_star) @ U + herm(V_star) @ V)
    R = left @ right
    return float(np.hypot(np.linalg.norm(U - U_star @ R), np.linalg.norm(V - V_star @ R)))


def balanced(U: Array, V: Array) -> tuple[Array, Array]:
    """Balanced factors of the same UVᴴ, A Σ^½ and B Σ^½, using r×r matrices only."""
    x = Free().pair(U, V).balanced()
    return x.left, x.right


def triplets(U: Array, V: Array) -> tuple[Array, Array, Array]:
    """The singular triplets (A, s, B) of UVᴴ, using small matrices only."""
    return Free().pair(U, V).triplets()


def nuclear_norm(U: Array, V: Array) -> float:
    """‖UVᴴ‖_*, the sum of the singular values, using r×r matrices only."""
    R = triangular(U) @ herm(triangular(V))
    return float(np.sum(np.linalg.svd(R, compute_uv=False)))


def relative_error(U: Array, V: Array, U_star: Array, V_star: Array) -> float:
    """‖UVᴴ − U*V*ᴴ‖_F/‖U*V*ᴴ‖_F, without forming either matrix."""
    size = product_norm(U_star, V_star)
    if size == 0:
        raise InputError("X* is zero, so the relative error is not defined. Compare norms instead.")
    return difference_norm(U, V, U_star, V_star) / size


def difference_norm(A: Array, B: Array, C: Array, D: Array) -> float:
    """‖ABᴴ − CDᴴ‖_F, without forming either matrix."""
    # An orthonormal basis first: Gram matrices of the raw factors would lose half the digits.
    left, right = triangular(hstack(A, C)), triangular(hstack(B, -D))
    return float(np.linalg.norm(left @ herm(right)))
