"""Whether a gradient is small, whatever the units, the start and the steps that led there."""

import numpy as np

from bifactor.problems.objective import Objective
from bifactor.problems.state import Point

SMALL = 1e-3
"""The share of the gradient's size at X = 0 that counts as small. Of 243 runs of six solvers that ended by tol, those
at a stationary point had 2e-5 of it at most, and the four others a twelfth at least."""


def gradient_is_small(problem: Objective, point: Point, first: float) -> bool:
    """‖∇F(x)‖ ≤ SMALL·‖(∇f(0)V, ∇f(0)ᴴU)‖: the data, seen through the factors, pull hardly any more.

    Where f has no gradient at 0, the norm of the `first` gradient is taken instead.
    """
    left = point.gradient.norm()
    if left == 0:
        return True
    pull = _pull(problem, point)
    return left <= SMALL * (pull if np.isfinite(pull) else first)


def _pull(problem: Objective, point: Point) -> float:
    x = point.x
    try:
        return x.gradient(*problem.f.gradient(problem.zero(1)).products(x.left, x.right)).norm()
    except Exception:  # a Function of the user's, at an X that it need not know: no reason to lose the answer
        return np.nan
