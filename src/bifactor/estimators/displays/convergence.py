"""Convergence of a run."""

from typing import Any, Self

import numpy as np

from bifactor.arrays import Array
from bifactor.errors import InputError
from bifactor.estimators.displays.drawing import FIRST, SECOND, axes_for, fitted
from bifactor.running.result import Result
from bifactor.validation import counted


class ConvergenceDisplay:
    """The objective (left axis) and the relative change of X (right axis), iteration by iteration.

    Parameters
    ----------
    objective, relative_change, seconds : array
        As in `Result.history`.
    status : str
        How the run ended, for the title.
    """

    def __init__(self, objective: Array, relative_change: Array, seconds: Array, status: str):
        self.objective, self.relative_change, self.seconds = objective, relative_change, seconds
        self.status = status

    @classmethod
    def from_result(cls, result: Result, *, against: str = "iterations", ax: Any = None) -> Self:
        """Draw the history of a run."""
        history = result.history
        return cls(history.objective, history.relative_change, history.seconds, result.status.name).plot(
            ax, against=against
        )

    @classmethod
    def from_estimator(cls, estimator: Any, *, against: str = "iterations", ax: Any = None) -> Self:
        """Draw the history of a fit."""
        return cls.from_result(fitted(estimator, "result_"), against=against, ax=ax)

    def plot(self, ax: Any = None, *, against: str = "iterations") -> Self:
        """Draw against "iterations" or "seconds"; the right axis is `right_ax_`."""
        if against not in ("iterations", "seconds"):
            raise InputError(f"against={against!r} is neither 'iterations' nor 'seconds'. Choose one.")
        self.ax_, self.figure_ = axes_for(ax)
        x = np.arange(self.objective.size) if against == "iterations" else self.seconds
        mark = "o" if x.size <= 40 else None
        self.ax_.plot(x, self.objective, color=FIRST, marker=mark, markersize=3)
        self.ax_.set(xlabel="iteration" if against == "iterations" else "seconds")
        self.ax_.set_title(f"{self.status.lower().replace('_', ' ')}, {counted(self.objective.size - 1, 'iteration')}")
        self.ax_.set_ylabel("objective", color=FIRST)
        if np.all(self.objective > 0):
            self.ax_.set_yscale("log")
        self.right_ax_ = self.ax_.twinx()
        change = np.where(self.relative_change > 0, self.relative_change, np.nan)
        self.right_ax_.plot(x, change, color=SECOND, marker=mark, markersize=3, linestyle="--")
        self.right_ax_.set_yscale("log")
        self.right_ax_.set_ylabel("relative change of X", color=SECOND)
        return self
