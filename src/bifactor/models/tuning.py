"""How many components, and how strong a ridge: what measurements held out justify."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import ceil, log

import numpy as np

from bifactor.arrays import Array
from bifactor.errors import InputError
from bifactor.factors import Factors
from bifactor.inits import Given
from bifactor.penalties import Penalty, Ridge
from bifactor.problems.problem import Problem
from bifactor.running.holdout import Holdout
from bifactor.running.result import Result, Status
from bifactor.running.solve import solve
from bifactor.solvers import PCG
from bifactor.solvers.parts.growth import grown
from bifactor.svd import spectral_norm
from bifactor.words import counted

FACTOR, LIGHTEST = 0.7, 1e-3
"""What the ridge is multiplied by along its path, and the share of the first at which it ends."""

LONGEST = 1 + ceil(log(LIGHTEST) / log(FACTOR))
"""Ridges of a path."""

PATIENCE = 3
"""Ridges in a row without a better held-out loss after which no lighter ones are tried."""

MOST = 40
"""Components, where their number is left to the ridge."""

FEW = 40
"""Measurements below which none are held out; the ridge is then this fraction of the first:"""
CAUTIOUS = 0.1

LEAST = 1e-2
"""The first ridge is no less than this per unit of weight, unless errors are squared: without one, labels that are all
alike, and counts that are all 0, drive a fit to infinity."""

VANISHED = 1e-6
"""The share of the longest below which a column counts as zero."""


Stage = Callable[[str, int, int], None]
"""Told what is chosen, how many choices were tried, and how many there are at most."""


@dataclass(frozen=True)
class RidgePath:
    """The mean held-out loss for each ridge that was tried, the heaviest first; 0 stands for none."""

    ridges: Array
    held_out: Array
    standard_error: Array
    """Of the difference to the best."""
    interrupted: bool = False
    """Whether Ctrl-C ended it."""

    @property
    def chosen(self) -> float:
        return float(self.ridges[int(np.argmin(self.held_out))])


def tuned(
    problem: Problem,
    n_components: int | None,
    alpha: float | None,
    rng: np.random.Generator,
    start: Factors | None = None,
    penalty: Callable[[float], Penalty] = Ridge,
    stage: Stage | None = None,
) -> tuple[int, float, RidgePath | None]:
    """The rank, the ridge, and how it was found; None leaves either to the data.

    Where both are left to the data there are two ways to keep a fit simple: many columns, of which a ridge makes most
    vanish, or the few that `solve(rank="auto")` finds, with a ridge of their own. These and a number between them, the
    geometric mean, are tried, and the best predictor is taken.

    `start` are factors without any but the fixed columns and their partners, by default zero; `penalty` makes of a
    number the ridge that is meant.
    """
    start = problem.zero(0) if start is None else start
    most = min(*problem.shape, MOST if n_components is None else n_components)
    many = problem.y.size >= FEW
    if alpha is not None:
        left_open = alpha == 0 and n_components is None and many
        return _free_rank(problem, rng) if left_open else most, alpha, None
    first = steepest(problem, start)
    if not many or first == 0:
        return most, CAUTIOUS * first, None
    holdout = Holdout(problem, rng)
    paths = {most: ridge_path(holdout, most, first, start, penalty, stage)}
    if n_components is None and problem.loss.quadratic and not paths[most].interrupted:
        try:
            few = _free_rank(holdout.train, rng)
            for columns in {few, max(few, round((few * most) ** 0.5))} - {most}:
                paths[columns] = ridge_path(holdout, columns, first, start, penalty, stage)
        except KeyboardInterrupt:  # what is there is a choice already
            paths[most] = replace(paths[most], interrupted=True)
    rank = min(paths, key=lambda columns: paths[columns].held_out.min())
    return rank, paths[rank].chosen, paths[rank]


def _free_rank(problem: Problem, rng: np.random.Generator) -> int:
    """The number of columns, fixed ones aside, that `solve(rank="auto")` takes without a ridge."""
    return solve(problem, "auto", rng=rng, max_iter=0).rank - problem.kind.fixed_columns


def ridge_path(
    holdout: Holdout,
    columns: int,
    first: float,
    start: Factors,
    penalty: Callable[[float], Penalty],
    stage: Stage | None = None,
) -> RidgePath:
    """From a ridge at which X is 0 to lighter ones, each fit from the last, until held-out losses rise for long."""
    train, x = holdout.train, start
    ridges: list[float] = []
    losses: list[Array] = []
    means: list[float] = []
    while True:
        ridges.append(first * FACTOR ** (1 + len(ridges)))
        try:
            result = _fitted(train.penalized(penalty(ridges[-1])), x, columns)
        except KeyboardInterrupt:  # between fits; in one it is a status
            if not means:
                raise
            ridges, interrupted = ridges[:-1], True
            break
        losses.append(holdout.losses(result.U, result.V))
        means.append(holdout.mean(losses[-1]))
        if stage is not None:
            stage(f"choosing the ridge, {counted(columns, 'component')} at most", len(means), LONGEST)
        best = int(np.argmin(means))
        interrupted = result.status is Status.INTERRUPTED
        if interrupted or len(means) - 1 - best >= PATIENCE or ridges[-1] < LIGHTEST * first:
            break
        x = without_vanished(train.kind.pair(result.U, result.V))
    if not interrupted and ridges[-1] < LIGHTEST * first and train.loss.quadratic:  # such data may be exact
        exact = solve(train, columns, rng=0)
        ridges, losses = [*ridges, 0.0], [*losses, holdout.losses(exact.U, exact.V)]
        means.append(holdout.mean(losses[-1]))
    best = int(np.argmin(means))
    errors = [holdout.standard_error(one - losses[best]) for one in losses]
    return RidgePath(np.array(ridges), np.array(means), np.array(errors), interrupted)


def _fitted(problem: Problem, x: Factors, columns: int) -> Result:
    """A short fit from x, with as many more columns as help."""
    extra = problem.kind.fixed_columns
    room = columns + extra - x.width
    x = _at_least(grown(problem, x, room) if room > 0 else x, extra + min(columns, 1))
    start = Given(x.left, x.right)
    return solve(problem, x.width - extra, PCG(), start, 0, max_iter=100, tol=1e-4, objective_tol=1e-3)


def steepest(problem: Problem, x: Factors) -> float:
    """‖∇f‖₂ where there are but effects of rows and columns: the ridge from which on the rest is 0."""
    x = _at_least(x, 1)
    norm = spectral_norm(problem.f.gradient(x), np.random.default_rng(0))
    if not np.isfinite(norm):
        raise InputError("The gradient at X = 0 is not finite. Rescale the data.")
    return norm if problem.loss.quadratic else max(norm, LEAST * problem.f.fit.total / problem.y.size)


def without_vanished(x: Factors) -> Factors:
    """The factors without columns that a ridge has made zero; fixed ones and their partners stay."""
    sizes = np.linalg.norm(x.left, axis=0) * np.linalg.norm(x.right, axis=0)
    extra = x.kind.fixed_columns
    stay = sizes > VANISHED * max(float(np.max(sizes[extra:], initial=0.0)), 1e-300)
    stay[:extra] = True
    return x.columns(stay)


def _at_least(x: Factors, width: int) -> Factors:
    return x.padded(max(x.width, width))
