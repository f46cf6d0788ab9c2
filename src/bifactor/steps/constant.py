"""A constant step size."""

from dataclasses import dataclass

from bifactor.problems.objective import Objective
from bifactor.problems.path import Path
from bifactor.problems.state import Point
from bifactor.steps.base import Length, Step, StepSize
from bifactor.validation import settle_positive


@dataclass(frozen=True)
class Constant(StepSize[Length]):
    """The same η at every step. Local stability needs η < 2/(L·‖[U; V]‖₂²)."""

    eta: float

    def __post_init__(self) -> None:
        settle_positive(self, "eta", "Try steps.Backtracking() if unsure.")

    def init(self, problem: Objective, point: Point, L_g: float) -> Length:
        return Length(self.eta)

    def next(self, path: Path, memory: Length) -> Step:
        return Step(path.to(memory.eta), memory)
