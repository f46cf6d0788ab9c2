"""What the displays share: colours, axes, and where they find what they draw."""

from typing import Any

import numpy as np

from bifactor.errors import BifactorError, InputError
from bifactor.operators import Entries
from bifactor.problems.problem import Problem
from bifactor.running.result import Result

FIRST, SECOND, THIRD = "#1f5fa8", "#d1662b", "#3c8d53"


def axes_for(ax: Any, count: int = 1, size: tuple[float, float] = (5.5, 3.8)) -> tuple[Any, Any]:
    """The axes to draw on, new ones in a figure of some inches by default, and their figure."""
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
    """A fitted attribute."""
    if not hasattr(estimator, name):
        raise InputError(f"{type(estimator).__name__} has no {name}. Fit it first, or draw from what it has.")
    return getattr(estimator, name)


def completion_problem(result: Result) -> Any:
    """The problem of a run that completed a matrix."""
    problem = result.problem
    if not isinstance(problem, Problem) or not isinstance(problem.operator, Entries):
        raise InputError("This result does not hold a completion problem. Draw from arrays instead.")
    return problem
