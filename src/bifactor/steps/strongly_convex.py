"""The paper's step for smooth and strongly convex f."""

from dataclasses import dataclass

from bifactor.problem import Objective
from bifactor.state import State
from bifactor.steps.base import (
    Move,
    StepSize,
    check_smoothness,
    reciprocal,
    smoothness,
    stacked_norm_squared,
)


@dataclass(frozen=True)
class StronglyConvex(StepSize):
    """η = 1/(12·max{L, L_g}·‖[U₀; V₀]‖₂²), once; with `every_step`, 1/(8·max{L, L_g}·‖[Uₜ; Vₜ]‖₂²).

    The two are eqs. (new_step_size) and (weta1) of the paper; from a start within Assumption A1 the first implies
    the second. Both are safe and slow: stability alone allows steps 24 times longer.

    Parameters
    ----------
    L : float, optional
        Replaces the problem's own global L, for instance by a restricted one: completion normalised by the observed
        fraction has L = 1/ρ over all matrices but about 1 over incoherent low-rank ones.
    every_step : bool
        Recompute the norm of the factors at each step.
    """

    L: float | None = None
    every_step: bool = False

    def __post_init__(self) -> None:
        check_smoothness(self.L)

    def init(self, problem: Objective, state: State, L_g: float) -> float:
        L_max = max(smoothness(self.L, problem), L_g)
        return L_max if self.every_step else reciprocal(12 * L_max * stacked_norm_squared(state))

    def next(self, problem: Objective, state: State, move: Move) -> State:
        if self.every_step:
            return move(reciprocal(8 * state.memory * stacked_norm_squared(state)), state.memory)
        return move(state.memory, state.memory)
