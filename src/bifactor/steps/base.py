"""What a step rule is: it decides how far to move along a direction that a solver chose."""

from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np

from bifactor.arrays import spectral_norm_squared
from bifactor.problem import Objective
from bifactor.state import State
from bifactor.svd import spectral_norm
from bifactor.validation import require_positive

Move = Callable[[float, float], State]
"""(eta, memory) -> the state after a step of that length, carrying that memory."""


class StepSize(ABC):
    """η for U − η·dU, V − η·dV."""

    @abstractmethod
    def init(self, problem: Objective, state: State, L_g: float) -> float:
        """The number to carry from step to step; refuses here what the rule cannot serve."""

    @abstractmethod
    def next(self, problem: Objective, state: State, move: Move) -> State:
        """The state one step further."""


def smoothness(L: float | None, problem: Objective) -> float:
    """The L given to a rule, or else the problem's own."""
    return problem.smoothness if L is None else L


def check_smoothness(L: float | None) -> None:
    if L is not None:
        require_positive(L, "L", "Leave it out to use the problem's own.")


def stacked_norm_squared(state: State) -> float:
    """‖[U; V]‖₂²."""
    return spectral_norm_squared(state.U, state.V)


def gradient_norm(problem: Objective, state: State) -> float:
    """‖∇f(UVᴴ)‖₂, by the same random start each time so that runs can be repeated."""
    return spectral_norm(problem.gradient(state.U, state.V), np.random.default_rng(0))


def reciprocal(denominator: float) -> float:
    """1/denominator; at U = V = 0, where nothing moves, any step will do."""
    return 1.0 / denominator if denominator > 0 else 1.0
