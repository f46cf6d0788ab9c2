"""Which noise and which prior a posterior is fitted with: those that predict entries held out best.

The variational bound does not tell: it is highest for noise by row and column on networks of trust, where that has the
largest error of all.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bifactor.arrays import Array
from bifactor.problems.problem import Problem
from bifactor.problems.state import State
from bifactor.running.holdout import Holdout
from bifactor.running.progress import Stage
from bifactor.running.result import Result, Status
from bifactor.running.solve import solve
from bifactor.solvers import Variational
from bifactor.solvers.variational import NoiseModel
from bifactor.tables import Observations

CANDIDATES = (Variational("one", "shared"), Variational("student"), Variational("both"), Variational("columns"))
"""Each of them predicts best on some of the nine sets of `benchmarks/posterior.py`; others were not measured on all."""

ENOUGH = {"separate": 20, "shared": 10}
"""Components where their number is left open, by the prior: with separate ones those that explain nothing die, and too
many that share one make all of them weak."""

MANY = 100_000
"""Entries from which a choice is made; of more, those of some rows are taken."""

SWEEPS, COLUMNS = 100, 10
"""Of each candidate at most; more components are not needed to tell which predicts best."""

CLEAR = 2.0
"""Standard errors by which implicit features must predict better; a fit with them takes two to four times as long."""

LOOK = 10
"""Sweeps after which a candidate is given up if it is behind the best one, and no longer gaining."""


@dataclass(frozen=True)
class NoiseChoice:
    """The mean held-out loss of each candidate, half the mean square of errors."""

    candidates: tuple["Candidate", ...]
    held_out: Array
    standard_error: Array
    """Of the difference to the best."""
    interrupted: bool = False
    """Whether Ctrl-C ended it."""

    @property
    def chosen(self) -> "Candidate":
        """The best; with the pattern of entries as features only where that is clearly better than without."""
        best = int(np.argmin(self.held_out))
        plain = [k for k, one in enumerate(self.candidates) if not one.solver.implicit]
        if self.candidates[best].solver.implicit and plain:
            second = min(plain, key=lambda k: float(self.held_out[k]))
            clear = self.held_out[second] - self.held_out[best] > CLEAR * self.standard_error[second]
            best = best if clear else second
        return self.candidates[best]


@dataclass(frozen=True)
class Candidate:
    """A way to fit: noise and prior, and how many components there are at most."""

    solver: Variational
    rank: int

    def with_pattern(self) -> "Candidate":
        """With which entries are known as features."""
        return replace(self, solver=replace(self.solver, implicit=True))


def candidates(
    noise: NoiseModel | None, rank: int | None, shape: tuple[int, int], implicit: bool = False
) -> tuple[Candidate, ...]:
    """The solvers to choose from, for a noise that is given its two priors; None leaves either to the data."""
    solvers = CANDIDATES if noise is None else (Variational(noise, "shared"), Variational(noise))
    bare = (Candidate(one, min(*shape, ENOUGH[one.prior] if rank is None else rank)) for one in solvers)
    return tuple(one.with_pattern() if implicit else one for one in bare)


def noise_choice(
    problem: Problem,
    tried: tuple[Candidate, ...],
    rng: np.random.Generator,
    stage: Stage | None = None,
    features: tuple[Any, Any] = (None, None),
    implicit: bool = False,
) -> NoiseChoice:
    """Fits each candidate without a tenth of the entries, and scores it there.

    `features` are those of rows and columns. `implicit` has the best fitted once more, with the pattern of entries.
    """
    holdout, count = Holdout(problem, rng), len(tried) + implicit
    losses: list[Array] = []
    interrupted = False
    while len(losses) < count and not interrupted:
        if stage is not None:
            stage("choosing the noise", len(losses), count)
        if len(losses) == len(tried):
            tried = (*tried, tried[int(np.argmin([holdout.mean(part) for part in losses]))].with_pattern())
        try:
            solver, rank = tried[len(losses)].solver.told(*features), tried[len(losses)].rank
            result = _fitted(holdout, solver, rank, min(map(holdout.mean, losses), default=np.inf))
        except KeyboardInterrupt:  # between fits; in one it is a status
            if not losses:
                raise
            interrupted = True
            break
        losses.append(holdout.losses(result.U, result.V))
        interrupted = result.status is Status.INTERRUPTED
    means = np.array([holdout.mean(part) for part in losses])
    best = losses[int(np.argmin(means))]
    errors = np.array([holdout.standard_error(part - best) for part in losses])
    return NoiseChoice(tried[: len(losses)], means, errors, interrupted)


def some_rows(data: Observations, rng: np.random.Generator) -> Observations:
    """All data or, where they are many, those of some rows, or columns where these are more."""
    size = data.values.size
    if size <= MANY:
        return data
    side = int(data.shape[1] > data.shape[0])
    places = (data.rows, data.cols)[side]
    order = rng.permutation(data.shape[side])
    totals = np.cumsum(np.bincount(places, minlength=data.shape[side])[order])
    count = max(1, int(np.searchsorted(totals, MANY, side="right")))
    number = np.full(data.shape[side], -1)
    number[order[:count]] = np.arange(count)
    part = data.part(number[places] >= 0)
    features = data.features[side]
    cut = None if features is None else features[order[:count]]
    if side:
        shape = (data.shape[0], count)
        return replace(part, cols=number[part.cols], shape=shape, column_names=None, column_features=cut)
    shape = (count, data.shape[1])
    return replace(part, rows=number[part.rows], shape=shape, row_names=None, row_features=cut)


def _fitted(holdout: Holdout, solver: Variational, rank: int, best: float) -> Result:
    """A fit, given up where it will not be the best."""
    problem, last = holdout.train, np.inf

    def behind(sweep: int, state: State) -> bool:
        nonlocal last
        if sweep % LOOK:
            return False
        before, last = last, holdout.mean(holdout.losses(state.U, state.V))
        return last > best and last >= before

    columns = min(rank, COLUMNS, *problem.shape)
    return solve(problem, columns, solver, rng=0, max_iter=SWEEPS, tol=0, callback=behind)
