"""A race of solvers on small budgets."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from bifactor.errors import InputError
from bifactor.factors import Factors
from bifactor.problems.memory import pair_memory
from bifactor.problems.objective import Objective
from bifactor.problems.state import Staged, State, Value
from bifactor.solvers.base import Solver
from bifactor.solvers.rank_continuation import RankContinuation
from bifactor.solvers.requirements import require_inner, wrapping
from bifactor.solvers.ridge_homotopy import RidgeHomotopy
from bifactor.validation import is_count

SUCCESS = 1e-12
"""If the objective minus its lower bound is this small, relative to that of X = 0, the solver explains the data."""

AT_REST = 1e-5
"""A solver has come to rest if an iteration lowers the objective by no more than this fraction."""


@dataclass(frozen=True)
class Finished(Value, key="race.finished"):
    """The final state of one of the solvers."""

    lane: int
    state: State[Value]

    @property
    def value(self) -> float:
        return self.state.value


@dataclass(frozen=True)
class Racing(Value, key="race"):
    """The solver that is running, and the best of those that have run."""

    inner: State[Value]
    lane: int
    start: Factors
    rank: int
    nothing: float
    """f at X = 0."""
    mark: float
    """The objective when half of the iterations of this solver were over."""
    age: int = 0
    """The number of iterations since its stages."""
    best: Finished | None = None


@dataclass(frozen=True)
class Decided(Value, key="race.decided"):
    """The solver that continues."""

    inner: State[Value]
    lane: int


@dataclass(frozen=True)
class Race(Solver[Racing | Decided]):
    """Try solvers in turn, each from the start, and continue with the one that reaches the lowest objective.

    A solver is stopped when it has come to rest, or `patience` iterations after its own stages are over, unless its
    objective still decreases fast. One that explains the data ends the race at once: with more measurements than
    degrees of freedom, a matrix of low rank that fits them all is almost surely the right one. In the history, the
    objective rises where the next solver starts.

    Parameters
    ----------
    solvers : tuple of Solver
        The solvers, at least one.
    patience : int
        The number of iterations of each solver after its stages.
    """

    solvers: tuple[Solver, ...] = (RankContinuation(), RidgeHomotopy())
    patience: int = 100

    def __post_init__(self) -> None:
        if not isinstance(self.solvers, Iterable):
            raise InputError(f"solvers={self.solvers!r} is not a tuple of solvers. Pass a tuple, even of one solver.")
        object.__setattr__(self, "solvers", tuple(self.solvers))
        for solver in self.solvers:
            require_inner(self, solver)
        if not self.solvers:
            raise InputError("Race got no solvers. Pass at least one, or leave them out for the default two.")
        if not is_count(self.patience, 1):
            raise InputError(f"patience={self.patience!r} is not possible. Pass an integer ≥ 1.")

    def check(self, problem: Objective, rank: int) -> None:
        for solver in self.solvers:
            with wrapping(self, solver):
                solver.check(problem, rank)

    def start_columns(self, problem: Objective, rank: int) -> int:
        return max(solver.start_columns(problem, rank) for solver in self.solvers)

    def peak(self, problem: Objective, rank: int) -> int:
        # The best state so far is kept while another solver runs.
        best = 5 * pair_memory(problem, rank) + problem.f.footprint(rank).z
        return max(solver.peak(problem, rank) for solver in self.solvers) + best

    def init(self, problem: Objective, x: Factors, rank: int) -> State[Racing | Decided]:
        zero = problem.zero()
        nothing = problem.f.value(zero)
        first = self.solvers[0].init(problem, x, rank)
        return State(first.point, Racing(first, 0, x, rank, nothing, nothing), Staged())

    def prepare(self, problem: Objective, state: State[Racing | Decided]) -> State[Racing | Decided]:
        own = state.own
        return replace(state, own=replace(own, inner=self.solvers[own.lane].prepare(problem, own.inner)))

    def step(self, problem: Objective, state: State[Racing | Decided]) -> State[Racing | Decided]:
        own = state.own
        new = self.solvers[own.lane].step(problem, own.inner)
        if isinstance(own, Decided):
            return _decided(own.lane, new)
        # The step that ends the stages may not lower the objective.
        slow = not own.inner.phase.staged and own.inner.value - new.value <= AT_REST * abs(new.value)
        own = self._aged(replace(own, inner=new), problem.least)
        if problem.least is not None and new.value - problem.least <= SUCCESS * (own.nothing - problem.least):
            return _decided(own.lane, new)
        if new.phase.staged or (own.age < self.patience and not slow and not new.phase.at_rest):
            return State(new.point, own, Staged())
        best = own.best if own.best is not None and own.best.value <= new.value else Finished(own.lane, new)
        if own.lane + 1 == len(self.solvers):
            return _decided(best.lane, best.state)
        fresh = self.solvers[own.lane + 1].init(problem, own.start, own.rank)
        following = replace(own, inner=fresh, lane=own.lane + 1, age=0, mark=own.nothing, best=best)
        return State(fresh.point, following, Staged())

    def _aged(self, own: Racing, least: float | None) -> Racing:
        """The race with the age of the solver since its stages, and its objective at half its patience, updated.

        A solver whose objective has since decreased tenfold is given the second half again.
        """
        new, half = own.inner, self.patience // 2
        age = 0 if new.phase.staged else own.age + 1
        converging = least is not None and new.value - least <= 0.1 * (own.mark - least)
        if age == half or (age == self.patience and converging):
            return replace(own, age=half, mark=new.value)
        return replace(own, age=age)


def _decided(lane: int, inner: State[Value]) -> State[Racing | Decided]:
    return State(inner.point, Decided(inner, lane), inner.phase)
