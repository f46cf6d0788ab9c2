"""Deviance explained by each component."""

from typing import Any, Self

import numpy as np

from bifactor.arrays import Array
from bifactor.estimators.displays.drawing import FIRST, SECOND, axes_for, fitted


class ScreeDisplay:
    """Share of the deviance explained by each component, as bars, and the cumulative share, as a line.

    Parameters
    ----------
    explained : array
        One share per component.
    """

    def __init__(self, explained: Array):
        self.explained = np.asarray(explained)

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> Self:
        """Draw `explained_deviance_ratio_` of a `LogisticPCA` or `PoissonPCA`."""
        return cls(fitted(estimator, "explained_deviance_ratio_")).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw."""
        self.ax_, self.figure_ = axes_for(ax)
        places = np.arange(1, self.explained.size + 1)
        self.ax_.bar(places, self.explained, color=FIRST, label="each")
        self.ax_.plot(places, np.cumsum(self.explained), color=SECOND, marker="o", label="cumulative")
        self.ax_.xaxis.get_major_locator().set_params(integer=True)
        self.ax_.set(xlabel="component", ylabel="deviance explained")
        self.ax_.legend()
        return self
