"""Estimate of the duration of a fit from single passes over its data."""

import time

from bifactor.models.completion.noise_selection import CANDIDATES, ENTRIES_PER_COMPONENT, MAX_NOISE_SELECTION_ENTRIES
from bifactor.models.hyperparameters import MAX_RANK
from bifactor.problems.objective import Problem

PASSES = {"rank and ridge": 3000, "ridge": 2000, "nothing": 450}
"""Evaluations of value and gradient at full rank that take as long as a fit, by the settings to be chosen.

Medians over five data sets of 100,000 to 2,500,000 numbers; single ones are between a third and twice the median, and
so are labels. The first two are with one ridge for all, times 2.2, the measured ratio for three sets of ratings.
Below 100,000 numbers a fit may take longer than estimated, but at most a few seconds.
"""

SWEEPS = 40
"""Sweeps of a posterior. A sweep takes nearly as many passes as there are columns."""


def expected_seconds(problem: Problem, n_components: int | None, ridge: float | None, posterior: bool) -> float:
    """Estimated seconds for the choice of settings and the fit, usually within a factor of three."""
    if posterior:
        columns = min(*problem.shape, ENTRIES_PER_COMPONENT["separate"] if n_components is None else n_components)
        choosing = len(CANDIDATES) * min(1.0, MAX_NOISE_SELECTION_ENTRIES / problem.y.size)
        return (1 + choosing) * SWEEPS * (columns + 1) * _pass_seconds(problem, columns)
    columns = min(*problem.shape, MAX_RANK if n_components is None else n_components)
    choice = "nothing" if ridge is not None else "rank and ridge" if n_components is None else "ridge"
    return PASSES[choice] * _pass_seconds(problem, columns)


def _pass_seconds(problem: Problem, columns: int) -> float:
    """The minimum of three passes, after one that may have to compile."""
    x, seconds = problem.zero(columns), []
    for _ in range(4):
        started = time.perf_counter()
        problem.f.evaluate(x)
        seconds.append(time.perf_counter() - started)
    return min(seconds[1:])
