"""Parameters of losses that are fitted on the way."""

from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

from bifactor.errors import InputError
from bifactor.factors import Factors
from bifactor.problems.objective import Objective
from bifactor.problems.state import Provisional, State, Value
from bifactor.solvers.base import Solver
from bifactor.solvers.parts.requirements import require_inner, wrapping
from bifactor.solvers.pcg import PCG
from bifactor.validation import is_count, settle_positive


@dataclass(frozen=True)
class Fitting(Value):
    """The inner solver's state, and the parameters of the losses that it is about."""

    inner: State[Value]
    rank: int
    fitted: tuple[float, ...]
    rounds: int = 0
    """How often they have been fitted."""
    count: int = 0
    """Iterations since."""
    settled: bool = False
    """Whether they stay as they are."""


@dataclass(frozen=True)
class Refitted(Solver[Fitting]):
    """Fits the parameters of the losses every few iterations of another solver, until they settle, and then goes on.

    What is fitted is up to `Loss.refit`: the δ of `Huber` from the spread of the residuals, the σ of `Probit` by its
    likelihood. Each time the inner solver restarts from the factors it has reached. While parameters change, so does
    the function that is minimised; the last one is `Result.problem`, and the answer is the best for that.

    Parameters are fitted to the measurements that X is fitted to. A model that is flexible enough to explain all of
    them leaves no spread to see: the σ of labels that X can separate falls towards 0.

    Parameters
    ----------
    solver : Solver
        The inner one. One that starts small, as rank continuation does, starts small each time.
    every : int
        Inner iterations from one fit to the next, fewer where the inner solver comes to rest.
    rounds : int
        Fits at most.
    tol : float
        Parameters that change by no more than this fraction are settled.
    """

    solver: Solver = PCG()
    every: int = 10
    rounds: int = 20
    tol: float = 1e-3
    outermost = True

    def __post_init__(self) -> None:
        require_inner(self, self.solver)
        for name in ("every", "rounds"):
            if not is_count(getattr(self, name), 1):
                raise InputError(f"{name}={getattr(self, name)!r} is not an integer ≥ 1.")
        settle_positive(self, "tol", "It is the change of parameters that ends their fitting.")

    def check(self, problem: Objective, rank: int) -> None:
        if not problem.f.fitted:
            raise InputError("No loss here has parameters to fit. Use the inner solver by itself.")
        if problem.penalties and problem.f.scales:
            raise InputError(
                "Under a penalty the scale of z is free to shrink together with the parameter of its loss. "
                "Leave the penalty out, or give the loss its parameter."
            )
        with wrapping(self, self.solver):
            self.solver.check(problem, rank)

    def start_columns(self, problem: Objective, rank: int) -> int:
        return self.solver.start_columns(problem, rank)

    def peak(self, problem: Objective, rank: int) -> int:
        # Parameters are fitted to residuals, of which there are some copies.
        return self.solver.peak(problem, rank) + 2 * problem.f.footprint(rank).z

    def init(self, problem: Objective, x: Factors, rank: int) -> State[Fitting]:
        return _noted(Fitting(self.solver.init(problem, x, rank), rank, problem.f.fitted))

    def prepare(self, problem: Objective, state: State[Fitting]) -> State[Fitting]:
        own = state.own
        if self._due(own):
            return state
        return replace(state, own=replace(own, inner=self.solver.prepare(self.current(problem, state), own.inner)))

    def step(self, problem: Objective, state: State[Fitting]) -> State[Fitting]:
        own, at = state.own, self.current(problem, state)
        if self._due(own):
            return self._refitted(problem, at, own)
        inner = self.solver.step(at, own.inner)
        return _noted(Fitting(inner, own.rank, own.fitted, own.rounds, own.count + 1, own.settled))

    def current(self, problem: Objective, state: State[Fitting]) -> Objective:
        return _at(problem, state.own.fitted)

    def _due(self, own: Fitting) -> bool:
        """Whether the next step fits parameters."""
        return not own.settled and own.count > 0 and (own.count >= self.every or own.inner.phase.at_rest)

    def _refitted(self, problem: Objective, at: Objective, own: Fitting) -> State[Fitting]:
        """The state with parameters fitted to where it is."""
        point = own.inner.point
        fitted = at.f.refit(point.x, point.z).fitted
        change = max(abs(new - old) / abs(old) for new, old in zip(fitted, own.fitted, strict=True))
        settled = change <= self.tol or own.rounds + 1 >= self.rounds
        inner = self.solver.init(_at(problem, fitted), point.x, own.rank)
        return _noted(Fitting(inner, own.rank, fitted, own.rounds + 1, settled=settled))


def _noted(own: Fitting) -> State[Fitting]:
    return State(own.inner.point, own, own.inner.phase if own.settled else Provisional())


_LATEST: WeakKeyDictionary[Objective, tuple[tuple[float, ...], Objective]] = WeakKeyDictionary()
"""Of each problem the one with the parameters that were last asked for: its sums over the data are made once."""


def _at(problem: Objective, fitted: tuple[float, ...]) -> Objective:
    """The problem with these parameters."""
    if fitted == problem.f.fitted:
        return problem
    latest = _LATEST.get(problem)
    if latest is None or latest[0] != fitted:
        latest = _LATEST[problem] = fitted, problem.with_fitted(fitted)
    return latest[1]
