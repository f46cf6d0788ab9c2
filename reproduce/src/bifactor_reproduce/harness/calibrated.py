"""The step that goes with the paper's tables."""

import math
from dataclasses import dataclass

from bifactor.problems.curve import FactorCurve
from bifactor.problems.objective import Objective
from bifactor.problems.state import Point
from bifactor.steps import StepSize
from bifactor.steps.base import Length, Step, reciprocal


@dataclass(frozen=True)
class Calibrated(StepSize[Length]):
    """η = 1/(2√ρ‖[U₀; V₀]‖₂²), a fit to the iteration counts behind the paper's tables and not a rule of the paper.

    ρ, the share of measurements or of entries, is the typical curvature of f.
    """

    def init(self, problem: Objective, point: Point, L_g: float) -> Length:
        return Length(reciprocal(2 * math.sqrt(problem.scale) * point.x.spectral_norm_squared()))

    def next(self, path: FactorCurve, memory: Length) -> Step:
        return Step(path.to(memory.eta), memory)
