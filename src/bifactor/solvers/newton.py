"""Truncated Newton, for high accuracy."""

from dataclasses import dataclass, replace

from bifactor.factors import Factors
from bifactor.problems.curve import FactorCurve
from bifactor.problems.memory import run_memory
from bifactor.problems.objective import Objective
from bifactor.problems.state import State, Value
from bifactor.solvers.base import Solver
from bifactor.solvers.preconditioner import LIFT, Curvature, blocks_memory, distance, first_decrement
from bifactor.steps import CurveSearch
from bifactor.steps.line_search import Searched
from bifactor.validation import require_flag

INNER = 200
"""The largest number of inner iterations."""

FORCING = 0.1
"""The largest relative inner residual; it is also at most the square root of the relative gradient norm."""

DAMPING, LEAST_DAMPING, MOST_DAMPING = 0.1, 1e-12, 1e6
"""Levenberg-Marquardt damping in units of the preconditioner: its first value, and its range."""

SHORT = 0.3
"""A step shorter than this shows that the damping was too weak; a longer one, that it was too strong."""


@dataclass(frozen=True)
class Damped(Value, key="newton"):
    """The first gradient norm, the damping, ⟨∇F, S⟩ at the last point, S its Newton step, and the last step length."""

    first: float
    damping: float
    decrement: float
    memory: Searched


@dataclass(frozen=True)
class Newton(Solver[Damped]):
    """Solve (H + μM)(D, E) = −∇F inexactly by preconditioned conjugate gradients, then search along the curve.

    H is never formed. It is applied as J*(ℓ″·J·), J the derivative of the measurements, plus the Hessian of the penalty
    and, with `full`, the term (∇f E, ∇fᴴ D), the curvature of f through the factors. M is block-diagonal: if entries
    are observed, its blocks are exact, one r×r matrix per row and column; otherwise see `parts.preconditioner`. The
    damping is raised if the search along the curve shortens a step, and lowered otherwise. If the full Hessian is
    indefinite, the step is a Gauss-Newton step. The method is local: far from the solution, PCG is cheaper and safer.

    Parameters
    ----------
    full : bool
        Whether to use the full Hessian, which converges quadratically even if the measurements cannot be fitted
        exactly, as with noise and binary data. False gives Gauss-Newton, which is never indefinite and is as good for
        noiseless least squares.

    References
    ----------
    S. G. Nash, A survey of truncated-Newton methods, J. Comput. Appl. Math. 124 (2000). P. Zilber and B. Nadler, GNMR:
    a provable one-line algorithm for low rank matrix recovery, SIAM J. Math. Data Sci. 4 (2022).
    """

    full: bool = True

    def __post_init__(self) -> None:
        require_flag(self.full, "full")

    def peak(self, problem: Objective, rank: int) -> int:
        width = rank + problem.kind.fixed_columns
        return run_memory(problem, rank, pairs=12, lengths=7) + blocks_memory(problem, width)

    def init(self, problem: Objective, x: Factors, rank: int) -> State[Damped]:
        point = problem.evaluate_keeping_z(x)
        return State(point, Damped(point.gradient.norm(), DAMPING, first_decrement(problem, point), Searched()))

    def step(self, problem: Objective, state: State[Damped]) -> State[Damped]:
        point, own = state.point, state.own
        tol = min(FORCING, (point.gradient.norm() / max(own.first, 1e-300)) ** 0.5)
        lift = LIFT * distance(problem, own.decrement)
        d = Curvature(problem, point, own.damping, True, lift).solve(tol, INNER) if self.full else None
        if d is None:
            d = Curvature(problem, point, own.damping, False, lift).solve(tol, INNER)
        if d is None:  # only rounding can make Gauss-Newton fail
            d = -point.gradient
        taken = CurveSearch().next(FactorCurve(problem, point, d), own.memory)
        if taken.phase.at_rest:
            return replace(state, phase=taken.phase)
        factor = 0.3 if taken.memory.eta >= SHORT else 3.0
        damping = min(max(own.damping * factor, LEAST_DAMPING), MOST_DAMPING)
        return State(taken.point, Damped(own.first, damping, -point.gradient.inner(d), taken.memory))
