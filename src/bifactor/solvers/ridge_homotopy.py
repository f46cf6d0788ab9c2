"""Ridge homotopy: from a strong ridge to none."""

from dataclasses import dataclass, replace

import numpy as np

from bifactor.errors import InputError
from bifactor.factors import Factors
from bifactor.penalties import Ridge
from bifactor.problems.memory import stages_memory
from bifactor.problems.objective import Objective
from bifactor.problems.state import Staged, State, Value
from bifactor.solvers.base import Solver
from bifactor.solvers.growth import add_columns
from bifactor.solvers.pcg import PCG
from bifactor.solvers.requirements import require_inner, wrapping
from bifactor.svd import spectral_norm
from bifactor.validation import is_count, settle_positive

NEGLIGIBLE = 1e-9
"""The fraction of the first ridge at which it is dropped."""

SMALL_SHARE = 1e-3
"""The share of the objective at or below which a ridge is dropped."""


@dataclass(frozen=True)
class Ridged(Value, key="ridge_homotopy"):
    """The state of the inner solver on f and the ridge of a stage, and the progress of the stage."""

    inner: State[Value]
    rank: int
    """The number of columns, apart from fixed ones."""
    lam: float
    """λ; 0 stands for the problem itself."""
    first: float
    """The λ of the first stage."""
    count: int = 0
    """The number of iterations of the stage."""
    over: bool = False


@dataclass(frozen=True)
class RidgeHomotopy(Solver[Ridged]):
    """Minimise f + (λ/2)(‖U‖² + ‖V‖²) for λ decreasing from ½‖∇f(0)‖₂ to the ridge of the problem, or to 0.

    The ridge of a stage has the same weights of rows and columns as that of the problem, and its ratio of sides. At
    each λ the singular pairs of −∇f(X), scaled by these weights, with s > λ are added to the factors, up to the rank:
    the factors follow the nuclear-norm path. With few measurements and flat spectra it solves problems that rank
    continuation does not. Only the number of columns of the start is used. The function of a stage never increases; the
    history has the objective of the problem itself, without the ridge of the stage, which may.

    Parameters
    ----------
    solver : Solver
        The inner solver.
    factor : float in (0, 1)
        The factor of λ from stage to stage.
    stage_iterations : int
        The largest number of inner iterations per λ.
    stage_decrease : float
        The relative decrease of the objective in an iteration at or below which a stage ends.
    """

    solver: Solver = PCG()
    factor: float = 0.5
    stage_iterations: int = 30
    stage_decrease: float = 5e-4

    def __post_init__(self) -> None:
        require_inner(self, self.solver)
        settle_positive(self, "factor", "Choose a number between 0 and 1.")
        if self.factor >= 1:
            raise InputError(f"factor={self.factor!r} does not lower the ridge. Choose a number between 0 and 1.")
        if not is_count(self.stage_iterations, 1):
            raise InputError(f"stage_iterations={self.stage_iterations!r} is not possible. Pass an integer ≥ 1.")
        settle_positive(self, "stage_decrease", "Pass the fraction below which a stage ends.")

    def check(self, problem: Objective, rank: int) -> None:
        if problem.nuclear is None:
            raise InputError(f"RidgeHomotopy needs a nuclear norm, but the penalty is {problem.penalties!r}. Use PCG.")
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
        x = add_columns(at, x, room) if room > 0 else x
        if x.width == 0:  # X = 0 is the solution
            x, at, lam = problem.zero(rank), problem, 0.0
        return _noted(problem, Ridged(self.solver.init(at, x, rank), rank, lam, first))

    def _lowered(self, problem: Objective, own: Ridged) -> float:
        """The next λ; 0 stands for the problem itself."""
        share = sum(penalty.value(own.inner.point.x) for penalty in _at(problem, own.lam).penalties)
        return 0.0 if share <= SMALL_SHARE * abs(own.inner.value) else self.factor * own.lam


def _noted(problem: Objective, own: Ridged) -> State[Ridged]:
    """The state, with the value of the problem itself instead of that of the stage."""
    if own.lam == 0:
        return State(own.inner.point, own, own.inner.phase)
    return State(problem.converted(own.inner.point, _at(problem, own.lam)), own, Staged())


def _at(problem: Objective, lam: float) -> Objective:
    """The problem of the stage with this λ."""
    if lam == 0:
        return problem
    weights = problem.new_columns
    left, right = weights.sides if problem.penalties else (1.0, 1.0)
    ratio = (left / right) ** 0.5
    rows, cols = (np.asarray(w) / np.mean(w) if np.ndim(w) else None for w in (weights.rows, weights.cols))
    return problem.penalized(Ridge((lam * ratio, lam / ratio), rows, cols))
