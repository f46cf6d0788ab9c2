"""`rank="auto"`: as many columns as measurements that were held out can justify."""

from collections.abc import Callable

import numpy as np

from bifactor.arrays import Array
from bifactor.errors import InputError
from bifactor.inits import Given, Spectral
from bifactor.offsets import prepended
from bifactor.problem import Problem
from bifactor.rank_path import RankPath
from bifactor.result import Result
from bifactor.solvers import Solver
from bifactor.solvers.growth import grown

HELD_OUT = 0.1
"""The fraction of measurements held out."""

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
    held = _held_out(problem, rng)
    weights = np.ones(problem.y.shape) if problem.weights is None else problem.weights
    train = problem.reweighted(np.where(held, 0.0, weights))
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
        losses.append(problem.loss.value(problem.measure(U, V), problem.y)[held])
        best = int(np.argmin(_means(losses, weights[held])))
        if len(ranks) - best > PATIENCE or _explained(train, value, zero) or ranks[-1] == min(m, n) or stop():
            break
        U, V = grown(train, U, V, 1, solver.psd)
        if U.shape[1] == ranks[-1] + extra:
            break
    means = _means(losses, weights[held])
    errors = [_standard_error(one - losses[int(np.argmin(means))], weights[held]) for one in losses]
    return RankPath(np.array(ranks), np.array(fitted), means, np.array(errors))


def _explained(problem: Problem, value: float, zero: float) -> bool:
    least = problem.least
    return least is not None and value - least <= EXPLAINED * (zero - least)


def _held_out(problem: Problem, rng: np.random.Generator) -> Array:
    usable = np.ones(problem.y.shape, bool) if problem.weights is None else problem.weights > 0
    index = np.flatnonzero(usable)
    count = int(HELD_OUT * index.size)
    if count < 2:
        raise InputError(f"{index.size} measurements are too few to hold some out for rank='auto'. Pass a rank.")
    held = np.zeros(problem.y.shape, bool)
    held[rng.choice(index, count, replace=False)] = True
    return held


def _means(losses: list[Array], weights: Array) -> Array:
    return np.array([float(np.average(one, weights=weights)) for one in losses])


def _standard_error(differences: Array, weights: Array) -> float:
    """Of the weighted mean."""
    w = weights.astype(np.float64)
    spread = np.average((differences - np.average(differences, weights=w)) ** 2, weights=w) ** 0.5
    return float(spread * np.sum(w**2) ** 0.5 / np.sum(w))
