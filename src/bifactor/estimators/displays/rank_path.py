"""Choice of a rank or a ridge."""

from typing import Any, Self

from bifactor.arrays import Array
from bifactor.errors import InputError
from bifactor.estimators.displays.drawing import FIRST, SECOND, axes_for, fitted
from bifactor.models.tuning import RidgePath
from bifactor.running.result import RankPath, Result


class RankPathDisplay:
    """The held-out loss for every rank, or every ridge, that was tried, with standard errors; a line marks the choice.

    Parameters
    ----------
    tried, held_out, standard_error : array
        Ranks or ridges, their held-out losses, and the standard errors of the differences to the best one.
    chosen : float
        The rank or ridge that was chosen.
    name : {"rank", "ridge"}
        Label of the horizontal axis.
    """

    def __init__(self, tried: Array, held_out: Array, standard_error: Array, chosen: float, name: str):
        self.tried, self.held_out, self.standard_error = tried, held_out, standard_error
        self.chosen, self.name = chosen, name

    @classmethod
    def from_path(cls, path: RankPath | RidgePath, *, ax: Any = None) -> Self:
        """Draw a `rank_path` or a `ridge_path_`."""
        if isinstance(path, RankPath):
            return cls(path.rank, path.held_out, path.error, path.chosen, "rank").plot(ax)
        return cls(path.ridges, path.held_out, path.standard_error, path.chosen, "ridge").plot(ax)

    @classmethod
    def from_result(cls, result: Result, *, ax: Any = None) -> Self:
        """Draw how the rank was chosen."""
        if result.rank_path is None:
            raise InputError("This result has no rank_path: its rank was given. Solve with rank='auto'.")
        return cls.from_path(result.rank_path, ax=ax)

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> Self:
        """Draw how the ridge was chosen."""
        path = fitted(estimator, "ridge_path_")
        if path is None:
            fact = "This fit has no ridge_path_: the ridge was given, or there are too few data."
            raise InputError(f"{fact} Pass alpha='auto'.")
        return cls.from_path(path, ax=ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw."""
        self.ax_, self.figure_ = axes_for(ax)
        self.ax_.errorbar(self.tried, self.held_out, self.standard_error, color=FIRST, marker="o", capsize=3)
        self.ax_.axvline(self.chosen, color=SECOND, linestyle="--", label=f"chosen: {self.chosen:.3g}")
        positive = self.tried[self.tried > 0]
        if self.name == "ridge" and positive.size:
            # A ridge of 0 is drawn too, one decade to the left of the smallest one.
            exact = positive.size < self.tried.size
            self.ax_.set_xscale("symlog" if exact else "log", **({"linthresh": positive.min()} if exact else {}))
        if self.name == "rank":
            self.ax_.xaxis.get_major_locator().set_params(integer=True)
        self.ax_.set(xlabel=self.name, ylabel="held-out loss per entry")
        self.ax_.legend()
        return self
