"""The base class of step rules, which decide how far to move along the direction of a solver."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from bifactor.problems.curve import FactorCurve
from bifactor.problems.objective import Objective
from bifactor.problems.state import Moving, Phase, Point, Value

Memory = TypeVar("Memory", bound=Value)


@dataclass(frozen=True)
class Length(Value, key="step_length"):
    """The memory of a rule that keeps one step length from step to step."""

    eta: float


class Step(NamedTuple):
    """The point after a step, and the memory of the rule."""

    point: Point
    memory: Any
    phase: Phase = Moving()


class StepSize(ABC, Generic[Memory]):
    """η for x + ηd; for plain gradient descent d is minus the gradient."""

    lengths: ClassVar[float] = 4.0
    """The number of vectors of measurements that a descent by this rule holds at a time, for estimates of memory."""

    def check(self, problem: Objective) -> None:
        """Raise `InputError` if the rule cannot be used for a problem; called before any work."""

    @abstractmethod
    def init(self, problem: Objective, point: Point, L_g: float) -> Memory:
        """The memory to keep from step to step."""

    @abstractmethod
    def next(self, path: FactorCurve, memory: Memory) -> Step:
        """One step along the path."""


Taken = TypeVar("Taken")


def backtrack(attempt: Callable[[float], Taken | None], a: float, shortest: float, shrink: float = 0.5) -> Taken | None:
    """The first result that is not None of attempts at a, shrink·a, shrink²·a, … above `shortest`; otherwise None."""
    while a > shortest:
        taken = attempt(a)
        if taken is not None:
            return taken
        a *= shrink
    return None


def reciprocal(denominator: float) -> float:
    """1/denominator; 1 for U = V = 0, where the gradient is 0 and any step will do."""
    return 1.0 / denominator if denominator > 1e-300 else 1.0
