"""Choice of the number of components and the ridge by held-out measurements."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from math import ceil, log
from typing import NamedTuple

import numpy as np

from bifactor.arrays import Array, to_numpy
from bifactor.data.holes import holes_like
from bifactor.errors import InputError
from bifactor.factors import Factors
from bifactor.inits import Given
from bifactor.losses.base import NUMBERS
from bifactor.models.completion.offsets import penalty as penalty_of
from bifactor.models.completion.offsets import root_of
from bifactor.operators import Entries
from bifactor.operators.full_table import FullTable
from bifactor.penalties import Penalty, Ridge
from bifactor.problems.objective import Objective, Problem
from bifactor.running.holdout import Holdout
from bifactor.running.progress import Stage
from bifactor.running.result import Result
from bifactor.running.search import Search, Trials, require_complete
from bifactor.running.solve import solve
from bifactor.solvers import PCG
from bifactor.solvers.growth import add_columns
from bifactor.svd import spectral_norm
from bifactor.validation import pluralize

FACTOR, LIGHTEST = 0.7, 1e-3
"""Factor between ridges of a path, and the share of the first ridge at which the path ends."""

TABLE_FACTOR, TABLE_ITERATIONS = 0.5, 10
"""The factor for whole tables, where a fit takes long, and the iterations per ridge; with 6, another ridge was chosen
for one table in four."""

SURE = 3.0
"""Standard errors by which a fit to a whole table must predict worse than the best to end the path."""

LONGEST = 1 + ceil(log(LIGHTEST) / log(FACTOR))
"""Largest number of ridges of a path."""

PATIENCE = 2
"""Consecutive ridges without a better held-out loss that end the path."""

MAX_RANK = 40
"""Largest number of components if it is left to the ridge."""

LADDER = (1, 2, 3, 5, 8, 13, 21)
"""Ranks tried for whole tables."""

HEAVIEST, OFFSET_FACTOR, MOST_OFFSET_RIDGES = 100.0, 0.3, 12
"""The first ridge of offsets alone per unit of weight, the factor between such ridges, and their largest number."""

CLEAR = 1.0
"""Standard errors by which a fit must predict better to count as clearly better. With 0.5 to 1.5, mean errors were the
same within 0.5 % on 16 sets of labels, grades and numbers, most of them small."""

SHARES = (0.3, 0.1, 0.03)
"""Ridges of offsets that are tried as shares of that of the components. Where components explain most of the data, the
ridge that is best for offsets alone is too heavy."""

MIN_HOLDOUT_ENTRIES = 40
"""Number of measurements below which none are held out; the ridge is then this fraction of the first:"""
CONSERVATIVE_RIDGE_SHARE = 0.1

SHAPED_FRACTION = 0.2
"""The fraction of the entries that are held out in the shape of the holes: errors of a block are alike, so that they
say less than as many at random."""

SHARES_HELD = 0.05, 0.5
"""Smallest and largest share of the entries that a mask in the shape of the holes may hold out."""

LEAST = 1e-2
"""The first ridge is at least this per unit of weight if the loss has a link: without a ridge, labels that are all
equal, and counts that are all 0, drive a fit to infinity."""

VANISHED = 1e-6
"""Length relative to the longest column below which a column counts as zero."""


class RankAndRidge(NamedTuple):
    """The rank, the ridge, how it was found, and factors fitted with these to all data except the held-out part."""

    rank: int
    ridge: float
    search: Search | None = None
    x: Factors | None = None
    offset_ridge: float | None = None
    """Ridge of the offsets, if it is not that of the components."""


@dataclass(frozen=True, eq=False)
class Family:
    """The penalties that a path tries, one for each ridge of the components."""

    penalty: Callable[[float], Penalty | None]
    start: Factors
    """Only the fixed columns and their partners."""
    first: float
    """The ridge at which all else is 0."""
    offset_ridge: float | None = None
    """Ridge of the offsets, if it is not that of the components; `start` is then fitted with it."""


def select_rank_and_ridge(
    problem: Objective,
    n_components: int | None,
    ridge: float | None,
    rng: np.random.Generator,
    start: Factors | None = None,
    penalty: Callable[[float], Penalty] = Ridge,
    stage: Stage | None = None,
) -> RankAndRidge:
    """Choose the rank and the ridge; None leaves either to the data.

    If both are left to the data, there are two ways to keep a fit simple: many columns, most of which vanish under a
    ridge, or the few that `solve(rank="auto")` finds, with their own ridge. These two and their geometric mean are
    tried, and the best predictor is taken. For a whole table, ranks are tried from 1 on until one predicts worse.

    Offsets of rows and columns have the ridge of the components, or their own, if that predicts clearly better. Their
    own is the one that predicts best without components, and the path of the other ridge begins with this fit; or it
    is a share of the ridge of the components.

    `start` has only the fixed columns and their partners, by default zero; `penalty` makes the ridge from a number.
    """
    start = problem.zero(0) if start is None else start
    most = min(*problem.shape, MAX_RANK if n_components is None else n_components)
    many = (problem.f.seen or 0) >= MIN_HOLDOUT_ENTRIES
    if ridge is not None:
        left_open = ridge == 0 and n_components is None and many
        return RankAndRidge(_free_rank(problem, rng) if left_open else most, ridge)
    first = largest_ridge(problem, start)
    if not many or first == 0:
        return RankAndRidge(most, CONSERVATIVE_RIDGE_SHARE * first)
    trials = Trials[float](stage)
    holdout = hold_out(problem, rng)
    ranks = _ranks(holdout.train, n_components, most, rng, trials)
    found = _searched(holdout, Family(penalty, start, first), ranks, n_components is None, trials)
    if isinstance(problem, Problem) and problem.kind.fixed_columns and most > 0:
        common, found = found, _with_own_ridge(holdout, found, ranks, trials)
        found = _with_share(holdout, common, found, trials)
    search = replace(found.search, interrupted=trials.interrupted)
    ridge, own = search.chosen["ridge"], found.offset_ridge
    return RankAndRidge(found.rank, ridge, search, found.x, own if ridge > 0 else None)


def _ranks(
    train: Objective, n_components: int | None, most: int, rng: np.random.Generator, trials: Trials[float]
) -> list[int]:
    """The ranks to try, in ascending order."""
    ranks = {most}
    if n_components is None and train.f.data.quadratic:
        trials.announce("choosing the rank", 0, 1)
        few = min(most, _free_rank(train, rng))
        ranks |= {few, max(few, round((few * most) ** 0.5))}
    if n_components is None and isinstance(train.f, FullTable):
        ranks |= {rank for rank in LADDER if rank < most}
    return sorted(ranks)


@dataclass(frozen=True, eq=False)
class FamilyOptimum:
    """The best rank and ridge of a family."""

    rank: int
    search: Search
    x: Factors
    losses: Array
    """Held-out losses."""
    offset_ridge: float | None

    @property
    def least(self) -> float:
        """The smallest mean held-out loss."""
        return float(self.search.score[self.search.index])


def _searched(
    holdout: Holdout, family: Family, ranks: list[int], climbing: bool, trials: Trials[float]
) -> FamilyOptimum:
    """The best of the paths of all ranks; of a whole table, until one predicts worse if it is `climbing`.

    The paths agree as long as the ridge leaves fewer columns than the smallest rank, so each begins where the previous
    one ran out of columns.
    """
    walk, beginning, found = RidgePathSearch(holdout, family, trials), PathState(family.start), list[FamilyOptimum]()
    if family.offset_ridge is not None:
        losses = holdout.losses(family.start.left, family.start.right)
        beginning = beginning.on(family.start, family.first, losses, holdout.mean(losses))
    for columns in ranks:
        beginning, steps = walk.to(columns, beginning)
        assert steps.best_x is not None
        search = Search.of_losses("ridge", {"ridge": np.array(steps.ridges)}, steps.losses, holdout)
        found.append(FamilyOptimum(columns, search, steps.best_x, steps.losses[steps.best], family.offset_ridge))
        worse = found[-1].least > min(one.least for one in found)
        if trials.interrupted or (worse and climbing and isinstance(holdout.problem.f, FullTable)):
            break
    return min(found, key=lambda one: one.least)


def _with_own_ridge(holdout: Holdout, found: FamilyOptimum, ranks: list[int], trials: Trials[float]) -> FamilyOptimum:
    """`found`, with one ridge for all, or the best fit with a ridge of offsets if that is clearly better.

    Also if `found` is not clearly better than offsets alone, which are the simplest fit.
    """
    own, alone = None, found.losses
    with trials:
        if not trials.interrupted:
            family = _offsets_alone(holdout, trials)
            alone = holdout.losses(family.start.left, family.start.right)
            own = _searched(holdout, family, ranks, False, trials)
    if own is None or not (
        _is_clear(holdout, found.losses - own.losses) or not _is_clear(holdout, alone - found.losses)
    ):
        return found
    return replace(own, rank=0) if own.search.index == 0 else own


def _with_share(holdout: Holdout, common: FamilyOptimum, best: FamilyOptimum, trials: Trials[float]) -> FamilyOptimum:
    """`best`, or the fit with one ridge for all, with a share of it for the offsets, if that is clearly better."""
    ridge, x = float(common.search.chosen["ridge"]), common.x
    with trials:
        for k, share in enumerate(SHARES if ridge > 0 and not trials.interrupted else ()):
            trials.announce("choosing the ridge of the offsets", k, len(SHARES))
            train = holdout.train.penalized(penalty_of(ridge, share * ridge))
            result = require_complete(_fitted(train, x, common.rank))
            x = without_vanished(holdout.train.kind.pair(result.U, result.V))
            losses = holdout.losses(result.U, result.V)
            if _is_clear(holdout, best.losses - losses):
                best = replace(common, x=x, losses=losses, offset_ridge=share * ridge)
    return best


def _is_clear(holdout: Holdout, gain: Array) -> bool:
    return holdout.mean(gain) > CLEAR * holdout.standard_error(gain)


def _offsets_alone(holdout: Holdout, trials: Trials[float]) -> Family:
    """Penalties with the ridge of the offsets that predicts best if there are no components."""
    train, ridges, fits, means = holdout.train, list[float](), [holdout.problem.zero(0)], list[float]()
    ridge = HEAVIEST * root_of(train) ** 2 * _mean_weight(train)
    while len(means) < MOST_OFFSET_RIDGES and (not means or len(means) - 1 - int(np.argmin(means)) < PATIENCE):
        trials.announce("choosing the ridge of the offsets", len(means), MOST_OFFSET_RIDGES)
        result = require_complete(_fitted(train.penalized(Ridge(ridge)), fits[-1], 0))
        ridges.append(ridge)
        fits.append(train.kind.pair(result.U, result.V))
        means.append(holdout.mean(holdout.losses(result.U, result.V)))
        ridge *= OFFSET_FACTOR
    best = int(np.argmin(means))
    x = fits[1 + best]
    return Family(partial(penalty_of, offset_ridge=ridges[best]), x, largest_ridge(holdout.problem, x), ridges[best])


def hold_out(problem: Objective, rng: np.random.Generator) -> Holdout:
    """Hold out a tenth of the known entries at random, or a fifth in the shape of the holes if they have one."""
    if isinstance(problem, Problem) and isinstance(problem.operator, Entries):
        cells = problem.operator
        known = slice(None) if problem.weights is None else np.flatnonzero(to_numpy(problem.weights) > 0)
        rows, cols = cells.rows[known], cells.cols[known]
        mask = holes_like(rows, cols, cells.shape, SHAPED_FRACTION, rng)
        if mask is not None:
            held = np.zeros(cells.rows.size, bool)
            held[known] = mask(rows, cols)
            if SHARES_HELD[0] <= np.sum(held) / rows.size <= SHARES_HELD[1]:
                return Holdout.of_measurements(problem, held)
    return Holdout.at_random(problem, rng)


def _free_rank(problem: Objective, rng: np.random.Generator) -> int:
    """Number of columns, without fixed ones, that `solve(rank="auto")` chooses without a ridge."""
    result = solve(problem, "auto", rng=rng, max_iter=0)
    if result.rank_search is not None and result.rank_search.interrupted:  # a rank without a ridge is no choice yet
        raise KeyboardInterrupt
    return result.rank - problem.kind.fixed_columns


@dataclass(frozen=True, eq=False)
class PathState:
    """Fits along a path of ridges, and the factors of the last one."""

    x: Factors
    ridges: tuple[float, ...] = ()
    losses: tuple[Array, ...] = ()
    """Held-out losses."""
    means: tuple[float, ...] = ()
    best_x: Factors | None = None
    """Factors of the fit with the smallest held-out loss."""

    @property
    def best(self) -> int:
        return int(np.argmin(self.means))

    def on(self, x: Factors, ridge: float, losses: Array, mean: float) -> "PathState":
        best = x if self.best_x is None or mean < min(self.means) else self.best_x
        return PathState(x, (*self.ridges, ridge), (*self.losses, losses), (*self.means, mean), best)


@dataclass(frozen=True, eq=False)
class RidgePathSearch:
    """Path from a ridge at which X is 0 to smaller ones; fits start from the last, until predictions get worse."""

    holdout: Holdout
    family: Family
    trials: Trials[float]

    def to(self, columns: int, beginning: PathState) -> tuple[PathState, PathState]:
        """The point where the path with this many columns separates from one with more, and its fits.

        That point is before all columns are in use; `beginning` is that point of a path with fewer columns.
        """
        train, steps = self.holdout.train, beginning
        what = f"choosing the ridge, at most {pluralize(columns, 'component')}"
        free = columns + train.kind.fixed_columns
        with self.trials:
            while not self._over(steps):
                self.trials.announce(what, len(steps.means), LONGEST)
                ridge = (steps.ridges[-1] if steps.ridges else self.family.first) * self.factor
                result = require_complete(_fitted(train.penalized(self.family.penalty(ridge)), steps.x, columns))
                x = without_vanished(train.kind.pair(result.U, result.V))
                steps = self._scored(steps, x, ridge, result)
                if x.width < free and len(beginning.means) == len(steps.means) - 1:
                    beginning = steps
            if steps.ridges[-1] < LIGHTEST * self.family.first and train.f.data.quadratic:
                exact = require_complete(solve(train, columns, rng=0))  # such data may be exact
                steps = self._scored(steps, steps.x, 0.0, exact)
        return beginning, steps

    def _over(self, steps: PathState) -> bool:
        if not steps.means:
            return False
        if isinstance(self.holdout.problem.f, FullTable) and self._worse(steps):
            return True
        return len(steps.means) - 1 - steps.best >= PATIENCE or steps.ridges[-1] < LIGHTEST * self.family.first

    def _worse(self, steps: PathState) -> bool:
        """Whether the last fit predicts clearly worse than the best."""
        rise = steps.losses[-1] - steps.losses[steps.best]
        return self.holdout.mean(rise) > SURE * self.holdout.standard_error(rise)

    @property
    def factor(self) -> float:
        return TABLE_FACTOR if isinstance(self.holdout.problem.f, FullTable) else FACTOR

    def _scored(self, steps: PathState, x: Factors, ridge: float, result: Result) -> PathState:
        losses = self.holdout.losses(result.U, result.V)
        steps = steps.on(x, ridge, losses, self.holdout.mean(losses))
        self.trials.tried.append(ridge)
        return steps


def _fitted(problem: Objective, x: Factors, columns: int) -> Result:
    """A short fit from x, with additional columns that help."""
    extra = problem.kind.fixed_columns
    room = columns + extra - x.width
    x = _at_least(add_columns(problem, x, room) if room > 0 else x, extra + min(columns, 1))
    start = Given(x.left, x.right)
    table = isinstance(problem.f, FullTable)
    solver, most = PCG(exact=table), TABLE_ITERATIONS if table else 100
    return solve(problem, x.width - extra, solver, start, 0, max_iter=most, tol=1e-4, objective_tol=1e-3)


def largest_ridge(problem: Objective, x: Factors) -> float:
    """‖∇f‖₂ with effects of rows and columns alone: the ridge above which all else is 0."""
    x = _at_least(x, 1)
    norm = spectral_norm(problem.f.gradient(x), np.random.default_rng(0))
    if not np.isfinite(norm):
        raise InputError("The gradient at X = 0 is not finite. Rescale the data.")
    return norm if _of_numbers(problem) else max(norm, LEAST * _mean_weight(problem))


def _of_numbers(problem: Objective) -> bool:
    """Whether z has the unit of y, so that there is no link."""
    if isinstance(problem.f, FullTable):
        return problem.f.loss.targets is NUMBERS
    assert isinstance(problem, Problem)
    return all(loss.targets is NUMBERS for loss in problem.f.fit.each_loss)


def _mean_weight(problem: Objective) -> float:
    f = problem.f
    if isinstance(f, FullTable):
        return f.mean_weight
    assert isinstance(problem, Problem)
    return problem.f.fit.total / max(problem.f.fit.seen, 1)


def without_vanished(x: Factors) -> Factors:
    """The factors without columns that a ridge has made zero; fixed columns and their partners stay."""
    sizes = np.linalg.norm(x.left, axis=0) * np.linalg.norm(x.right, axis=0)
    extra = x.kind.fixed_columns
    stay = sizes > VANISHED * max(float(np.max(sizes[extra:], initial=0.0)), 1e-300)
    stay[:extra] = True
    return x.columns(stay)


def _at_least(x: Factors, width: int) -> Factors:
    return x.padded(max(x.width, width))
