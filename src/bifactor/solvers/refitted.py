"""Parameters of losses that are fitted during a run."""

from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

from bifactor.errors import InputError
from bifactor.factors import Factors
from bifactor.problems.objective import Objective
from bifactor.problems.state import Provisional, State, Value
from bifactor.solvers.base import Solver
from bifactor.solvers.pcg import PCG
from bifactor.solvers.requirements import require_inner, wrapping
from bifactor.validation import is_count, settle_positive


@dataclass(frozen=True)
class RefitState(Value, key="refitted"):
    """The state of the inner solver, and the parameters of the losses that it belongs to."""

    inner: State[Value]
    rank: int
    fitted: tuple[float, ...]
    rounds: int = 0
    """The number of fits so far."""
    count: int = 0
    """The number of iterations since the last fit."""
    settled: bool = False
    """Whether the parameters no longer change."""


@dataclass(frozen=True)
class Refitted(Solver[RefitState]):
    """Fit the parameters of the losses every few iterations of another solver until they settle, and then continue.

    `Loss.refit` fits them, for instance the δ of `Huber` from the spread of the residuals, and the σ of `Probit` by its
    likelihood. After each fit the inner solver restarts from its present factors. While parameters change, so does the
    function that is minimised; the last one is `Result.problem`, and the result minimises it.

    Parameters are fitted to the same measurements as X. A model that is flexible enough to explain all of them leaves
    no spread: the σ of labels that X can separate tends to 0.

    Parameters
    ----------
    solver : Solver
        The inner solver. One that starts with few columns, as rank continuation does, does so after each fit.
    every : int
        The number of inner iterations from one fit to the next, fewer if the inner solver comes to rest.
    rounds : int
        The largest number of fits.
    tol : float
        The relative change of parameters at or below which they are settled.
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
                raise InputError(f"{name}={getattr(self, name)!r} is not possible. Pass an integer ≥ 1.")
        settle_positive(self, "tol", "Pass the relative change of parameters that ends their fitting.")

    def check(self, problem: Objective, rank: int) -> None:
        parameters = problem.f.parameters
        if not parameters.values:
            raise InputError("No loss of the problem has parameters to fit. Use the inner solver alone.")
        if problem.penalties and parameters.scales:
            raise InputError(
                "With a penalty, the scale of z can shrink together with the parameter of its loss. "
                "Leave the penalty out, or set the parameter of the loss."
            )
        with wrapping(self, self.solver):
            self.solver.check(problem, rank)

    def start_columns(self, problem: Objective, rank: int) -> int:
        return self.solver.start_columns(problem, rank)

    def peak(self, problem: Objective, rank: int) -> int:
        # Parameters are fitted to residuals, which are copied.
        return self.solver.peak(problem, rank) + 2 * problem.f.footprint(rank).z

    def init(self, problem: Objective, x: Factors, rank: int) -> State[RefitState]:
        return _noted(RefitState(self.solver.init(problem, x, rank), rank, problem.f.parameters.values))

    def prepare(self, problem: Objective, state: State[RefitState]) -> State[RefitState]:
        own = state.own
        if self._due(own):
            return state
        return replace(state, own=replace(own, inner=self.solver.prepare(self.current(problem, state), own.inner)))

    def step(self, problem: Objective, state: State[RefitState]) -> State[RefitState]:
        own, at = state.own, self.current(problem, state)
        if self._due(own):
            return self._refitted(problem, at, own)
        inner = self.solver.step(at, own.inner)
        return _noted(RefitState(inner, own.rank, own.fitted, own.rounds, own.count + 1, own.settled))

    def current(self, problem: Objective, state: State[RefitState]) -> Objective:
        return _at(problem, state.own.fitted)

    def _due(self, own: RefitState) -> bool:
        """Whether the next step fits parameters."""
        return not own.settled and own.count > 0 and (own.count >= self.every or own.inner.phase.at_rest)

    def _refitted(self, problem: Objective, at: Objective, own: RefitState) -> State[RefitState]:
        """The state with parameters fitted at its factors."""
        point = own.inner.point
        fitted = at.f.parameters.refit(point.x, point.z)
        change = max(abs(new - old) / abs(old) for new, old in zip(fitted, own.fitted, strict=True))
        settled = change <= self.tol or own.rounds + 1 >= self.rounds
        inner = self.solver.init(_at(problem, fitted), point.x, own.rank)
        return _noted(RefitState(inner, own.rank, fitted, own.rounds + 1, settled=settled))


def _noted(own: RefitState) -> State[RefitState]:
    return State(own.inner.point, own, own.inner.phase if own.settled else Provisional())


_LATEST: WeakKeyDictionary[Objective, tuple[tuple[float, ...], Objective]] = WeakKeyDictionary()
"""For each problem, the one with the last parameters, so that its sums over the data are computed once."""


def _at(problem: Objective, fitted: tuple[float, ...]) -> Objective:
    """The problem with these parameters."""
    if fitted == problem.f.parameters.values:
        return problem
    latest = _LATEST.get(problem)
    if latest is None or latest[0] != fitted:
        latest = _LATEST[problem] = fitted, problem.with_fitted(fitted)
    return latest[1]
