"""What the paper's step rules share: a bound from L and the norms at the start, or the same anew at every step."""

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from bifactor.arrays import spectral_norm_squared
from bifactor.objective import Objective
from bifactor.path import Path
from bifactor.state import State
from bifactor.steps.base import StepSize, reciprocal
from bifactor.svd import spectral_norm
from bifactor.validation import settle_positive


@dataclass(frozen=True)
class TheoryStep(StepSize):
    """η = 1/`once` with the norms at the start, or 1/`each` with those at every step.

    Parameters
    ----------
    L : float, optional
        Replaces the problem's own global L, for instance by a restricted one: completion normalised by the observed
        fraction has L = 1/ρ over all matrices but about 1 over incoherent low-rank ones.
    every_step : bool
        Recompute the norms at each step.
    """

    L: float | None = None
    every_step: bool = False

    def __post_init__(self) -> None:
        settle_positive(self, "L", "Leave it out to use the problem's own.", optional=True)

    @abstractmethod
    def once(self, L: float, problem: Objective, state: State) -> float:
        """1/η from the start; L is already max{L, L_g}."""

    @abstractmethod
    def each(self, L: float, problem: Objective, state: State) -> float:
        """1/η from the present state."""

    def check(self, problem: Objective) -> None:
        if self.L is None:
            _ = problem.smoothness  # raises where there is none

    def init(self, problem: Objective, state: State, L_g: float) -> float:
        L = max(problem.smoothness if self.L is None else self.L, L_g)
        inverse = self.once(L, problem, state) + _penalty(problem)
        return L if self.every_step else reciprocal(inverse)

    def next(self, path: Path) -> State:
        problem, state = path.problem, path.state
        if self.every_step:
            inverse = self.each(state.memory, problem, state) + _penalty(problem)
            return path.to(reciprocal(inverse), state.memory)
        return path.to(state.memory, state.memory)


def _penalty(problem: Objective) -> float:
    """What a penalty adds to the curvature in the factors; the paper's f has none."""
    return 0.0 if problem.penalty is None else max(problem.penalty.curvature)


def stacked_norm_squared(state: State) -> float:
    """‖[U; V]‖₂²."""
    return spectral_norm_squared(state.U, state.V)


def gradient_norm(problem: Objective, state: State) -> float:
    """‖∇f(UVᴴ)‖₂, by the same random start each time so that runs can be repeated."""
    return spectral_norm(problem.gradient(state.U, state.V), np.random.default_rng(0))
