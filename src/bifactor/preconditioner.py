"""The gradient seen through the curvature of f in each factor.

In U, f has a Gauss-Newton matrix with the block Σⱼ wᵢⱼ vⱼvⱼᴴ for row i. Where rows and columns are alike that is about
scale·VᴴV for every row. Where entries are observed unevenly it is about the row's share of the curvature times the mean
of vⱼvⱼᴴ over what is observed. Dividing by these blocks makes the iteration blind to the condition number of X
(Tong, Ma and Chi, 2021), and to the factorisation: (UR, VR⁻ᴴ) gives the same X.
"""

import numpy as np

from bifactor.arrays import Array, epsilon, herm
from bifactor.kernels.blas import gram, matmul
from bifactor.kernels.memory import empty
from bifactor.objective import Objective
from bifactor.offsets import free
from bifactor.state import State


def preconditioned(problem: Objective, state: State, damping: float, psd: bool) -> tuple[Array, Array]:
    """The gradient of the state, each row divided by its block of curvature.

    `damping` is added to the eigenvalues of VᴴV and UᴴU, where zero ones would otherwise be blown up.
    """
    rows, cols = problem.marginals or (None, None)
    left, right = (0.0, 0.0) if problem.penalty is None else problem.penalty.curvature
    settings = problem.scale, damping
    if problem.offsets:
        in_U, in_V = free(state.U.shape[1])
        SU, SV = np.zeros_like(state.dU), np.zeros_like(state.dV)
        SU[:, in_U] = _divided(state.dU[:, in_U], state.V[:, in_U], rows, cols, *settings, left)
        SV[:, in_V] = _divided(state.dV[:, in_V], state.U[:, in_V], cols, rows, *settings, right)
        return SU, SV
    SU = _divided(state.dU, state.V, rows, cols, *settings, left)
    return SU, SU if psd else _divided(state.dV, state.U, cols, rows, *settings, right)


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
