"""Ridge homotopy: from a heavy ridge to none."""

from dataclasses import dataclass, replace

import numpy as np

from bifactor.errors import InputError
from bifactor.factors import Factors
from bifactor.penalties import Ridge
from bifactor.problems.footprint import stages_memory
from bifactor.problems.objective import Objective
from bifactor.problems.state import Staged, State, Value
from bifactor.solvers.base import Solver
from bifactor.solvers.parts.growth import grown
from bifactor.solvers.parts.requirements import require_inner, wrapping
from bifactor.solvers.pcg import PCG
from bifactor.svd import spectral_norm
from bifactor.validation import is_count, settle_positive

NEGLIGIBLE = 1e-9
"""The fraction of the first ridge at which it is dropped altogether."""

SMALL_SHARE = 1e-3
"""Nor does a ridge help that makes up no more than this of the objective."""


@dataclass(frozen=True)
class Ridged(Value):
    """The inner solver's state on f and a ridge of its own, and where its stage stands."""

    inner: State[Value]
    rank: int
    """The columns asked for, fixed ones aside."""
    lam: float
    """λ, 0 for the problem itself."""
    first: float
    """The λ of the first stage."""
    count: int = 0
    """Iterations of the stage."""
    over: bool = False


@dataclass(frozen=True)
class RidgeHomotopy(Solver[Ridged]):
    """Minimises f + (λ/2)(‖U‖² + ‖V‖²) for λ falling from ½‖∇f(0)‖₂ to the ridge of the problem, or to none.

    The ridge of a stage has the weights of rows and columns that the problem's has, and its ratio of sides. At each λ
    the singular pairs of −∇f(X), scaled by these weights, with s > λ join the factors, up to the rank: the nuclear-norm
    path, followed by the factors. On flat spectra with few measurements it finds what rank continuation does not. Only
    the number of columns of the start is used.

    Parameters
    ----------
    solver : Solver
        The inner one.
    factor : float in (0, 1)
        What λ is multiplied by.
    stage_iterations : int
        Inner iterations per λ at most.
    stage_decrease : float
        A λ is done with when an iteration lowers the objective by no more than this fraction.
    """

    solver: Solver = PCG()
    factor: float = 0.5
    stage_iterations: int = 30
    stage_decrease: float = 5e-4

    def __post_init__(self) -> None:
        require_inner(self, self.solver)
        settle_positive(self, "factor", "It is a number between 0 and 1.")
        if self.factor >= 1:
            raise InputError(f"factor={self.factor!r} does not lower the ridge. Choose a number between 0 and 1.")
        if not is_count(self.stage_iterations, 1):
            raise InputError(f"stage_iterations={self.stage_iterations!r} is not an integer ≥ 1.")
        settle_positive(self, "stage_decrease", "It is the fraction below which a stage ends.")

    def check(self, problem: Objective, rank: int) -> None:
        if problem.nuclear is None:
            raise InputError(f"RidgeHomotopy ends at a nuclear norm, but has {problem.penalties!r}. Use PCG.")
        with wrapping(self, self.solver):
            self.solver.check(problem, rank)
        with wrapping(self, self.solver, ", whose stages have a ridge,"):
            self.solver.check(_at(problem, 1.0), rank)

    def start_columns(self, problem: Objective, rank: int) -> int:
        return 0

    def peak(self, problem: Objective, rank: int) -> int:
        return self.solver.peak(problem, rank) + stages_memory(problem, (rank // 4, rank // 2))

    def init(self, problem: Objective, x: Factors, rank: int) -> State[Ridged]:
        G = problem.new_columns.gradient(problem.gradient_at_zero())
        lam = self.factor * spectral_norm(G, np.random.default_rng(0), 0.1)
        return self._begun(problem, x.columns(slice(problem.kind.fixed_columns)), rank, lam, lam)

    def prepare(self, problem: Objective, state: State[Ridged]) -> State[Ridged]:
        own = state.own
        if own.over and own.lam > 0:  # the next step begins another stage
            return state
        return replace(state, own=replace(own, inner=self.solver.prepare(_at(problem, own.lam), own.inner)))

    def step(self, problem: Objective, state: State[Ridged]) -> State[Ridged]:
        own = state.own
        if own.over and own.lam > 0:
            return self._begun(problem, state.point.x, own.rank, self._lowered(problem, own), own.first)
        new, count = self.solver.step(_at(problem, own.lam), own.inner), own.count + 1
        slow = not own.inner.phase.staged and own.inner.value - new.value <= self.stage_decrease * abs(new.value)
        over = slow or new.phase.at_rest or count >= self.stage_iterations
        return _noted(problem, Ridged(new, own.rank, own.lam, own.first, count, over))

    def _begun(self, problem: Objective, x: Factors, rank: int, lam: float, first: float) -> State[Ridged]:
        """The first state at a new λ."""
        if lam <= max(NEGLIGIBLE * first, problem.new_columns.rho(problem.kind)):
            lam = 0.0
        at, room = _at(problem, lam), rank + problem.kind.fixed_columns - x.width
        x = grown(at, x, room) if room > 0 else x
        if x.width == 0:  # X = 0 is where it ends
            x, at, lam = problem.zero(rank), problem, 0.0
        return _noted(problem, Ridged(self.solver.init(at, x, rank), rank, lam, first))

    def _lowered(self, problem: Objective, own: Ridged) -> float:
        """The next λ; 0 stands for the problem itself."""
        share = sum(penalty.value(own.inner.point.x) for penalty in _at(problem, own.lam).penalties)
        return 0.0 if share <= SMALL_SHARE * abs(own.inner.value) else self.factor * own.lam


def _noted(problem: Objective, own: Ridged) -> State[Ridged]:
    """The state, its value being that of the problem itself whatever the stage minimises."""
    if own.lam == 0:
        return State(own.inner.point, own, own.inner.phase)
    return State(problem.converted(own.inner.point, _at(problem, own.lam)), own, Staged())


def _at(problem: Objective, lam: float) -> Objective:
    """What is minimised at this λ."""
    if lam == 0:
        return problem
    weights = problem.new_columns
    left, right = weights.sides if problem.penalties else (1.0, 1.0)
    ratio = (left / right) ** 0.5
    rows, cols = (np.asarray(w) / np.mean(w) if np.ndim(w) else None for w in (weights.rows, weights.cols))
    return problem.penalized(Ridge((lam * ratio, lam / ratio), rows, cols))
