"""Plots in the style of scikit-learn, drawn by `plot` from a result or an estimator, which sets `ax_` and `figure_`.

They need matplotlib, which `pip install 'bifactor[plot]'` installs.
"""

from typing import Any, Self

import numpy as np

from bifactor.arrays import Array
from bifactor.display.listing import cell_text
from bifactor.errors import BifactorError, InputError
from bifactor.estimators.validation import require_in_memory
from bifactor.metrics import triplets
from bifactor.operators import Entries
from bifactor.problems.objective import Problem
from bifactor.running.result import Result
from bifactor.running.search import LOGARITHMIC, Search
from bifactor.validation import pluralize

__all__ = [
    "ConvergenceDisplay",
    "ImageDisplay",
    "ObservedPredictedDisplay",
    "ScreeDisplay",
    "SearchDisplay",
    "SpectrumDisplay",
]

FIRST, SECOND, THIRD = "#1f5fa8", "#d1662b", "#3c8d53"


def axes_for(ax: Any, count: int = 1, size: tuple[float, float] = (5.5, 3.8)) -> tuple[Any, Any]:
    """The axes to draw on and their figure; by default new ones, with `size` in inches."""
    matplotlib_or_advice()
    if ax is None:
        from matplotlib import pyplot as plt

        figure, ax = plt.subplots(1, count, figsize=size, layout="constrained")
        return ax, figure
    return ax, np.atleast_1d(ax).flat[0].figure


def matplotlib_or_advice() -> Any:
    try:
        import matplotlib
        import matplotlib.colors
    except ImportError:
        raise BifactorError("Plots need matplotlib. Install it with: pip install 'bifactor[plot]'") from None
    return matplotlib


def fitted_attribute(estimator: Any, name: str) -> Any:
    """An attribute of a fitted estimator."""
    if not hasattr(estimator, name):
        raise InputError(f"{type(estimator).__name__} has no {name}. Fit it first, or draw from another object.")
    return getattr(estimator, name)


def completion_problem(result: Result) -> Any:
    """The problem of a matrix completion run."""
    problem = result.problem
    if not isinstance(problem, Problem) or not isinstance(problem.operator, Entries):
        raise InputError("This result is not of a completion problem. Draw from arrays instead.")
    return problem


# Convergence of a run.


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
        return cls.from_result(fitted_attribute(estimator, "result_"), against=against, ax=ax)

    def plot(self, ax: Any = None, *, against: str = "iterations") -> Self:
        """Draw against "iterations" or "seconds"; the right axis is `right_ax_`."""
        if against not in ("iterations", "seconds"):
            raise InputError(f"against={against!r} is neither 'iterations' nor 'seconds'. Choose one.")
        self.ax_, self.figure_ = axes_for(ax)
        x = np.arange(self.objective.size) if against == "iterations" else self.seconds
        mark = "o" if x.size <= 40 else None
        self.ax_.plot(x, self.objective, color=FIRST, marker=mark, markersize=3)
        self.ax_.set(xlabel="iteration" if against == "iterations" else "seconds")
        self.ax_.set_title(
            f"{self.status.lower().replace('_', ' ')}, {pluralize(self.objective.size - 1, 'iteration')}"
        )
        self.ax_.set_ylabel("objective", color=FIRST)
        if np.all(self.objective > 0):
            self.ax_.set_yscale("log")
        self.right_ax_ = self.ax_.twinx()
        change = np.where(self.relative_change > 0, self.relative_change, np.nan)
        self.right_ax_.plot(x, change, color=SECOND, marker=mark, markersize=3, linestyle="--")
        self.right_ax_.set_yscale("log")
        self.right_ax_.set_ylabel("relative change of X", color=SECOND)
        return self


# A picture before and after.

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
        data = require_in_memory(fitted_attribute(estimator, "observations_"))
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


# Observed against predicted values.

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
        data, model = require_in_memory(fitted_attribute(estimator, "observations_")), estimator.model_
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
            xlabel="predicted", ylabel="observed", title=f"{pluralize(self.observed.size, 'pair')}, RMSE {error:.4g}"
        )
        return self


# Search for a rank, a ridge, a noise model or weights.

SEARCHES = ("ridge_search_", "noise_search_", "weight_search_", "rank_search_")
"""Attributes of estimators, of which the first that is not None is drawn."""


