"""`rank="auto"`: the rank is chosen by held-out measurements."""

from collections.abc import Callable

import numpy as np

from bifactor.arrays import Array
from bifactor.inits import Given, Spectral
from bifactor.problems.objective import Problem
from bifactor.running.holdout import Holdout
from bifactor.running.result import Result
from bifactor.running.search import Search, Trials, rank_search, require_complete
from bifactor.solvers.growth import add_columns

PATIENCE = 3
"""The number of consecutive ranks without a better held-out loss after which no more are tried."""

EXPLAINED = 1e-8
"""The training loss, relative to that of X = 0, at which a short fit explains the data, so that no column is added."""

Fit = Callable[[Problem, Given], Result]
"""A short fit from a start."""


def select_rank(problem: Problem, rng: np.random.Generator, fit: Fit, stop: Callable[[], bool]) -> Search:
    """Rank continuation on nine tenths of the measurements, column by column, until the rest is predicted no better.

    Parameters
    ----------
    stop : callable
        Called before each rank after the first; True ends the path there.
    """
    holdout = Holdout.at_random(problem, rng)
    train = holdout.train
    assert isinstance(train, Problem)
    zero, extra = train.zero(), problem.kind.fixed_columns
    nothing = train.f.data.value(zero)
    x = Spectral()(train, 1, rng)
    trials = Trials[tuple[int, float, Array]]()  # ranks, losses at what is fitted, and at what is held out
    with trials:
        while True:
            result = require_complete(fit(train, Given(x.left, x.right)))
            x = train.kind.pair(result.U, result.V)
            rank, value = x.width - extra, train.f.data.value(x)
            trials.tried.append((rank, value / train.f.fit.total, holdout.losses(x.left, x.right)))
            best = int(np.argmin([holdout.mean(losses) for *_, losses in trials.tried]))
            late = len(trials.tried) - best > PATIENCE or stop()
            if late or _explained(train, value, nothing) or rank == min(train.shape):
                break
            x = add_columns(train, x, 1)
            if x.width == rank + extra:
                break
    ranks, fitted, each = zip(*trials.tried, strict=True)
    table = Search.of_losses("rank", {"rank": np.array(ranks)}, each, holdout)
    assert table.standard_error is not None
    return rank_search(table["rank"], np.array(fitted), table.score, table.standard_error, trials.interrupted)


def _explained(problem: Problem, value: float, zero: float) -> bool:
    least = problem.f.data.least
    return least is not None and value - least <= EXPLAINED * (zero - least)
