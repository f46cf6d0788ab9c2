"""Common parts of the displays: colours, axes and access to results."""

from typing import Any

import numpy as np

from bifactor.errors import BifactorError, InputError
from bifactor.operators import Entries
from bifactor.problems.objective import Problem
from bifactor.running.result import Result

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


def fitted(estimator: Any, name: str) -> Any:
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
