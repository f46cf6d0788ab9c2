"""Rank continuation: one direction after the other."""

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
    """The inner solver's state, and where its stage stands."""

    inner: State[Value]
    columns: int
    """Those that the inner solver may use, fixed ones aside."""
    rank: int
    """Those that it may use in the end."""
    count: int = 0
    """Iterations of the stage."""
    over: bool = False


@dataclass(frozen=True)
class RankContinuation(Solver[Stage]):
    """Begins with the leading columns of the start and adds the leading singular pairs of −∇f(X) until all are there.

    Between additions the inner solver runs briefly. The strong directions are then in place before the weak ones, which
    the start cannot tell from the noise of sampling, are looked for: it rescues ill-conditioned and barely sampled
    completion problems. If fewer columns than asked for already fit, no more are added.

    Parameters
    ----------
    solver : Solver
        The inner one.
    stages : int
        Columns are added one at a time, or by more where that would take more than this many stages.
    stage_iterations : int
        Inner iterations per stage at most.
    stage_decrease : float
        A stage ends when an iteration lowers the objective by no more than this fraction.
    """

    solver: Solver = PCG()
    stages: int = 10
    stage_iterations: int = 40
    stage_decrease: float = 5e-3

    def __post_init__(self) -> None:
        require_inner(self, self.solver)
        for name in ("stages", "stage_iterations"):
            if not is_count(getattr(self, name), 1):
                raise InputError(f"{name}={getattr(self, name)!r} is not an integer ≥ 1.")
        settle_positive(self, "stage_decrease", "It is the fraction below which a stage ends.")

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
        # Fixed columns and their partners come first, where there are any: the rest of the start knows nothing of them.
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
            if wider.width == x.width:  # the gradient shows nothing to add
                return _noted(replace(own, rank=own.columns))
            columns = max(own.columns + 1, wider.width - problem.kind.fixed_columns)  # not all may be of use yet
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
