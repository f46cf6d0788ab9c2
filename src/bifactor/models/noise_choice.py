"""Which noise, prior and features a posterior is fitted with: those that predict entries held out best.

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
from bifactor.solvers.parts.sweeps import NoiseModel
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
"""Standard errors by which it must be better to go without features, which rows and columns without entries may need;
or with implicit ones, with which a fit takes two to four times as long."""

LOOK, PATIENCE = 10, 2
"""Sweeps after which held-out losses are looked at, and looks without a better one after which features are given up.
"""

Features = tuple[Any, Any]
"""Of rows and of columns."""


@dataclass(frozen=True)
class NoiseChoice:
    """The mean held-out loss of each candidate, half the mean square of errors."""

    candidates: tuple["Candidate", ...]
    held_out: Array
    standard_error: Array
    """Of the difference to the best."""
    chosen: "Candidate"
    """The best; with features unless these are clearly worse, and with the pattern of entries where that is clearly
    better."""
    interrupted: bool = False
    """Whether Ctrl-C ended it."""


@dataclass(frozen=True)
class Candidate:
    """A way to fit: noise and prior, and how many components there are at most."""

    solver: Variational
    rank: int
    features: bool = False
    """Whether it is told the features of rows and columns."""
    sweeps: int | None = None
    """After which held-out entries were predicted best, where more of them did harm."""

    def with_pattern(self) -> "Candidate":
        """With which entries are known as features."""
        return replace(self, solver=replace(self.solver, implicit=True), sweeps=None)

    def without_features(self) -> "Candidate":
        return replace(self, features=False, sweeps=None)

    def told(self, features: Features) -> Variational:
        """The solver, with features if it is to know them."""
        return self.solver.told(*features) if self.features else self.solver


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
    features: Features = (None, None),
    implicit: bool = False,
    keep: bool = False,
) -> NoiseChoice:
    """Fits each candidate without a tenth of the entries, and scores it there.

    With `features` of rows or columns, all of them know these, and the best is fitted once more without, unless they
    are to be kept in any case. `implicit` has the better of the two fitted with the pattern of entries, too.
    """
    told = any(one is not None for one in features)
    trials = Trials(Holdout(problem, rng), features, stage, len(tried) + (told and not keep) + implicit)
    going = all(trials.scored(replace(one, features=told)) for one in tried)
    best = int(np.argmin(trials.means))
    for more in [Candidate.without_features] * (told and not keep) + [Candidate.with_pattern] * implicit:
        count = len(trials.losses)
        going = going and trials.scored(more(trials.candidates[best]))
        best = count if len(trials.losses) > count and trials.gain(best) > CLEAR else best
    return trials.choice(trials.candidates[best], not going)


class Trials:
    """Candidates fitted without some entries, and their losses there."""

    def __init__(self, holdout: Holdout, features: Features, stage: Stage | None, most: int):
        self.holdout, self.features, self.stage, self.most = holdout, features, stage, most
        self.candidates: list[Candidate] = []
        self.losses: list[Array] = []

    @property
    def means(self) -> list[float]:
        return [self.holdout.mean(part) for part in self.losses]

    def scored(self, one: Candidate) -> bool:
        """Fits one more; False where Ctrl-C ended that."""
        if self.stage is not None:
            self.stage("choosing the noise", len(self.losses), self.most)
        watch = Watch(self.holdout, min(self.means, default=np.inf), one.features)
        try:
            result = _fitted(watch, one.told(self.features), one.rank)
        except KeyboardInterrupt:  # between fits; in one it is a status
            if not self.losses:
                raise
            return False
        losses, sweeps = watch.ended(result)
        self.candidates.append(replace(one, sweeps=sweeps))
        self.losses.append(losses)
        return result.status is not Status.INTERRUPTED

    def gain(self, k: int) -> float:
        """By how many standard errors the last is better than the one at k."""
        apart = self.losses[k] - self.losses[-1]
        return self.holdout.mean(apart) / max(self.holdout.standard_error(apart), 1e-300)

    def choice(self, chosen: Candidate, interrupted: bool) -> NoiseChoice:
        means, best = self.means, self.losses[int(np.argmin(self.means))]
        errors = [self.holdout.standard_error(part - best) for part in self.losses]
        return NoiseChoice(tuple(self.candidates), np.array(means), np.array(errors), chosen, interrupted)


class Watch:
    """Held-out losses on the way of a fit, and when it is given up: where it will not be the best.

    With `turning`, it is where it will be worse than it has been, as many features may explain ever more of the
    entries that they are fitted to, and ever less of others.
    """

    def __init__(self, holdout: Holdout, best: float, turning: bool):
        self.holdout, self.best, self.turning = holdout, best, turning
        self.looks: list[float] = []
        self.least: tuple[float, Array, int] | None = None

    def __call__(self, sweep: int, state: State) -> bool:
        if sweep % LOOK:
            return False
        losses = self.holdout.losses(state.U, state.V)
        mean, before = self.holdout.mean(losses), self.looks[-1] if self.looks else np.inf
        self.looks.append(mean)
        if self.least is None or mean < self.least[0]:
            self.least = mean, losses, sweep
        if self.turning:
            return sweep - self.least[2] >= PATIENCE * LOOK
        return mean > self.best and mean >= before

    def ended(self, result: Result) -> tuple[Array, int | None]:
        """The losses that count, and the sweep that they are of, unless it is the last."""
        losses = self.holdout.losses(result.U, result.V)
        if self.turning and self.least is not None and self.least[0] < self.holdout.mean(losses):
            return self.least[1:]
        return losses, None


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


def _fitted(watch: Watch, solver: Variational, rank: int) -> Result:
    problem = watch.holdout.train
    columns = min(rank, COLUMNS, *problem.shape)
    return solve(problem, columns, solver, rng=0, max_iter=SWEEPS, tol=0, callback=watch)
