"""When a run ends."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from bifactor.errors import InputError
from bifactor.result import Status
from bifactor.validation import is_count, require_positive

if TYPE_CHECKING:
    from bifactor.run import Run

WINDOW = 10
"""Iterations over which the objective must fall by more than objective_tol."""


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
            if not (np.isfinite(getattr(self, name)) and getattr(self, name) >= 0):
                raise InputError(f"{name}={getattr(self, name)!r} is not a number ≥ 0. Use 0 to turn the test off.")
        if self.time_limit is not None:
            require_positive(self.time_limit, "time_limit", "It counts seconds.")

    def at_precision(self, eps: float) -> "Stopping":
        """The same limits with a tol that this precision can tell from 0."""
        return replace(self, tol=max(self.tol, 4 * eps)) if self.tol > 0 else self

    def check(self, run: "Run", seconds: float) -> Status | None:
        """How the run ends here, or None if it goes on."""
        objective, gradient, change = run.objective, run.gradient_norm, run.relative_change
        if run.state.stalled:
            return Status.PRECISION
        if gradient[-1] <= self.gradient_tol * gradient[0] or gradient[-1] == 0:
            return Status.GRADIENT
        if run.iteration > 0 and self.tol > 0 and change[-1] <= self.tol:
            return Status.RELATIVE_CHANGE
        if self.objective_tol > 0 and run.iteration >= WINDOW:
            fall = objective[-1 - WINDOW] - objective[-1]
            if fall <= self.objective_tol * abs(objective[-1]):
                return Status.PLATEAU
        if run.iteration >= self.max_iter:
            return Status.MAX_ITER
        if self.time_limit is not None and seconds >= self.time_limit:
            return Status.TIME_LIMIT
        return None
