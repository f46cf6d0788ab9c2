"""Step sizes by backtracking."""

from dataclasses import dataclass
from functools import partial

from bifactor.arrays import epsilon
from bifactor.errors import InputError
from bifactor.problems.objective import Objective
from bifactor.problems.path import Path
from bifactor.problems.state import Point, Stalled, Value
from bifactor.steps.base import Step, StepSize, reciprocal, shortened
from bifactor.validation import settle_positive


@dataclass(frozen=True)
class Tried(Value, key="backtracking"):
    """The step that the last search accepted; before the first search, a guess."""

    eta: float
    guessed: bool = False


@dataclass(frozen=True)
class Backtracking(StepSize[Tried]):
    """Armijo's rule: halve η until F(W + ηD) ≤ F(W) − c·η·|⟨∇F, D⟩|, where F is the function being minimised.

    It needs no L, so it works for every loss. Each search starts slightly above the step that the last one accepted.
    The first starts at 1/(scale·‖[U₀; V₀]‖₂²) and, because that may be far off, also increases it by factors of four
    for as long as the objective decreases. If rounding hides any decrease, the step is `Stalled`.

    Parameters
    ----------
    decrease : float in (0, 1)
        The constant c. For a quadratic, the default of a half requires η to be at most the inverse of its curvature.
    shrink, grow : float
        The factor of a rejected step, and the factor of an accepted one before the next search.
    """

    decrease: float = 0.5
    shrink: float = 0.5
    grow: float = 1.1

    def __post_init__(self) -> None:
        for name in ("decrease", "shrink", "grow"):
            settle_positive(self, name, "Choose 0 < decrease < 1, 0 < shrink < 1 and grow ≥ 1.")
        if not (self.decrease < 1 and self.shrink < 1 and self.grow >= 1):
            raise InputError(f"{self} is not possible. Choose 0 < decrease < 1, 0 < shrink < 1 and grow ≥ 1.")

    def init(self, problem: Objective, point: Point, L_g: float) -> Tried:
        return Tried(reciprocal(max(problem.scale, L_g) * point.x.spectral_norm_squared()), guessed=True)

    def next(self, path: Path, memory: Tried) -> Step:
        x, eps, promise = path.point.x, epsilon(path.point.x.left), -path.slope
        eta = self.grow * memory.eta
        if memory.guessed:
            # If the decrease of a guess is lost in rounding, begin with a visible one, unless that is far off.
            visible = 1e4 * eps * abs(path.point.value) / max(promise, 1e-300)
            eta = visible if eta < visible < 1e6 * eta else eta
        eta = min(eta, path.longest)
        taken = shortened(partial(self._attempt, path), eta, eps * x.norm() / max(path.d.norm(), 1e-150), self.shrink)
        if taken is None:
            return Step(path.point, memory, Stalled(memory.eta * promise, abs(path.point.value)))
        while memory.guessed:
            further = self._attempt(path, 4 * taken.memory.eta) if 4 * taken.memory.eta <= path.longest else None
            if further is None or not further.point.value < taken.point.value:
                break
            taken = further
        return taken

    def _attempt(self, path: Path, eta: float) -> Step | None:
        """The step, if it lowers F by enough."""
        trial, first = path.to(eta), path.point.value
        enough = trial.value < first and trial.value <= first + self.decrease * eta * path.slope
        return Step(trial, Tried(eta)) if enough else None
