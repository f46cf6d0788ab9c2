"""What a step rule is: it decides how far to move along a direction that a solver chose."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from bifactor.problems.objective import Objective
from bifactor.problems.path import Path
from bifactor.problems.state import Moving, Phase, Point, Value

Memory = TypeVar("Memory", bound=Value)


@dataclass(frozen=True)
class Length(Value):
    """The memory of a rule that carries one step length from step to step."""

    eta: float


class Step(NamedTuple):
    """Where a step led, and what the rule remembers of it."""

    point: Point
    memory: Any
    phase: Phase = Moving()


class StepSize(ABC, Generic[Memory]):
    """η for x + ηd; for plain gradient descent d is minus the gradient."""

    lengths: ClassVar[float] = 4.0
    """Vectors as long as the measurements that a descent by this rule has at a time: what it takes of memory."""

    def check(self, problem: Objective) -> None:
        """Raise `InputError` where the rule cannot serve a problem; called before any work."""

    @abstractmethod
    def init(self, problem: Objective, point: Point, L_g: float) -> Memory:
        """What to carry from step to step."""

    @abstractmethod
    def next(self, path: Path, memory: Memory) -> Step:
        """One step along the path."""


Taken = TypeVar("Taken")


def shortened(attempt: Callable[[float], Taken | None], a: float, shortest: float, shrink: float = 0.5) -> Taken | None:
    """What the first attempt gives that is not None, at a, shrink·a, shrink²·a, …; None if none is above `shortest`."""
    while a > shortest:
        taken = attempt(a)
        if taken is not None:
            return taken
        a *= shrink
    return None


def reciprocal(denominator: float) -> float:
    """1/denominator; at U = V = 0, where nothing moves, any step will do."""
    return 1.0 / denominator if denominator > 1e-300 else 1.0
