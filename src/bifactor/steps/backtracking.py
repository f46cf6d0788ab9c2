"""The longest step that demonstrably descends."""

from dataclasses import dataclass, replace

from bifactor.arrays import epsilon, pair_norm, spectral_norm_squared
from bifactor.errors import InputError
from bifactor.objective import Objective
from bifactor.path import Path
from bifactor.state import State
from bifactor.steps.base import StepSize, reciprocal
from bifactor.validation import settle_positive


@dataclass(frozen=True)
class Backtracking(StepSize):
    """Armijo's rule: halve η until F(W + ηD) ≤ F(W) − c·η·|⟨∇F, D⟩|, with F the very function being minimised.

    Needs no L, so it serves every loss. Each search starts a little above the step that the last one accepted. The
    first starts at 1/(scale·‖[U₀; V₀]‖₂²) and, because that may be far off, also goes up from there by factors of four
    for as long as the objective keeps falling. Where rounding hides all decrease the state is marked `stalled`.

    Parameters
    ----------
    decrease : float in (0, 1)
        c. The default, a half, asks of a quadratic that η stay below the inverse of its curvature.
    shrink, grow : float
        What a refused step is multiplied by, and what an accepted one is before the next search.
    """

    decrease: float = 0.5
    shrink: float = 0.5
    grow: float = 1.1

    def __post_init__(self) -> None:
        for name in ("decrease", "shrink", "grow"):
            settle_positive(self, name, "See the docstring for its range.")
        if not (self.decrease < 1 and self.shrink < 1 and self.grow >= 1):
            raise InputError(f"{self} needs 0 < decrease < 1, 0 < shrink < 1 and grow ≥ 1.")

    def init(self, problem: Objective, state: State, L_g: float) -> float:
        # Negative until the first step is taken.
        return -reciprocal(max(problem.scale, L_g) * spectral_norm_squared(state.U, state.V))

    def next(self, path: Path) -> State:
        state, slope = path.state, -path.slope
        shortest = epsilon(state.U) * pair_norm(state.U, state.V) / max(pair_norm(path.D, path.E), 1e-150)
        eta = self.grow * abs(state.memory)
        if state.memory < 0:
            # A guess whose promise is lost in rounding says nothing: begin where one can see, unless that is far off.
            visible = 1e4 * epsilon(state.U) * abs(state.value) / max(slope, 1e-300)
            eta = visible if eta < visible < 1e6 * eta else eta
        while eta > shortest:
            trial = path.to(eta, eta)
            if trial.value < state.value and trial.value <= state.value - self.decrease * eta * slope:
                return self._longer(path, trial) if state.memory < 0 else trial
            eta *= self.shrink
        return replace(state, stalled=abs(state.memory) * slope)

    def _longer(self, path: Path, trial: State) -> State:
        while True:
            eta = 4 * trial.memory
            further = path.to(eta, eta)
            if not (
                further.value < trial.value and further.value <= path.state.value + self.decrease * eta * path.slope
            ):
                return trial
            trial = further
