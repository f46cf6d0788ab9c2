"""A step chosen by hand."""

from dataclasses import dataclass

from bifactor.objective import Objective
from bifactor.path import Path
from bifactor.state import State
from bifactor.steps.base import StepSize
from bifactor.validation import settle_positive


@dataclass(frozen=True)
class Constant(StepSize):
    """The same η at every step. Local stability needs η < 2/(L·‖[U; V]‖₂²)."""

    eta: float

    def __post_init__(self) -> None:
        settle_positive(self, "eta", "Try steps.Backtracking() if unsure.")

    def init(self, problem: Objective, state: State, L_g: float) -> float:
        return self.eta

    def next(self, path: Path) -> State:
        return path.to(path.state.memory, path.state.memory)
