"""The step that goes with the paper's tables."""

import math
from dataclasses import dataclass

from bifactor.objective import Objective
from bifactor.path import Path
from bifactor.state import State
from bifactor.steps import StepSize
from bifactor.steps.base import reciprocal
from bifactor.steps.theory import stacked_norm_squared


@dataclass(frozen=True)
class Calibrated(StepSize):
    """η = 1/(2√ρ‖[U₀; V₀]‖₂²), a fit to the iteration counts behind the paper's tables and not a rule of the paper.

    ρ, the share of measurements or of entries, is the typical curvature of f.
    """

    def init(self, problem: Objective, state: State, L_g: float) -> float:
        return reciprocal(2 * math.sqrt(problem.scale) * stacked_norm_squared(state))

    def next(self, path: Path) -> State:
        return path.to(path.state.memory, path.state.memory)
