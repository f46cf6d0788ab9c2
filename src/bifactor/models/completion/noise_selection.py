"""Choice of the noise, prior and features of a posterior: those that best predict held-out entries.

The variational bound is not a guide: on networks of trust it is highest for noise by row and column, which has the
largest error of all.
"""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from bifactor.arrays import Array, to_numpy
from bifactor.models.hyperparameters import hold_out
from bifactor.operators import Entries
from bifactor.problems.objective import Problem
from bifactor.problems.state import State
from bifactor.running.holdout import FRACTION, Holdout, weights_of
from bifactor.running.progress import Stage
from bifactor.running.result import Result
from bifactor.running.search import Search, Trials, require_complete
from bifactor.running.solve import solve
from bifactor.solvers import Variational
from bifactor.solvers.variational.noise import NoiseName

CANDIDATES = (Variational("one", "shared"), Variational("student"), Variational("both"), Variational("columns"))
"""Each predicts best on some of the nine sets of `benchmarks/accuracy/posterior.py`; others were not tried on all."""

ENTRIES_PER_COMPONENT = {"separate": 20, "shared": 10}
"""Default number of components by prior: with separate priors, components that explain nothing vanish; with a shared
prior, too many components weaken all of them."""

MAX_NOISE_SELECTION_ENTRIES = 100_000
"""Largest number of entries used for the choice; of more, those of some rows are taken."""

SWEEPS, COLUMNS = 100, 10
"""Largest numbers of sweeps and components of a candidate; more components do not change which predicts best."""

CLEAR = 2.0
"""Standard errors by which a fit must be better to drop features, which rows and columns without entries may need, or
to use implicit ones, which make a fit two to four times slower."""

LOOK, PATIENCE = 10, 2
"""Sweeps between evaluations of held-out losses, and evaluations without improvement after which a fit with features
ends."""

NO_SIDES = (False, False)
"""Neither rows nor columns."""

Features = tuple[Any, Any]
"""Features of rows and of columns."""


@dataclass(frozen=True)
class NoiseChoice:
    """What was chosen, and the held-out losses of all candidates, half the mean squared error."""

    search: Search
    chosen: "Candidate"
    """The best; with features unless they are clearly worse, and with the pattern of entries if that is clearly better.
    """
    blind: tuple[bool, bool] = NO_SIDES
    """Whether rows, and columns, without entries are predicted without their features: all entries of a tenth of the
    rows and of the columns were predicted better without them."""


@dataclass(frozen=True)
class Candidate:
    """A way to fit: noise, prior and maximum number of components."""

    solver: Variational
    rank: int
    features: bool = False
    """Whether features of rows and columns are used."""
    sweeps: int | None = None
    """Number of sweeps that predicted held-out entries best, if more sweeps did harm."""

    def with_pattern(self) -> "Candidate":
        """The candidate with the pattern of known entries as features."""
        return replace(self, solver=replace(self.solver, implicit=True), sweeps=None)

    def without_features(self) -> "Candidate":
        return replace(self, features=False, sweeps=None)

    def with_features(self, features: Features) -> Variational:
        """The solver, with features if the candidate uses them."""
        return self.solver.with_features(*features) if self.features else self.solver


def solver_of(search: Search) -> Variational:
    """The solver that a search chose, without features."""
    chosen = search.chosen
    return Variational(chosen["noise"], chosen["prior"], implicit=chosen["implicit"])


def candidates(
    noise: NoiseName | None,
    rank: int | None,
    shape: tuple[int, int],
    implicit: bool = False,
    in_blocks: bool = False,
) -> tuple[Candidate, ...]:
    """Solvers to choose from; if the noise is given, its two priors. None leaves noise or rank to the data.

    Of data `in_blocks`, no numbers are kept for single entries.
    """
    every = CANDIDATES if noise is None else (Variational(noise, "shared"), Variational(noise))
    solvers = (one for one in every if not (in_blocks and one.noise_model.per_entry))
    bare = (Candidate(one, min(*shape, ENTRIES_PER_COMPONENT[one.prior] if rank is None else rank)) for one in solvers)
    return tuple(one.with_pattern() if implicit else one for one in bare)


def select_noise_model(
    problem: Problem,
    tried: tuple[Candidate, ...],
    rng: np.random.Generator,
    stage: Stage | None = None,
    features: Features = (None, None),
    implicit: bool = False,
    keep: bool = False,
) -> NoiseChoice:
    """Fit each candidate without a tenth of the entries, and score it on them.

    If there are `features` of rows or columns, all candidates use them, and the best is fitted again without, unless
    `keep` is set. With `implicit`, the better of the two is fitted with the pattern of entries too.
    """
    told = any(one is not None for one in features)
    most = len(tried) + (told and not keep) + implicit
    contest = NoiseContest(hold_out(problem, rng), features, Trials[NoiseTrial](stage), most)
    trials, blind = contest.trials, NO_SIDES
    with trials:
        for one in tried:
            contest.enter(replace(one, features=told))
        contest.chosen = int(np.argmin(contest.means))
        for more in [Candidate.without_features] * (told and not keep) + [Candidate.with_pattern] * implicit:
            contest.enter(more(trials.tried[contest.chosen].candidate))
            if contest.gain() > CLEAR:
                contest.chosen = len(trials.tried) - 1
        best = trials.tried[contest.chosen].candidate
        if best.features and not keep:
            trials.announce("judging the features by whole rows and columns", 0, 1)
            blind = harmful_features(problem, lines_held_out(problem, rng), best, features)
    return contest.choice(blind)


