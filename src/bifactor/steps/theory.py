"""What the paper's step rules share: a bound from L and the norms at the start, or the same anew at every step."""

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from bifactor.factors import Factors
from bifactor.problems.objective import Objective
from bifactor.problems.path import Path
from bifactor.problems.state import Point, Value
from bifactor.steps.base import Step, StepSize, reciprocal
from bifactor.svd import spectral_norm
from bifactor.validation import settle_positive


@dataclass(frozen=True)
class Curved(Value):
    """max{L, L_g}, and the step that goes with it at the start."""

    L: float
    eta: float


@dataclass(frozen=True)
class TheoryStep(StepSize[Curved]):
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
    def once(self, L: float, problem: Objective, x: Factors) -> float:
        """1/η from the start; L is already max{L, L_g}."""

    @abstractmethod
    def each(self, L: float, problem: Objective, x: Factors) -> float:
        """1/η from where the iteration is."""

    def check(self, problem: Objective) -> None:
        if self.L is None:
            _ = problem.smoothness  # raises where there is none

    def init(self, problem: Objective, point: Point, L_g: float) -> Curved:
        L = max(problem.smoothness if self.L is None else self.L, L_g)
        return Curved(L, reciprocal(self.once(L, problem, point.x) + problem.curvature_of_terms(point.x)))

    def next(self, path: Path, memory: Curved) -> Step:
        eta, problem = memory.eta, path.problem
        if self.every_step:
            x = path.point.x
            eta = reciprocal(self.each(memory.L, problem, x) + problem.curvature_of_terms(x))
        return Step(path.to(eta), memory)


def gradient_norm(problem: Objective, x: Factors) -> float:
    """‖∇f(UVᴴ)‖₂, by the same random start each time so that runs can be repeated."""
    return spectral_norm(problem.f.gradient(x), np.random.default_rng(0))
