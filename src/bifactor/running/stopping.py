"""When a run ends."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from bifactor.arrays import epsilon
from bifactor.errors import InputError
from bifactor.problems.objective import Objective
from bifactor.problems.state import Point, Settled, Stalled
from bifactor.running.result import Status
from bifactor.validation import is_at_least_zero, is_count, positive

if TYPE_CHECKING:
    from bifactor.running.record import RunRecord

STILL = 3
"""The number of consecutive iterations that must change X by less than tol."""

WINDOW = 10
"""The number of iterations in which the objective must fall by more than objective_tol."""


@dataclass(frozen=True)
class Stopping:
    """The limits of a run; see `solve` for their meaning."""

    max_iter: int
    tol: float
    gradient_tol: float
    objective_tol: float
    time_limit: float | None

    def __post_init__(self) -> None:
        if not is_count(self.max_iter, 0):
            raise InputError(f"max_iter={self.max_iter!r} is not an integer ≥ 0.")
        for name in ("tol", "gradient_tol", "objective_tol"):
            if not is_at_least_zero(getattr(self, name)):
                raise InputError(f"{name}={getattr(self, name)!r} is not a number ≥ 0. Use 0 to turn the test off.")
        if self.time_limit is not None:
            positive(self.time_limit, "time_limit", "It counts seconds.")

    def at_precision(self, eps: float) -> "Stopping":
        """The same limits with a tol that is significant in this precision."""
        return replace(self, tol=max(self.tol, 4 * eps)) if self.tol > 0 else self

    def check(self, run: "RunRecord", seconds: float) -> Status | None:
        """The status with which the run ends here, or None if it continues."""
        phase = run.state.phase
        if phase.staged:
            return self._exhausted(run, seconds)
        first, last = run.records[0], run.records[-1]
        if isinstance(phase, Settled):
            return Status.SETTLED
        if last.gradient_norm <= self.gradient_tol * first.gradient_norm or last.gradient_norm == 0:
            return Status.GRADIENT
        eps, fallen = epsilon(run.state.U), abs(last.objective)
        if fallen <= eps * abs(first.objective) and fallen <= eps**2 * run.magnitude:
            return Status.PRECISION  # the data are explained up to the rounding of z
        if isinstance(phase, Stalled):
            return Status.PRECISION if self._at_rounding(run, phase) else Status.STALLED
        if self.tol > 0 and run.iteration >= STILL and all(r.relative_change <= self.tol for r in run.records[-STILL:]):
            return Status.RELATIVE_CHANGE
        if self.objective_tol > 0 and run.iteration >= WINDOW:
            fall = run.records[-1 - WINDOW].objective - last.objective
            if fall <= self.objective_tol * abs(last.objective):
                return Status.PLATEAU
        return self._exhausted(run, seconds)

    def _exhausted(self, run: "RunRecord", seconds: float) -> Status | None:
        if run.iteration >= self.max_iter:
            return Status.MAX_ITER
        if self.time_limit is not None and seconds >= self.time_limit:
            return Status.TIME_LIMIT
        return None

    @staticmethod
    def _at_rounding(run: "RunRecord", phase: Stalled) -> bool:
        """Whether the decrease that a stalled step rule predicted is lost in the rounding of the function."""
        eps, level = epsilon(run.state.U), max(abs(run.records[-1].objective), phase.level)
        visible = eps * level + eps**2 * (abs(run.records[0].objective) + run.magnitude)
        return phase.promised <= 1e3 * visible


# A test of whether a gradient is small that does not depend on units, the start or the steps.

SMALL = 1e-3
"""The share of the gradient's size at X = 0 that counts as small. Of 243 runs of six solvers that ended by tol, those
at a stationary point had at most 2e-5 of it, and the four others at least a twelfth."""


def gradient_is_small(problem: Objective, point: Point, first: float) -> bool:
    """Whether ‖∇F(x)‖ ≤ SMALL·‖(∇f(0)V, ∇f(0)ᴴU)‖, that is, small relative to the gradient at X = 0.

    If f has no gradient at 0, the norm of the `first` gradient is used instead.
    """
    left = point.gradient.norm()
    if left == 0:
        return True
    pull = _pull(problem, point)
    return left <= SMALL * (pull if np.isfinite(pull) else first)


def _pull(problem: Objective, point: Point) -> float:
    x = point.x
    try:
        return x.gradient(*problem.f.gradient(problem.zero(1)).products(x.left, x.right)).norm()
    except Exception:  # a user's Function need not be defined at X = 0, and the answer must not be lost
        return np.nan
