"""Offsets of rows and columns in a fit with a ridge, on the scale of components.

A component u·v has the unit of z, so u and v have its root. Offsets would have the unit itself, and a ridge common to
both would be right for one unit only. With √s instead of 1 in the fixed columns, for numbers of spread s, they have
the root too, and nothing in a fit depends on the unit of the numbers. For a loss with a link, s is 1.
"""

from typing import TypeVar

import numpy as np

from bifactor.arrays import Array
from bifactor.factors import Factors, Fixed
from bifactor.losses import Loss
from bifactor.losses.base import NUMBERS
from bifactor.penalties import Ridge
from bifactor.problems.objective import Objective, Problem

P = TypeVar("P", bound=Objective)


def offset_scale(problem: Objective, loss: Loss) -> float:
    """s = (2f(0)/Σ wℓ″)^½, for squared errors the standard deviation; 1 if a loss has a link, or if f(0) is 0."""
    if loss.targets is not NUMBERS or not problem.kind.fixed_columns:
        return 1.0
    if isinstance(problem, Problem):
        curvature, weights = problem.f.fit.typical
        total = curvature * (problem.y.shape[0] if weights is None else float(np.sum(weights, dtype=np.float64)))
    else:
        assert problem.f.marginals is not None
        total = float(np.sum(problem.f.marginals[0]))
    found = (2 * problem.f.value(problem.zero(0)) / total) ** 0.5 if total > 0 else 0.0
    return found if np.isfinite(found) and found > 0 else 1.0


def with_scale(problem: P, scale: float) -> P:
    """The problem with √s in its fixed columns; itself if it has none."""
    if not problem.kind.fixed_columns:
        return problem
    m, n = problem.f.measured_shape
    return problem.with_fixed(np.full((m, 1), scale**0.5), np.full((n, 1), scale**0.5))


def root_of(problem: Objective) -> float:
    """√s of a problem with offsets, 1 for others."""
    kind = problem.kind
    return float(kind.L[0, 0]) if isinstance(kind, Fixed) else 1.0


def scale_fixed_columns(problem: Objective, U: Array, V: Array) -> tuple[Array, Array]:
    """Factors with √s in the fixed columns, from those with 1."""
    if not problem.kind.fixed_columns:
        return U, V
    U, V, root = U.copy(), V.copy(), U.dtype.type(root_of(problem))
    U[:, 0], U[:, 1] = U[:, 0] * root, U[:, 1] / root
    V[:, 0], V[:, 1] = V[:, 0] / root, V[:, 1] * root
    return U, V


def unscale_fixed_columns(x: Factors) -> Factors:
    """Factors with 1 in the fixed columns, from those with √s."""
    if not isinstance(x.kind, Fixed):
        return x
    U, V = x.left.copy(), x.right.copy()
    root = U.dtype.type(x.kind.L[0, 0])
    U[:, 0], U[:, 1] = U[:, 0] / root, U[:, 1] * root
    V[:, 0], V[:, 1] = V[:, 0] * root, V[:, 1] / root
    return Fixed(x.kind.L / root, x.kind.R / root).pair(U, V)


def penalty(ridge: float, offset_ridge: float) -> Ridge | None:
    """The ridge of the components, and that of the offsets on their scale; None for no ridge."""
    if ridge == 0:
        return None
    share = offset_ridge / ridge
    return Ridge(ridge, components=None if share == 1 else (share, share, 1.0))
