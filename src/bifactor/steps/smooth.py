"""The paper's step for smooth f."""

from dataclasses import dataclass

from bifactor.problem import Objective
from bifactor.state import State
from bifactor.steps.base import (
    Move,
    StepSize,
    check_smoothness,
    gradient_norm,
    reciprocal,
    smoothness,
    stacked_norm_squared,
)


@dataclass(frozen=True)
class Smooth(StepSize):
    """η = 1/(20·L·‖[U₀; V₀]‖₂² + 3‖∇f(U₀V₀ᴴ)‖₂), once; with `every_step`, 15 for 20 and (Uₜ, Vₜ) for (U₀, V₀).

    Eqs. (new_step_size_smooth) and (weta) of the paper, for BFGD without a balance term. The form for every step
    pays for ‖∇f‖₂ (a few lazy products) each time.

    Parameters
    ----------
    L : float, optional
        Replaces the problem's own L.
    every_step : bool
        Recompute both norms at each step.
    """

    L: float | None = None
    every_step: bool = False

    def __post_init__(self) -> None:
        check_smoothness(self.L)

    def init(self, problem: Objective, state: State, L_g: float) -> float:
        L_max = max(smoothness(self.L, problem), L_g)
        return L_max if self.every_step else self._eta(20 * L_max, problem, state)

    def next(self, problem: Objective, state: State, move: Move) -> State:
        if self.every_step:
            return move(self._eta(15 * state.memory, problem, state), state.memory)
        return move(state.memory, state.memory)

    @staticmethod
    def _eta(factor: float, problem: Objective, state: State) -> float:
        return reciprocal(factor * stacked_norm_squared(state) + 3 * gradient_norm(problem, state))
