"""Choice of the number of components and the ridge by held-out measurements."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import ceil, log
from typing import NamedTuple

import numpy as np

from bifactor.arrays import Array
from bifactor.errors import InputError
from bifactor.factors import Factors
from bifactor.inits import Given
from bifactor.listing import Listing
from bifactor.markup.svg import CARD, line_chart
from bifactor.operators.table import Table
from bifactor.penalties import Penalty, Ridge
from bifactor.problems.objective import Objective
from bifactor.problems.problem import Problem
from bifactor.running.holdout import HeldCells, Holdout
from bifactor.running.progress import Stage
from bifactor.running.result import Result, Status
from bifactor.running.solve import solve
from bifactor.solvers import PCG
from bifactor.solvers.parts.growth import grown
from bifactor.svd import spectral_norm
from bifactor.words import counted

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

MOST = 40
"""Largest number of components if it is left to the ridge."""

LADDER = (1, 2, 3, 5, 8, 13, 21)
"""Ranks tried for whole tables."""

FEW = 40
"""Number of measurements below which none are held out; the ridge is then this fraction of the first:"""
CAUTIOUS = 0.1

LEAST = 1e-2
"""The first ridge is at least this per unit of weight, unless errors are squared: without a ridge, labels that are all
equal, and counts that are all 0, drive a fit to infinity."""

VANISHED = 1e-6
"""Length relative to the longest column below which a column counts as zero."""


@dataclass(frozen=True, repr=False)
class RidgePath(Listing):
    """Mean held-out loss of each ridge tried, the largest first; 0 stands for none."""

    ridges: Array
    held_out: Array
    standard_error: Array
    """Standard error of the difference to the best."""
    interrupted: bool = False
    """Whether Ctrl-C interrupted the choice."""

    _lines = "ridge"

    @property
    def chosen(self) -> float:
        return float(self.ridges[int(np.argmin(self.held_out))])

    def _about(self) -> str:
        return f"{super()._about()} tried, {self.chosen:.4g} chosen"

    def pictures(self) -> list[str]:
        """The held-out loss over the ridge, as SVG."""
        shown = self.ridges > 0  # 0 has no place on a logarithmic axis
        if not shown.any():
            return []
        best = int(np.argmin(self.held_out))
        mark = int(np.count_nonzero(shown[:best])) if shown[best] else None
        x, y, errors = self.ridges[shown], self.held_out[shown], self.standard_error[shown]
        return [line_chart(x, y, "ridge", "held-out loss", log_x=True, errors=errors, mark=mark, frame=CARD)]


class Tuned(NamedTuple):
    """The rank, the ridge, how it was found, and factors fitted with these to all data except the held-out part."""

    rank: int
    ridge: float
    path: RidgePath | None = None
    x: Factors | None = None


def tuned(
    problem: Objective,
    n_components: int | None,
    alpha: float | None,
    rng: np.random.Generator,
    start: Factors | None = None,
    penalty: Callable[[float], Penalty] = Ridge,
    stage: Stage | None = None,
) -> Tuned:
    """Choose the rank and the ridge; None leaves either to the data.

    If both are left to the data, there are two ways to keep a fit simple: many columns, most of which vanish under a
    ridge, or the few that `solve(rank="auto")` finds, with their own ridge. These two and their geometric mean are
    tried, and the best predictor is taken. The paths agree as long as the ridge leaves fewer columns than the smallest
    rank, so each begins where the previous one ran out of columns. For a whole table, ranks are tried from 1 on until
    one predicts worse.

    `start` has only the fixed columns and their partners, by default zero; `penalty` makes the ridge from a number.
    """
    start = problem.zero(0) if start is None else start
    most = min(*problem.shape, MOST if n_components is None else n_components)
    many = (problem.f.seen or 0) >= FEW
    if alpha is not None:
        left_open = alpha == 0 and n_components is None and many
        return Tuned(_free_rank(problem, rng) if left_open else most, alpha)
    first = steepest(problem, start)
    if not many or first == 0:
        return Tuned(most, CAUTIOUS * first)
    holdout = hold_out(problem, rng)
    ranks = {most}
    if n_components is None and problem.f.data.quadratic:
        if stage is not None:
            stage("choosing the rank", 0, 1)
        few = min(most, _free_rank(holdout.train, rng))
        ranks |= {few, max(few, round((few * most) ** 0.5))}
    climbing = n_components is None and isinstance(problem.f, Table)
    if climbing:
        ranks |= {rank for rank in LADDER if rank < most}
    walk = Walk(holdout, first, penalty, stage)
    paths: dict[int, RidgePath] = {}
    fits: dict[int, Factors] = {}
    beginning = Steps(start)
    for columns in sorted(ranks):
        try:
            paths[columns], beginning, fits[columns] = walk.to(columns, beginning)
        except KeyboardInterrupt:  # after the first path there is already a choice
            if not paths:
                raise
            last = max(paths)
            paths[last] = replace(paths[last], interrupted=True)
            break
        worse = climbing and paths[columns].held_out.min() > min(path.held_out.min() for path in paths.values())
        if worse or paths[columns].interrupted:
            break
    rank = min(paths, key=lambda columns: paths[columns].held_out.min())
    interrupted = any(path.interrupted for path in paths.values())
    return Tuned(rank, paths[rank].chosen, replace(paths[rank], interrupted=interrupted), fits[rank])


def hold_out(problem: Objective, rng: np.random.Generator) -> Holdout | HeldCells:
    """Hold out a tenth of the known entries."""
    if isinstance(problem.f, Table):
        return HeldCells(problem, rng)
    assert isinstance(problem, Problem)
    return Holdout(problem, rng)


def _free_rank(problem: Objective, rng: np.random.Generator) -> int:
    """Number of columns, without fixed ones, that `solve(rank="auto")` chooses without a ridge."""
    return solve(problem, "auto", rng=rng, max_iter=0).rank - problem.kind.fixed_columns


@dataclass(frozen=True, eq=False)
class Steps:
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

    def on(self, x: Factors, ridge: float, losses: Array, mean: float) -> "Steps":
        best = x if self.best_x is None or mean < min(self.means) else self.best_x
        return Steps(x, (*self.ridges, ridge), (*self.losses, losses), (*self.means, mean), best)


@dataclass(frozen=True, eq=False)
class Walk:
    """Path from a ridge at which X is 0 to smaller ones; fits start from the last, until predictions get worse."""

    holdout: Holdout | HeldCells
    first: float
    penalty: Callable[[float], Penalty]
    stage: Stage | None

    def to(self, columns: int, beginning: Steps) -> tuple[RidgePath, Steps, Factors]:
        """The path with this many columns, the point where it separates from one with more, and its best fit.

        That point is before all columns are in use; `beginning` is that point of a path with fewer columns.
        """
        train, steps = self.holdout.train, beginning
        free, interrupted = columns + train.kind.fixed_columns, False
        while not (interrupted or self._over(steps)):
            self._tell(columns, steps)
            ridge = self.first * self.factor ** (1 + len(steps.ridges))
            try:
                result = _fitted(train.penalized(self.penalty(ridge)), steps.x, columns)
            except KeyboardInterrupt:  # between fits; during a fit it is a status
                if not steps.means:
                    raise
                interrupted = True
                break
            x = without_vanished(train.kind.pair(result.U, result.V))
            steps = self._scored(steps, x, ridge, result)
            beginning = steps if x.width < free and len(beginning.means) == len(steps.means) - 1 else beginning
            interrupted = result.status is Status.INTERRUPTED
        if not interrupted and steps.ridges[-1] < LIGHTEST * self.first and train.f.data.quadratic:
            exact = solve(train, columns, rng=0)  # such data may be exact
            steps = self._scored(steps, steps.x, 0.0, exact)
        errors = [self.holdout.standard_error(one - steps.losses[steps.best]) for one in steps.losses]
        assert steps.best_x is not None
        path = RidgePath(np.array(steps.ridges), np.array(steps.means), np.array(errors), interrupted)
        return path, beginning, steps.best_x

    def _tell(self, columns: int, steps: Steps) -> None:
        if self.stage is not None:
            self.stage(f"choosing the ridge, at most {counted(columns, 'component')}", len(steps.means), LONGEST)

    def _over(self, steps: Steps) -> bool:
        if not steps.means:
            return False
        if isinstance(self.holdout, HeldCells) and self._worse(steps):
            return True
        return len(steps.means) - 1 - steps.best >= PATIENCE or steps.ridges[-1] < LIGHTEST * self.first

    def _worse(self, steps: Steps) -> bool:
        """Whether the last fit predicts clearly worse than the best."""
        rise = steps.losses[-1] - steps.losses[steps.best]
        return self.holdout.mean(rise) > SURE * self.holdout.standard_error(rise)

    @property
    def factor(self) -> float:
        return TABLE_FACTOR if isinstance(self.holdout, HeldCells) else FACTOR

    def _scored(self, steps: Steps, x: Factors, ridge: float, result: Result) -> Steps:
        losses = self.holdout.losses(result.U, result.V)
        return steps.on(x, ridge, losses, self.holdout.mean(losses))


def _fitted(problem: Objective, x: Factors, columns: int) -> Result:
    """A short fit from x, with additional columns that help."""
    extra = problem.kind.fixed_columns
    room = columns + extra - x.width
    x = _at_least(grown(problem, x, room) if room > 0 else x, extra + min(columns, 1))
    start = Given(x.left, x.right)
    table = isinstance(problem.f, Table)
    solver, most = PCG(exact=table), TABLE_ITERATIONS if table else 100
    return solve(problem, x.width - extra, solver, start, 0, max_iter=most, tol=1e-4, objective_tol=1e-3)


def steepest(problem: Objective, x: Factors) -> float:
    """‖∇f‖₂ with effects of rows and columns alone: the ridge above which all else is 0."""
    x = _at_least(x, 1)
    norm = spectral_norm(problem.f.gradient(x), np.random.default_rng(0))
    if not np.isfinite(norm):
        raise InputError("The gradient at X = 0 is not finite. Rescale the data.")
    return norm if problem.f.data.quadratic else max(norm, LEAST * _mean_weight(problem))


def _mean_weight(problem: Objective) -> float:
    f = problem.f
    if isinstance(f, Table):
        return f.weight_sum / max(f.seen, 1)
    assert isinstance(problem, Problem)
    return problem.f.fit.total / problem.y.size


def without_vanished(x: Factors) -> Factors:
    """The factors without columns that a ridge has made zero; fixed columns and their partners stay."""
    sizes = np.linalg.norm(x.left, axis=0) * np.linalg.norm(x.right, axis=0)
    extra = x.kind.fixed_columns
    stay = sizes > VANISHED * max(float(np.max(sizes[extra:], initial=0.0)), 1e-300)
    stay[:extra] = True
    return x.columns(stay)


def _at_least(x: Factors, width: int) -> Factors:
    return x.padded(max(x.width, width))
