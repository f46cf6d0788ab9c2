"""Rank continuation: directions are added one after the other."""

from dataclasses import dataclass, replace

from bifactor.errors import InputError
from bifactor.factors import Factors
from bifactor.problems.memory import stages_memory
from bifactor.problems.objective import Objective
from bifactor.problems.state import Staged, State, Value
from bifactor.solvers.base import Solver
from bifactor.solvers.growth import SHORTEST, growth
from bifactor.solvers.pcg import PCG
from bifactor.solvers.requirements import require_inner, wrapping
from bifactor.steps.base import backtrack
from bifactor.validation import is_count, settle_positive


@dataclass(frozen=True)
class Stage(Value, key="rank_continuation"):
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
    few samples. If fewer columns than the rank already fit, no more are added. The objective never increases: if the
    first iteration with new columns does not lower it, it is repeated with shorter ones.

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
            return self._widened(problem, own)
        return self._followed(own, self.solver.step(problem, own.inner))

    def _followed(self, own: Stage, new: State[Value]) -> State[Stage]:
        """The state after an iteration of the inner solver."""
        count = own.count + 1
        slow = not own.inner.phase.staged and own.inner.value - new.value <= self.stage_decrease * abs(new.value)
        over = slow or new.phase.at_rest or count >= self.stage_iterations
        return _noted(Stage(new, own.columns, own.rank, count, over))

    def _widened(self, problem: Objective, own: Stage) -> State[Stage]:
        """The first iteration of the next stage.

        If it does not make up for columns that are too long, it is repeated with shorter ones.
        """
        extra, x = problem.kind.fixed_columns, own.inner.point.x
        columns = min(own.columns + self._chunk(own.rank), own.rank)
        found = growth(problem, x, columns + extra - x.width)
        if found is None:  # the gradient has no direction to add
            return _noted(replace(own, rank=own.columns))
        columns = max(own.columns + 1, x.width + found.new.width - extra)  # not all may be useful yet

        def begun(t: float) -> State[Stage]:
            first = self.solver.init(problem, found.joined(t), columns)
            return self._followed(Stage(first, columns, own.rank), self.solver.step(problem, first))

        def lower(t: float) -> State[Stage] | None:
            new = begun(t)
            # A solver with stages of its own may begin far above.
            return new if new.value <= own.inner.value or new.own.inner.phase.staged else None

        return backtrack(lower, 1.0, SHORTEST) or begun(1.0)

    def _chunk(self, rank: int) -> int:
        return max(1, -(-rank // self.stages))

    def _first(self, problem: Objective, rank: int) -> int:
        """The rank of the first stage."""
        return 0 if problem.kind.fixed_columns else self._chunk(rank)


def _noted(own: Stage) -> State[Stage]:
    return State(own.inner.point, own, Staged() if own.columns < own.rank else own.inner.phase)
