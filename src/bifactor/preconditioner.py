"""The gradient seen through the curvature of f in each factor.

In U, f has a Gauss-Newton matrix with the block Σⱼ wᵢⱼ vⱼvⱼᴴ for row i. Where rows and columns are alike that is about
scale·VᴴV for every row. Where entries are observed unevenly it is about the row's share of the curvature times the mean
of vⱼvⱼᴴ over what is observed. Dividing by these blocks makes the iteration blind to the condition number of X
(Tong, Ma and Chi, 2021), and to the factorisation: (UR, VR⁻ᴴ) gives the same X.
"""

import numpy as np

from bifactor.arrays import Array, epsilon, herm
from bifactor.factors import Factors
from bifactor.kernels.blas import gram, matmul
from bifactor.kernels.memory import empty
from bifactor.objective import Objective


def preconditioned(problem: Objective, x: Factors, g: Factors, damping: float) -> Factors:
    """A gradient at x, each row divided by its block of curvature.

    `damping` is added to the eigenvalues of VᴴV and UᴴU, where zero ones would otherwise be blown up.
    """
    rows, cols = problem.marginals or (None, None)
    marginals, ridges = ((rows, cols), (cols, rows)), problem.curvature_of_terms

    def divide(side: int, gradient: Array, other: Array) -> Array:
        return _divided(gradient, other, *marginals[side], problem.scale, damping, ridges[side])

    return g.divided(x, divide)


def _divided(
    gradient: Array, other: Array, own: Array | None, across: Array | None, scale: float, damping: float, ridge: float
) -> Array:
    if own is None or across is None:
        values, Q = np.linalg.eigh(gram(other, other))
        block = scale * _lifted(values, damping) + ridge
        return matmul(gradient, (Q / block.astype(values.dtype)) @ herm(Q))
    real = np.finfo(other.dtype).dtype
    share = (across / across.sum()).astype(real)[:, None]
    values, Q = np.linalg.eigh(gram(other, np.multiply(share, other, out=empty(other.shape, other.dtype))))
    row = np.where(own > 0, own, own.mean()).astype(real)[:, None]
    blocks = np.multiply(row, _lifted(values, damping).astype(real), out=empty(gradient.shape, real))
    blocks += real.type(ridge)
    turned = matmul(gradient, Q)
    turned /= blocks
    return matmul(turned, herm(Q))


def _lifted(values: Array, damping: float) -> Array:
    """Eigenvalues, kept away from zero."""
    top = max(float(values[-1]), 0.0)
    floor = max(10 * len(values) * epsilon(values) * top, 1e6 * float(np.finfo(values.dtype).tiny))
    return np.maximum(values.astype(np.float64), 0.0) + damping + floor
