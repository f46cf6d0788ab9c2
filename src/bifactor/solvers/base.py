"""The base class of solvers: frozen settings, and a state that is passed in and returned."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Generic, TypeVar

from bifactor.factors import Factors
from bifactor.inits import Init, Spectral
from bifactor.problems.memory import run_memory
from bifactor.problems.objective import Objective
from bifactor.problems.state import Point, State, Value
from bifactor.solvers.variational.posterior import Posterior
from bifactor.steps.base import Step

Own = TypeVar("Own", bound=Value)


class Solver(ABC, Generic[Own]):
    """Decides where to move. `solve` owns the loop."""

    start: Init = Spectral()
    """The default start."""

    outermost: bool = False
    """Whether other solvers must not wrap this one."""

    def check(self, problem: Objective, rank: int) -> None:
        """Raise `InputError` if the solver cannot solve a problem at this rank; called before any work."""

    def start_columns(self, problem: Objective, rank: int) -> int:
        """The number of columns of a start of this rank that the solver uses; the others need not be computed."""
        return rank

    def peak(self, problem: Objective, rank: int) -> int:
        """Peak bytes of a run beyond the problem and its start, estimated without any work.

        By default, those of a solver with a state, directions and measurements along a curve, such as `PCG`.
        """
        return run_memory(problem, rank, pairs=15, lengths=8)

    def current(self, problem: Objective, state: State[Own]) -> Objective:
        """The problem that a state belongs to: another one if the solver fits parameters of it."""
        return problem

    def posterior(self, problem: Objective, state: State[Own]) -> Posterior | None:
        """The posterior of the factors of a state; None if the solver does not compute one."""
        return None

    @abstractmethod
    def init(self, problem: Objective, x: Factors, rank: int) -> State[Own]:
        """The state at the start, x; no later one has more columns than `rank`, apart from fixed ones."""

    def prepare(self, problem: Objective, state: State[Own]) -> State[Own]:
        """The same state with the data of the next step, such as a direction, instead of those it is computed from.

        `solve` calls it before each step and releases the previous state: tall arrays that are no longer needed do not
        take memory during the step. A step prepares its state itself if this has not been done.
        """
        return state

    @abstractmethod
    def step(self, problem: Objective, state: State[Own]) -> State[Own]:
        """The state after one more iteration."""


# The state of solvers that descend by a step rule, on F or on F plus their own terms.


@dataclass(frozen=True)
class Descent(Value, key="gradient_descent"):
    """The point of the iteration, with its own terms included, and the memory of the step rule."""

    at: Point
    memory: Value


def descent_step(problem: Objective, step: Step) -> State[Descent]:
    """The state after a step, with the value of the problem alone."""
    return State(problem.seen(step.point), Descent(step.point, step.memory), step.phase)
