"""`rank="auto"`: as many columns as measurements that were held out can justify."""

from collections.abc import Callable

import numpy as np

from bifactor.arrays import Array
from bifactor.holdout import Holdout
from bifactor.inits import Given, Spectral
from bifactor.offsets import prepended
from bifactor.problem import Problem
from bifactor.rank_path import RankPath
from bifactor.result import Result
from bifactor.solvers import Solver
from bifactor.solvers.growth import grown

PATIENCE = 3
"""Ranks in a row without a better held-out loss after which no more are tried."""

EXPLAINED = 1e-8
"""A training loss this small beside that of X = 0, as far as short fits go, leaves nothing for another column."""

Fit = Callable[[Problem, Given], Result]
"""A short fit from a start."""


def rank_path(
    problem: Problem, solver: Solver, rng: np.random.Generator, fit: Fit, stop: Callable[[], bool]
) -> RankPath:
    """Rank continuation on nine measurements in ten, one column after the other, until the tenth tells to stop.

    Parameters
    ----------
    stop : callable
        Asked before each rank after the first; True ends the path there.
    """
    holdout = Holdout(problem, rng)
    train = holdout.train
    m, n = problem.shape
    zero = train.value(np.zeros((m, 1)), np.zeros((n, 1)))
    U, V = Spectral()(train, 1, rng, solver.psd)
    extra = problem.offset_columns
    if extra:
        U, V = prepended(U, V)
    ranks: list[int] = []
    fitted: list[float] = []
    losses: list[Array] = []
    while True:
        result = fit(train, Given(U, None if solver.psd else V))
        U, V = result.U, result.V
        value = train.value(U, V)
        ranks.append(U.shape[1] - extra)
        fitted.append(value / train.total)
        losses.append(holdout.losses(U, V))
        best = int(np.argmin([holdout.mean(one) for one in losses]))
        if len(ranks) - best > PATIENCE or _explained(train, value, zero) or ranks[-1] == min(m, n) or stop():
            break
        U, V = grown(train, U, V, 1, solver.psd)
        if U.shape[1] == ranks[-1] + extra:
            break
    means = np.array([holdout.mean(one) for one in losses])
    errors = [holdout.standard_error(one - losses[int(np.argmin(means))]) for one in losses]
    return RankPath(np.array(ranks), np.array(fitted), means, np.array(errors))


def _explained(problem: Problem, value: float, zero: float) -> bool:
    least = problem.least
    return least is not None and value - least <= EXPLAINED * (zero - least)
