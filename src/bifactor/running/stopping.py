"""When a run ends."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bifactor.arrays import epsilon
from bifactor.errors import InputError
from bifactor.problems.state import Settled, Stalled
from bifactor.running.result import Status
from bifactor.validation import is_at_least_zero, is_count, positive

if TYPE_CHECKING:
    from bifactor.running.run import Run

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

    def check(self, run: "Run", seconds: float) -> Status | None:
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

    def _exhausted(self, run: "Run", seconds: float) -> Status | None:
        if run.iteration >= self.max_iter:
            return Status.MAX_ITER
        if self.time_limit is not None and seconds >= self.time_limit:
            return Status.TIME_LIMIT
        return None

    @staticmethod
    def _at_rounding(run: "Run", phase: Stalled) -> bool:
        """Whether the decrease that a stalled step rule predicted is lost in the rounding of the function."""
        eps, level = epsilon(run.state.U), max(abs(run.records[-1].objective), phase.level)
        visible = eps * level + eps**2 * (abs(run.records[0].objective) + run.magnitude)
        return phase.promised <= 1e3 * visible
