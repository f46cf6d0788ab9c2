"""Observed against predicted values."""

from typing import Any, Self

import numpy as np

from bifactor.arrays import Array
from bifactor.errors import InputError
from bifactor.estimators.displays.drawing import FIRST, SECOND, axes_for, completion_problem, fitted
from bifactor.estimators.stores import held
from bifactor.running.result import Result
from bifactor.validation import counted

MANY = 2000
"""Number of points above which their density is drawn instead."""


class ObservedPredictedDisplay:
    """Observed against predicted values, as a scatter plot, or as a density if there are many.

    Parameters
    ----------
    observed, predicted : array
        Pairs of values.
    """

    def __init__(self, observed: Array, predicted: Array):
        if np.shape(observed) != np.shape(predicted) or np.size(observed) == 0:
            sizes = f"{np.size(observed)} observed and {np.size(predicted)} predicted values"
            raise InputError(f"There are {sizes}. Pass pairs.")
        self.observed, self.predicted = np.ravel(observed), np.ravel(predicted)

    @classmethod
    def from_predictions(cls, observed: Array, predicted: Array, *, ax: Any = None) -> Self:
        """Draw pairs, preferably of entries that were not used in the fit."""
        return cls(observed, predicted).plot(ax)

    @classmethod
    def from_result(cls, result: Result, *, ax: Any = None) -> Self:
        """Draw the measurements of a completion problem."""
        problem = completion_problem(result)
        return cls(problem.y, problem.loss.mean(problem.operator.forward(result.U, result.V))).plot(ax)

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> Self:
        """Draw the known entries of a fit."""
        data, model = held(fitted(estimator, "observations_")), estimator.model_
        return cls(data.values, model.predicted(model.scores(data.rows, data.cols))).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw."""
        self.ax_, self.figure_ = axes_for(ax)
        error = float(np.sqrt(np.mean((self.observed - self.predicted) ** 2)))
        if self.observed.size > MANY:
            drawn = self.ax_.hist2d(self.predicted, self.observed, bins=80, norm="log", cmap="Blues")[3]
            self.figure_.colorbar(drawn, ax=self.ax_, label="pairs")
        else:
            self.ax_.scatter(self.predicted, self.observed, s=8, alpha=0.5, color=FIRST, edgecolors="none")
        both = [min(self.observed.min(), self.predicted.min()), max(self.observed.max(), self.predicted.max())]
        self.ax_.plot(both, both, color=SECOND, linestyle="--", linewidth=1)
        self.ax_.set(
            xlabel="predicted", ylabel="observed", title=f"{counted(self.observed.size, 'pair')}, RMSE {error:.4g}"
        )
        return self
