"""The base class of the paper's step rules: a bound from L and the norms at the start, or at every step."""

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
class Curved(Value, key="curvature_bound"):
    """max{L, L_g}, and the corresponding step at the start."""

    L: float
    eta: float


@dataclass(frozen=True)
class TheoryStep(StepSize[Curved]):
    """η = 1/`once` with the norms at the start, or 1/`each` with those at every step.

    Parameters
    ----------
    L : float, optional
        A constant to use instead of the global L of the problem, for instance a restricted one: completion normalised
        by the observed fraction has L = 1/ρ over all matrices but about 1 over incoherent low-rank ones.
    every_step : bool
        Whether to recompute the norms at each step.
    """

    L: float | None = None
    every_step: bool = False

    def __post_init__(self) -> None:
        settle_positive(self, "L", "Leave it out to use that of the problem.", optional=True)

    @abstractmethod
    def once(self, L: float, problem: Objective, x: Factors) -> float:
        """1/η at the start; L is already max{L, L_g}."""

    @abstractmethod
    def each(self, L: float, problem: Objective, x: Factors) -> float:
        """1/η at the present factors."""

    def check(self, problem: Objective) -> None:
        if self.L is None:
            _ = problem.smoothness  # raises an error if there is none

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
    """‖∇f(UVᴴ)‖₂, from the same random start each time, so that runs are reproducible."""
    return spectral_norm(problem.f.gradient(x), np.random.default_rng(0))