def lines_held_out(problem: Problem, rng: np.random.Generator) -> tuple[Array, Array]:
    """Masks of the entries of a tenth of the rows, and of a tenth of the columns."""
    operator, known = problem.operator, weights_of(problem) > 0
    assert isinstance(operator, Entries)
    hidden = []
    for side in (operator.rows, operator.cols):
        seen = np.unique(side[known])
        hidden.append(np.isin(side, rng.choice(seen, int(FRACTION * seen.size), replace=False)) & known)
    return hidden[0], hidden[1]


def harmful_features(
    problem: Problem, hidden: tuple[Array, Array], chosen: Candidate, features: Features
) -> tuple[bool, bool]:
    """Whether rows, and columns, held out as a whole are predicted better without their features.

    `hidden` are masks of their entries. If no entries are left to be fitted to, features are used.
    """
    operator, weights = problem.operator, weights_of(problem).astype(np.float64)
    assert isinstance(operator, Entries)
    places, y = (operator.rows, operator.cols), to_numpy(problem.y)
    if not np.any(weights[~(hidden[0] | hidden[1])] > 0):
        return NO_SIDES
    train = Holdout.of_measurements(problem, hidden[0] | hidden[1]).train
    columns = min(chosen.rank, COLUMNS, *train.shape)
    most = SWEEPS if chosen.sweeps is None else chosen.sweeps
    result = require_complete(solve(train, columns, chosen.with_features(features), rng=0, max_iter=most))
    posterior = result.posterior
    assert posterior is not None
    found = []
    for side, own in enumerate((posterior.rows, posterior.cols)):
        other, held = (posterior.cols, posterior.rows)[side], hidden[side] & ~hidden[1 - side]
        i, j = (places[k][held] for k in (side, 1 - side))
        without = replace(own, blind=True).before(own.means, None).means
        losses = [
            float(weights[held] @ (y[held] - np.einsum("tk,tk->t", U[i], other.means[j])) ** 2)
            for U in (own.means, without)
        ]
        found.append(features[side] is not None and losses[1] < losses[0])
    return found[0], found[1]


class NoiseTrial(NamedTuple):
    """A candidate, as it was fitted, and its losses at held-out entries."""

    candidate: Candidate
    losses: Array


@dataclass(eq=False)
class NoiseContest:
    """Candidates fitted without some entries, and the one that is best so far."""

    holdout: Holdout
    features: Features
    trials: Trials[NoiseTrial]
    most: int
    chosen: int | None = None
    """The index of the candidate that was chosen, after a comparison; None for the one with the smallest loss."""

    @property
    def means(self) -> list[float]:
        return [self.holdout.mean(entry.losses) for entry in self.trials.tried]

    def enter(self, one: Candidate) -> None:
        """Fit another candidate."""
        self.trials.announce("choosing the noise", len(self.trials.tried), self.most)
        watch = EarlyStopping(self.holdout, min(self.means, default=np.inf), one.features)
        result = require_complete(_fitted(watch, one.with_features(self.features), one.rank))
        losses, sweeps = watch.ended(result)
        self.trials.tried.append(NoiseTrial(replace(one, sweeps=sweeps), losses))

    def gain(self) -> float:
        """Number of standard errors by which the last candidate is better than the chosen one."""
        assert self.chosen is not None
        apart = self.trials.tried[self.chosen].losses - self.trials.tried[-1].losses
        return self.holdout.mean(apart) / max(self.holdout.standard_error(apart), 1e-300)

    def choice(self, blind: tuple[bool, bool]) -> NoiseChoice:
        every, losses = zip(*self.trials.tried, strict=True)
        settings = [(one.solver.noise, one.solver.prior, one.rank, one.solver.implicit, one.features) for one in every]
        names = ("noise", "prior", "rank", "implicit", "features")
        columns = {name: np.array(column) for name, column in zip(names, zip(*settings, strict=True), strict=True)}
        over = self.trials.interrupted
        search = Search.of_losses("noise", columns, losses, self.holdout, index=self.chosen, interrupted=over)
        return NoiseChoice(search, every[search.index], blind)


class EarlyStopping:
    """Callback that records held-out losses during a fit, and stops it if it will not be the best.

    With `turning`, it stops the fit when losses increase, as many features may fit the training entries better and
    better, and others worse and worse.
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
        """The losses that count, and their sweep unless it is the last."""
        losses = self.holdout.losses(result.U, result.V)
        if self.turning and self.least is not None and self.least[0] < self.holdout.mean(losses):
            return self.least[1:]
        return losses, None


def _fitted(watch: EarlyStopping, solver: Variational, rank: int) -> Result:
    problem = watch.holdout.train
    columns = min(rank, COLUMNS, *problem.shape)
    return solve(problem, columns, solver, rng=0, max_iter=SWEEPS, tol=0, callback=watch)
