"""What a step rule is: it decides how far to move along a direction that a solver chose."""

from abc import ABC, abstractmethod
from typing import ClassVar

from bifactor.objective import Objective
from bifactor.path import Path
from bifactor.state import State


class StepSize(ABC):
    """η for U + ηD, V + ηE; for plain gradient descent (D, E) is minus the gradient."""

    polynomial: ClassVar[bool] = False
    """Whether the rule looks along the curve, and so needs terms that are polynomials there."""

    def check(self, problem: Objective) -> None:  # noqa: B027 (a rule that serves every problem has nothing to say)
        """Raise `InputError` where the rule cannot serve a problem; called before any work."""

    @abstractmethod
    def init(self, problem: Objective, state: State, L_g: float) -> float:
        """The number to carry from step to step."""

    @abstractmethod
    def next(self, path: Path) -> State:
        """The state one step further along the path."""


def reciprocal(denominator: float) -> float:
    """1/denominator; at U = V = 0, where nothing moves, any step will do."""
    return 1.0 / denominator if denominator > 1e-300 else 1.0
