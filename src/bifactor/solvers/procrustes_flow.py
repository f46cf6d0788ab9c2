"""Procrustes Flow: singular value projection for a start, then gradient descent on the factors."""

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from bifactor.arrays import norm
from bifactor.errors import InputError
from bifactor.factors import Factors, Free, Kind, Symmetric
from bifactor.inits import Zero
from bifactor.penalties.balance import BalanceTerm, Frobenius
from bifactor.problems.memory import run_memory
from bifactor.problems.objective import Objective
from bifactor.problems.state import Point, Staged, State, Value
from bifactor.solvers.base import Solver
from bifactor.solvers.requirements import require_plain
from bifactor.solvers.svp import SVP, Limited
from bifactor.steps.base import reciprocal
from bifactor.validation import settle_positive


class Theory(NamedTuple):
    """The constants of Theorems 3.2 and 3.3 of the article, for X = UUᴴ and for X = UVᴴ."""

    mu: float
    """The longest step."""
    near: float
    """The share of σ_r(X) that the residual must reach; for UVᴴ it ensures the radius of convergence, δ ≤ 1/25."""
    slope: float
    first: float
    """⌈slope·ln(√r κ) + first⌉ projections reach it."""


THEORY: dict[type[Kind], Theory] = {
    Free: Theory(mu=2 / 187, near=1 / 10, slope=3, first=5),
    Symmetric: Theory(mu=36 / 425, near=3 / 20, slope=1, first=2),
}

WORST = 1e6
"""The condition number that gives the largest number of projections of the first phase."""


@dataclass(frozen=True)
class Near(Value, key="procrustes_flow.start"):
    """The first phase: singular value projection, and the number of projections so far."""

    projected: State[Limited]
    unit: float
    count: int


@dataclass(frozen=True)
class Flow(Value, key="procrustes_flow"):
    """The second phase: the point with the balance term included, and the two step lengths."""

    at: Point
    unit: float
    eta_U: float
    eta_V: float


@dataclass(frozen=True)
class ProcrustesFlow(Solver[Near | Flow]):
    """Gradient descent on f(UVᴴ) + (unit/16)‖UᴴU − VᴴV‖²_F, with one step length for all iterations:

        U ← U − μ/(unit·‖U₀‖₂²) ∇_U,   V ← V − μ/(unit·‖V₀‖₂²) ∇_V

    (U₀, V₀) is found by singular value projection with step 1/unit, from X = 0: `SVP` is the first phase, and its
    factors are balanced. From any other start there is no first phase, as in the tables of the BFGD paper with random
    starts. The theory is about f = ½‖A(X) − y‖² with an A that preserves norms of matrices of low rank. If A does not,
    the step 1/unit of the first phase is too long, and a projection may increase f; the second phase then begins at the
    X before it (not in the article, where this cannot happen; with few measurements the projections would diverge).

    For X = UUᴴ the article minimises ¼‖A(UUᴴ) − y‖², that is f/2, and its step is U ← U − μ/(unit·‖U₀‖₂²) ∇f(UUᴴ) U
    (an assumption; the true gradient of f(UUᴴ) is twice that).

    Parameters
    ----------
    mu : float, optional
        The step μ. By default the longest of the theory, 2/187, or 36/425 for X = UUᴴ.
    condition : float, optional
        The condition number κ = σ₁/σ_r of the solution. The first phase then takes ⌈3 ln(√r κ) + 5⌉ projections, or
        ⌈ln(√r κ) + 2⌉ for UUᴴ. Without it, the phase ends as soon as √(2(f − least f)/unit) ≤ σ_r(X)/10, or 3σ_r(X)/20
        for UUᴴ, and at the latest after the number of projections for κ = 10⁶; if no least f is known, after that
        number.
    unit : float, optional
        The curvature that counts as 1. By default the typical curvature of f, which makes A preserve norms on average,
        as in the article. The paper of BFGD takes 1 for ‖A‖ = 1.

    Notes
    -----
    ‖·‖₂ is the spectral norm. The BFGD paper prints ‖·‖_F, which does not give the numbers of its tables; this does.

    References
    ----------
    S. Tu, R. Boczar, M. Simchowitz, M. Soltanolkotabi and B. Recht, Low-rank solutions of linear matrix equations via
    Procrustes Flow, ICML 2016.
    """

    mu: float | None = None
    condition: float | None = None
    unit: float | None = None
    start = Zero()

    def __post_init__(self) -> None:
        settle_positive(self, "mu", "Leave it out for the step of the theory.", optional=True)
        settle_positive(self, "condition", "Leave it out if it is not known.", optional=True)
        settle_positive(self, "unit", "Leave it out for the typical curvature of f.", optional=True)
        if self.condition is not None and self.condition < 1:
            raise InputError(f"condition={self.condition!r} is below 1. Pass σ₁/σ_r, or leave it out.")

    def check(self, problem: Objective, rank: int) -> None:
        require_plain(self, problem)

    def peak(self, problem: Objective, rank: int) -> int:
        return max(SVP().peak(problem, rank), run_memory(problem, rank, pairs=10, lengths=6))

    def init(self, problem: Objective, x: Factors, rank: int) -> State[Near | Flow]:
        unit = problem.curvature_of_kind if self.unit is None else self.unit
        if x.any():
            return self._flowing(problem, x, unit)
        first = SVP(1 / unit).init(problem, x, rank)
        return State(first.point, Near(first, unit, 0), Staged())

    def step(self, problem: Objective, state: State[Near | Flow]) -> State[Near | Flow]:
        own = state.own
        if isinstance(own, Flow):
            flowing = self._descended(problem, own.unit)
            g = own.at.gradient
            at = flowing.at(own.at.x + g.scaled(-own.eta_U, -own.eta_V))
            return State(problem.seen(at), replace(own, at=at))
        new, count = SVP(1 / own.unit).step(problem, own.projected), own.count + 1
        if state.point.x.any() and not new.value < state.value:
            return self._flowing(problem, state.point.x, own.unit)
        if self._is_near(problem, new, own.unit, count):
            return self._flowing(problem, new.point.x, own.unit)
        return State(new.point, Near(new, own.unit, count), Staged())

    def _flowing(self, problem: Objective, x: Factors, unit: float) -> State[Near | Flow]:
        """The second phase, at its start."""
        mu = THEORY[type(x.kind)].mu if self.mu is None else self.mu
        eta_U, eta_V = (mu * reciprocal(unit * float(np.linalg.norm(F, 2) ** 2)) for F in (x.left, x.right))
        at = self._descended(problem, unit).at(x)
        return State(problem.seen(at), Flow(at, unit, eta_U, eta_V))

    @staticmethod
    def _descended(problem: Objective, unit: float) -> Objective:
        return problem.plus(BalanceTerm(Frobenius(unit / 2), 0.25, unit))

    def _is_near(self, problem: Objective, projected: State[Limited], unit: float, count: int) -> bool:
        """Whether the first phase may end."""
        theory, U = THEORY[type(problem.kind)], projected.U
        spread = math.log(U.shape[1] ** 0.5 * (self.condition or WORST))
        if count >= math.ceil(theory.slope * spread + theory.first):
            return True
        if self.condition is not None or problem.least is None:
            return False
        residual = math.sqrt(2 * max(projected.value - problem.least, 0.0) / unit)
        # Balanced factors from an SVD: the last column has length σ_r^½.
        return residual <= theory.near * norm(U[:, -1]) ** 2
