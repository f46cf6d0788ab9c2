"""Rank continuation: directions are added one after the other."""

from dataclasses import dataclass, replace

from bifactor.errors import InputError
from bifactor.factors import Factors
from bifactor.problems.footprint import stages_memory
from bifactor.problems.objective import Objective
from bifactor.problems.state import Staged, State, Value
from bifactor.solvers.base import Solver
from bifactor.solvers.parts.growth import grown
from bifactor.solvers.parts.requirements import require_inner, wrapping
from bifactor.solvers.pcg import PCG
from bifactor.validation import is_count, settle_positive


@dataclass(frozen=True)
class Stage(Value):
    """The state of the inner solver, and the progress of its stage."""

    inner: State[Value]
    columns: int
    """The number of columns that the inner solver may use, apart from fixed ones."""
    rank: int
    """The final number of columns."""
    count: int = 0
    """The number of iterations of the stage."""
    over: bool = False


@dataclass(frozen=True)
class RankContinuation(Solver[Stage]):
    """Begin with the leading columns of the start, and add the leading singular pairs of −∇f(X) up to the rank.

    Between additions the inner solver runs briefly. So the strong directions are found before the weak ones, which the
    start cannot distinguish from the noise of sampling. This solves ill-conditioned completion problems and those with
    few samples. If fewer columns than the rank already fit, no more are added.

    Parameters
    ----------
    solver : Solver
        The inner solver.
    stages : int
        The largest number of stages. Columns are added one at a time, or several if one would take more stages.
    stage_iterations : int
        The largest number of inner iterations per stage.
    stage_decrease : float
        The relative decrease of the objective in an iteration at or below which a stage ends.
    """

    solver: Solver = PCG()
    stages: int = 10
    stage_iterations: int = 40
    stage_decrease: float = 5e-3

    def __post_init__(self) -> None:
        require_inner(self, self.solver)
        for name in ("stages", "stage_iterations"):
            if not is_count(getattr(self, name), 1):
                raise InputError(f"{name}={getattr(self, name)!r} is not possible. Pass an integer ≥ 1.")
        settle_positive(self, "stage_decrease", "Pass the fraction below which a stage ends.")

    def check(self, problem: Objective, rank: int) -> None:
        with wrapping(self, self.solver):
            self.solver.check(problem, self._first(problem, rank))
            self.solver.check(problem, rank)

    def start_columns(self, problem: Objective, rank: int) -> int:
        return 0 if problem.kind.fixed_columns else self._chunk(rank)

    def peak(self, problem: Objective, rank: int) -> int:
        stages = range(self._chunk(rank), rank, self._chunk(rank))
        return self.solver.peak(problem, rank) + stages_memory(problem, stages)

    def init(self, problem: Objective, x: Factors, rank: int) -> State[Stage]:
        # Fixed columns and their partners, if any, are fitted first: the rest of the start does not account for them.
        columns = self._first(problem, rank)
        inner = self.solver.init(problem, x.columns(slice(problem.kind.fixed_columns + columns)), columns)
        return _noted(Stage(inner, columns, rank))

    def prepare(self, problem: Objective, state: State[Stage]) -> State[Stage]:
        own = state.own
        if own.over and own.columns < own.rank:  # the next step begins another stage
            return state
        return replace(state, own=replace(own, inner=self.solver.prepare(problem, own.inner)))

    def step(self, problem: Objective, state: State[Stage]) -> State[Stage]:
        own = state.own
        if own.over and own.columns < own.rank:
            columns = min(own.columns + self._chunk(own.rank), own.rank)
            x = own.inner.point.x
            wider = grown(problem, x, columns + problem.kind.fixed_columns - x.width)
            if wider.width == x.width:  # the gradient has no direction to add
                return _noted(replace(own, rank=own.columns))
            columns = max(own.columns + 1, wider.width - problem.kind.fixed_columns)  # not all may be useful yet
            own = Stage(self.solver.init(problem, wider, columns), columns, own.rank)
        new, count = self.solver.step(problem, own.inner), own.count + 1
        slow = not own.inner.phase.staged and own.inner.value - new.value <= self.stage_decrease * abs(new.value)
        over = slow or new.phase.at_rest or count >= self.stage_iterations
        return _noted(Stage(new, own.columns, own.rank, count, over))

    def _chunk(self, rank: int) -> int:
        return max(1, -(-rank // self.stages))

    def _first(self, problem: Objective, rank: int) -> int:
        """The rank of the first stage."""
        return 0 if problem.kind.fixed_columns else self._chunk(rank)


def _noted(own: Stage) -> State[Stage]:
    return State(own.inner.point, own, Staged() if own.columns < own.rank else own.inner.phase)
