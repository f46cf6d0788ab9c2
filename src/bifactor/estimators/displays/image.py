"""A picture before and after."""

from typing import Any, Self

import numpy as np

from bifactor.arrays import Array
from bifactor.errors import InputError
from bifactor.estimators.displays.drawing import axes_for, completion_problem, fitted, matplotlib_or_advice
from bifactor.estimators.stores import held
from bifactor.running.result import Result

HOLES = {2: "#d9534f", 3: "#b4b4b4"}
"""Colours of holes in grey and in colour pictures, chosen to be rare in them."""

WIDTH = 3.6
"""Width of a picture, in inches."""


class ImageDisplay:
    """A picture with holes, its completion and, if known, the original.

    Parameters
    ----------
    before : array, height × width, or height × width × 3
        The picture with NaN in the holes.
    after, truth : array of the same shape
        The completed picture, and optionally the original.
    """

    def __init__(self, before: Array, after: Array, truth: Array | None = None):
        shapes = {np.shape(picture) for picture in (before, after, truth) if picture is not None}
        if len(shapes) > 1:
            raise InputError(f"The pictures have shapes {sorted(shapes)}. Pass pictures of equal shape.")
        self.before, self.after, self.truth = np.asarray(before), after, truth

    @classmethod
    def from_result(cls, result: Result, *, truth: Array | None = None, ax: Any = None) -> Self:
        """Draw the known entries, and X."""
        problem = completion_problem(result)
        before = np.full(result.shape, np.nan)
        before[problem.operator.rows, problem.operator.cols] = problem.y
        return cls(before, result.matrix(), truth).plot(ax)

    @classmethod
    def from_estimator(cls, estimator: Any, *, truth: Array | None = None, ax: Any = None) -> Self:
        """Draw the known entries of a fit, and its completed matrix."""
        data = held(fitted(estimator, "observations_"))
        before = np.full(data.shape, np.nan)
        before[data.rows, data.cols] = data.values
        return cls(before, estimator.complete(), truth).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw side by side, on two axes, or three with the original; grey levels span the range of its values."""
        pictures = {"known": self.before, "completed": self.after, "original": self.truth}
        shown = {title: np.asarray(picture) for title, picture in pictures.items() if picture is not None}
        height, width = self.before.shape[:2]
        size = (WIDTH * len(shown), WIDTH * min(max(height / width, 0.3), 2.0) + 0.4)
        axes, self.figure_ = axes_for(ax, len(shown), size)
        self.ax_ = np.atleast_1d(axes)
        if self.ax_.size != len(shown):
            raise InputError(f"ax has {self.ax_.size} axes for {len(shown)} pictures. Pass one for each picture.")
        grey = matplotlib_or_advice().colormaps["gray"].with_extremes(bad=HOLES[2])
        reference = self.before if self.truth is None else self.truth
        low, high = float(np.nanmin(reference)), float(np.nanmax(reference))
        for axis, (title, picture) in zip(self.ax_.flat, shown.items(), strict=True):
            if picture.ndim == 3:
                holes = np.isnan(picture)
                solid = np.where(holes, matplotlib_or_advice().colors.to_rgb(HOLES[3]), np.clip(picture, 0, 1))
                axis.imshow(solid, interpolation="nearest")
            else:
                axis.imshow(picture, cmap=grey, vmin=low, vmax=high, interpolation="nearest")
            axis.set_title(title)
            axis.axis("off")
        return self
