"""What a step rule is: it decides how far to move along a direction that a solver chose."""

from abc import ABC, abstractmethod
from collections.abc import Callable

from bifactor.problem import Objective
from bifactor.state import State

Move = Callable[[float, float], State]
"""(eta, memory) -> the state after a step of that length, carrying that memory."""


class StepSize(ABC):
    """η for U − η·dU, V − η·dV."""

    def check(self, problem: Objective) -> None:  # noqa: B027 (a rule that serves every problem has nothing to say)
        """Raise `InputError` where the rule cannot serve a problem; called before any work."""

    @abstractmethod
    def init(self, problem: Objective, state: State, L_g: float) -> float:
        """The number to carry from step to step."""

    @abstractmethod
    def next(self, problem: Objective, state: State, move: Move) -> State:
        """The state one step further."""


def reciprocal(denominator: float) -> float:
    """1/denominator; at U = V = 0, where nothing moves, any step will do."""
    return 1.0 / denominator if denominator > 1e-300 else 1.0
