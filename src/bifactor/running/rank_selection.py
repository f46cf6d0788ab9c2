"""`rank="auto"`: the rank is chosen by held-out measurements."""

from collections.abc import Callable

import numpy as np

from bifactor.arrays import Array
from bifactor.inits import Given, Spectral
from bifactor.problems.objective import Problem
from bifactor.running.holdout import Holdout
from bifactor.running.result import RankPath, Result
from bifactor.solvers.growth import add_columns

PATIENCE = 3
"""The number of consecutive ranks without a better held-out loss after which no more are tried."""

EXPLAINED = 1e-8
"""The training loss, relative to that of X = 0, at which a short fit explains the data, so that no column is added."""

Fit = Callable[[Problem, Given], Result]
"""A short fit from a start."""


def rank_path(problem: Problem, rng: np.random.Generator, fit: Fit, stop: Callable[[], bool]) -> RankPath:
    """Rank continuation on nine tenths of the measurements, column by column, until the rest is predicted no better.

    Parameters
    ----------
    stop : callable
        Called before each rank after the first; True ends the path there.
    """
    holdout = Holdout(problem, rng)
    train = holdout.train
    zero, extra = train.zero(), problem.kind.fixed_columns
    nothing = train.f.data.value(zero)
    x = Spectral()(train, 1, rng)
    ranks: list[int] = []
    fitted: list[float] = []
    losses: list[Array] = []
    while True:
        result = fit(train, Given(x.left, x.right))
        x = train.kind.pair(result.U, result.V)
        value = train.f.data.value(x)
        ranks.append(x.width - extra)
        fitted.append(value / train.f.fit.total)
        losses.append(holdout.losses(x.left, x.right))
        best = int(np.argmin([holdout.mean(one) for one in losses]))
        if len(ranks) - best > PATIENCE or _explained(train, value, nothing) or ranks[-1] == min(train.shape) or stop():
            break
        x = add_columns(train, x, 1)
        if x.width == ranks[-1] + extra:
            break
    means = np.array([holdout.mean(one) for one in losses])
    errors = [holdout.standard_error(one - losses[int(np.argmin(means))]) for one in losses]
    return RankPath(np.array(ranks), np.array(fitted), means, np.array(errors))


def _explained(problem: Problem, value: float, zero: float) -> bool:
    least = problem.f.data.least
    return least is not None and value - least <= EXPLAINED * (zero - least)
