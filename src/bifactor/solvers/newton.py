"""Truncated Newton: the tool for high accuracy."""

from dataclasses import dataclass, replace

import numpy as np

from bifactor.arrays import Array, pair_norm
from bifactor.objective import Objective
from bifactor.path import Path, measured_at
from bifactor.solvers.base import Solver
from bifactor.solvers.curvature import Curvature
from bifactor.state import State
from bifactor.steps import CurveSearch
from bifactor.validation import require_flag

INNER = 200
"""Inner iterations at most."""

FORCING = 0.1
"""The inner residual, relative to the gradient, is asked to be below this and below the root of what is left to do."""

DAMPING, LEAST_DAMPING, MOST_DAMPING = 0.1, 1e-12, 1e6
"""Levenberg-Marquardt damping in units of the preconditioner: its first value, and its range."""

SHORT = 0.3
"""A step shorter than this says that the model was trusted too far; a long one, that it was damped too much."""


@dataclass(frozen=True)
class Newton(Solver):
    """Solves (H + μM)(D, E) = −∇F inexactly by preconditioned conjugate gradients, then searches along the curve.

    Nothing is formed: H is applied as J*(ℓ″·J·), J the derivative of the measurements, plus the penalty's Hessian and,
    with `full`, the term (∇f E, ∇fᴴ D) by which f curves through the factors. M is block-diagonal: where entries are
    observed its blocks are exact, one r×r matrix per row and column, else see `bifactor.preconditioner`. The damping
    rises where the search along the curve cuts a step short, else falls. Where the whole Hessian turns out to be
    indefinite, that step is Gauss-Newton's. It is a local tool: far from the solution PCG is cheaper and surer.

    Parameters
    ----------
    full : bool
        The whole Hessian: quadratic convergence also where the measurements cannot be fitted exactly, as with noise
        and binary data. False gives Gauss-Newton, never indefinite, with which noiseless least squares does as well.
    psd : bool
        Find X = UUᴴ.

    References
    ----------
    S. G. Nash, A survey of truncated-Newton methods, J. Comput. Appl. Math. 124 (2000). P. Zilber and B. Nadler, GNMR:
    a provable one-line algorithm for low rank matrix recovery, SIAM J. Math. Data Sci. 4 (2022).
    """

    full: bool = True
    psd: bool = False

    def __post_init__(self) -> None:
        require_flag(self.full, "full")
        require_flag(self.psd, "psd")

    def init(self, problem: Objective, U: Array, V: Array) -> State:
        state = measured_at(problem, U, V, self.psd)
        first = np.array(pair_norm(state.dU, state.dV))
        return replace(state, memory=1.0, extra={**state.extra, "first": first, "damping": np.array(DAMPING)})

    def step(self, problem: Objective, state: State) -> State:
        damping, first = float(state.extra["damping"]), float(state.extra["first"])
        left = pair_norm(state.dU, state.dV) / max(first, 1e-300)
        tol = min(FORCING, left**0.5)
        direction = Curvature(problem, state, damping, True, self.psd).solve(tol, INNER) if self.full else None
        if direction is None:
            direction = Curvature(problem, state, damping, False, self.psd).solve(tol, INNER)
        D, E = direction or (-state.dU, -state.dV)  # rounding alone can make Gauss-Newton fail
        new = CurveSearch().next(Path(problem, state, D, E, psd=self.psd))
        if new.stalled is not None:
            return new
        damping = min(max(damping * (0.3 if new.memory >= SHORT else 3.0), LEAST_DAMPING), MOST_DAMPING)
        return replace(new, extra={**new.extra, "first": state.extra["first"], "damping": np.array(damping)})