class SearchDisplay:
    """The score of every candidate that was tried, with standard errors where they are known; a line marks the choice.

    Parameters
    ----------
    search : Search
        The candidates and their scores.
    """

    def __init__(self, search: Search):
        self.search = search

    @classmethod
    def from_search(cls, search: Search, *, ax: Any = None) -> Self:
        """Draw a search."""
        return cls(search).plot(ax)

    @classmethod
    def from_result(cls, result: Result, *, ax: Any = None) -> Self:
        """Draw how the rank was chosen."""
        if result.rank_search is None:
            raise InputError("This result has no rank_search: its rank was given. Solve with rank='auto'.")
        return cls.from_search(result.rank_search, ax=ax)

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> Self:
        """Draw the search of an estimator: for a ridge, a noise model, weights or a rank."""
        names = [name for name in SEARCHES if hasattr(estimator, name)]
        if not names:
            fitted_attribute(estimator, SEARCHES[0])
        searches = [getattr(estimator, name) for name in names if getattr(estimator, name) is not None]
        if not searches:
            fact = f"This fit has no {' or '.join(names)}: all settings were given, or there are too few data."
            raise InputError(f"{fact} Leave one to the data, as ridge='auto' does.")
        return cls.from_search(searches[0], ax=ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw."""
        self.ax_, self.figure_ = axes_for(ax)
        search, (name, x) = self.search, self.search.axis()
        self.ax_.errorbar(x, search.score, search.standard_error, color=FIRST, marker="o", capsize=3)
        label = ", ".join(f"{key} {cell_text(value)}" for key, value in search.chosen.items())
        self.ax_.axvline(x[search.index], color=SECOND, linestyle="--", label=f"chosen: {label}")
        positive = x[x > 0]
        if name in LOGARITHMIC and positive.size:
            # A ridge of 0 is drawn too, one decade to the left of the smallest one.
            exact = positive.size < x.size
            self.ax_.set_xscale("symlog" if exact else "log", **({"linthresh": positive.min()} if exact else {}))
        if name not in LOGARITHMIC:
            self.ax_.xaxis.get_major_locator().set_params(integer=True)
        self.ax_.set(xlabel=name, ylabel=search.measure)
        self.ax_.legend()
        return self


# Deviance explained by each component.


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
        return cls(fitted_attribute(estimator, "explained_deviance_ratio_")).plot(ax)

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


# Singular values of a fit, and the balance of its factors.


class SpectrumDisplay:
    """The singular values of X = UVᴴ, and the squared ones of U and of V: all three agree if UᴴU = VᴴV.

    Parameters
    ----------
    singular_values : array
        Singular values of X, descending.
    left, right : array
        Squared singular values of U and of V.
    imbalance : float
        ‖UᴴU − VᴴV‖_F/‖X‖_F.
    """

    def __init__(self, singular_values: Array, left: Array, right: Array, imbalance: float):
        self.singular_values, self.left, self.right, self.imbalance = singular_values, left, right, imbalance

    @classmethod
    def from_factors(cls, U: Array, V: Array, *, ax: Any = None) -> Self:
        """Draw the spectrum of UVᴴ."""
        s = triplets(U, V)[1]
        left, right = (np.linalg.svd(F, compute_uv=False) ** 2 for F in (U, V))
        gap = float(np.linalg.norm(U.conj().T @ U - V.conj().T @ V))
        size = float(np.linalg.norm(s))
        return cls(s, left, right, gap / size if size > 0 else 0.0).plot(ax)

    @classmethod
    def from_result(cls, result: Result, *, ax: Any = None) -> Self:
        """Draw the spectrum of X of a run; columns of offsets, if any, are included."""
        return cls.from_factors(result.U, result.V, ax=ax)

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> Self:
        """Draw the spectrum of a fit, without offsets."""
        model = fitted_attribute(estimator, "model_")
        return cls.from_factors(model.U[:, model.fixed_columns :], model.V[:, model.fixed_columns :], ax=ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw."""
        self.ax_, self.figure_ = axes_for(ax)
        k = np.arange(1, self.singular_values.size + 1)
        self.ax_.plot(k, self.singular_values, color=FIRST, marker="o", label="σ(X)")
        self.ax_.plot(k, self.left, color=SECOND, marker="^", linestyle="none", markerfacecolor="none", label="σ(U)²")
        self.ax_.plot(k, self.right, color=THIRD, marker="v", linestyle="none", markerfacecolor="none", label="σ(V)²")
        if self.singular_values.size and np.all(self.singular_values > 0):
            self.ax_.set_yscale("log")
        self.ax_.xaxis.get_major_locator().set_params(integer=True)
        title = f"imbalance {self.imbalance:.2g}" if self.singular_values.size else "rank 0: no components"
        self.ax_.set(xlabel="component", ylabel="singular value", title=title)
        self.ax_.legend()
        return self
