"""Models for data in blocks: open settings are chosen with some rows in memory, then all blocks are fitted."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from bifactor.arrays import Array, host
from bifactor.errors import InputError
from bifactor.executors import Executor, Passed
from bifactor.losses import Loss, Shifted
from bifactor.losses.base import NUMBERS
from bifactor.models.block_views import BlockView, Labels
from bifactor.models.clipping import clip_range, levels_range
from bifactor.models.fitting import (
    LARGEST,
    Settings,
    after_choice,
    as_problem,
    best_constant,
    chosen_noise,
    constant_of,
    resumed,
    run_posterior,
    run_with_ridge,
    shaped,
    unshifted,
    with_fitted_loss,
)
from bifactor.models.model import OFFSETS, Model
from bifactor.models.noise_choice import MANY
from bifactor.models.offsets import root_of, spread, unscaled, with_scale
from bifactor.models.tuning import RidgePath, tuned
from bifactor.operators import Partitioned
from bifactor.operators.entries import SymbolicEntries
from bifactor.operators.partitioned import suited
from bifactor.problems.objective import Objective
from bifactor.running.result import Result
from bifactor.tables import BlockStore, Observations
from bifactor.tables.store.picked import picked

IN_MEMORY = ("student",)
"""Noise models with a number for each observation, which blocks do not store."""

ENOUGH = 2_000_000
"""Observations used to choose a ridge; of more, those of some rows, or of some columns if there are more columns."""


def fit_blocks(data: BlockView, settings: Settings, start: Model | None = None) -> Model:
    """Choose open settings and fit: `fit_model` for data in blocks."""
    settings = _suited(_possible(replace(settings, implicit=False)), data)
    loss, executor = settings.loss, settings.executor
    _check(data, loss)
    clip = _clip(data, settings)
    intercept = block_constant(data, loss, executor) if settings.offsets else 0.0
    seen_through = Shifted(loss, intercept) if intercept else loss
    problem = Objective(Partitioned(seen_through, data, executor), offsets=settings.offsets)
    fit = _with_posterior if settings.posterior else _with_ridge
    model = fit(data, problem, intercept, settings, start)
    return replace(model, clip=clip, result=replace(model.result, problem=None))


def _suited(settings: Settings, data: BlockView) -> Settings:
    """Settings with the parameters of the loss that are left to the data: all values, or some if there are many."""
    loss, levels = settings.loss, data.levels
    fits = loss.located or loss.left_open
    if levels is None and loss.left_open and not loss.located:
        return replace(settings, loss=loss.suited(some_of(data, ENOUGH).values), fits_loss=fits)
    return replace(settings, loss=suited(loss, data, False), fits_loss=fits)


def _check(data: BlockView, loss: Loss) -> None:
    """Raise `InputError` if the loss does not accept some values, as far as known before a pass over all blocks."""
    store = data.store
    values = np.array([store.least, store.largest]) if store.levels is None else store.levels
    loss.targets.check(data.how.of(values) if isinstance(data.how, Labels) else values, type(loss).__name__)


def _possible(settings: Settings) -> Settings:
    """Raise `InputError` if these settings are not possible with blocks."""
    if settings.posterior and settings.noise in IN_MEMORY:
        raise InputError(f"noise={settings.noise!r} needs all data in memory, but these are in blocks. Pass another.")
    return settings


def _with_ridge(
    data: BlockView, problem: Objective, intercept: float, settings: Settings, start: Model | None
) -> Model:
    problem = with_scale(problem, spread(problem, settings.loss))
    choice = _tuned(data, intercept, settings, root_of(problem) ** 2)
    settings = after_choice(settings, choice.path)
    problem = problem.with_fitted(choice.fitted) if choice.fitted else problem
    init = resumed(start, problem, choice.rank)
    result = run_with_ridge(problem, choice.rank, choice.ridge, choice.offset_ridge, init, settings)
    x = shaped(unscaled(problem.kind.pair(host(result.U), host(result.V))), settings)
    fixed = OFFSETS if settings.offsets else (0, 0)
    loss = unshifted(_loss_of(result)) if settings.fits_loss else settings.loss
    own = choice.offset_ridge / root_of(problem) ** 2 if settings.offsets else None
    return Model(loss, intercept, fixed, choice.ridge, x.left, x.right, result, choice.path, offset_ridge=own)


def _loss_of(result: Result) -> Loss:
    assert result.problem is not None
    assert isinstance(result.problem.f, Partitioned)
    return result.problem.f.loss


def _with_posterior(
    data: BlockView, problem: Objective, intercept: float, settings: Settings, start: Model | None
) -> Model:
    best, choice = chosen_noise(
        data.shape, data.store.size, settings, intercept, lambda rng: some_of(data, MANY, rng), IN_MEMORY
    )
    result = run_posterior(
        problem, best, best.solver, resumed(start, problem, best.rank), after_choice(settings, choice)
    )
    fixed = OFFSETS if settings.offsets else (0, 0)
    assert result.posterior is not None
    U, V = result.posterior.means(host(result.U).dtype)
    model = Model(settings.loss, intercept, fixed, None, U, V, result, None, result.posterior, choice)
    return model.with_living() if settings.n_components is None else model


class Choice(NamedTuple):
    """Settings that were chosen with some of the observations."""

    rank: int
    ridge: float
    offset_ridge: float
    """On the scale of the components."""
    path: RidgePath | None = None
    fitted: tuple[float, ...] = ()
    """Parameters of a loss to begin with."""


def _tuned(data: BlockView, intercept: float, settings: Settings, scale: float) -> Choice:
    """Rank and ridges, chosen with some of the rows if there are many.

    A ridge has to outweigh the noise in X, whose largest singular value grows as the root of the observations per row
    plus the root of those per column. A sample of rows has fewer per column, so its best ridge is scaled. That of
    offsets is not: it is the variance of the noise over that of offsets.
    """
    most = min(data.shape) if settings.n_components is None else min(*data.shape, settings.n_components)
    given = None
    if settings.alpha is not None and (settings.alpha > 0 or settings.n_components is not None):
        own = settings.alpha if settings.offset_ridge is None else settings.offset_ridge * scale
        given = Choice(most, settings.alpha, own)
        if not settings.fits_loss:
            return given
    rng = np.random.default_rng(settings.seed)
    some = some_of(data, ENOUGH, rng)
    part = with_fitted_loss(with_scale(as_problem(some, settings, intercept), scale), settings)
    fitted = part.f.fitted if settings.fits_loss else ()
    if given is not None:
        return given._replace(fitted=fitted)
    with settings.choosing as stage:
        found = tuned(part, settings.n_components, settings.alpha, rng, stage=stage)
    factor = _spread(*data.store.marginals) / _spread(np.bincount(some.rows), np.bincount(some.cols))
    path = None if found.path is None else replace(found.path, ridges=found.path.ridges * factor)
    ridge = found.ridge * factor
    return Choice(found.rank, ridge, ridge if found.offset_ridge is None else found.offset_ridge, path, fitted)


def _spread(rows: Array, cols: Array) -> float:
    """√ of the observations of a row plus √ of those of a column, averaged over observations."""
    return sum(float(np.sum(counts.astype(np.float64) ** 1.5) / np.sum(counts)) for counts in (rows, cols))


def some_of(data: BlockView, most: int, rng: np.random.Generator | None = None) -> Observations:
    """At most `most` observations: all, or those of some rows, or of some columns if there are more columns."""
    if data.store.size <= most:
        return _recoded(data, picked(data.store, np.ones(data.shape[0], bool)))
    side = int(data.shape[1] > data.shape[0])
    order = (rng or np.random.default_rng(0)).permutation(data.shape[side])
    totals = np.cumsum(data.store.marginals[side][order])
    count = max(1, int(np.searchsorted(totals, most, side="right")))
    stay, number = np.zeros(order.size, bool), np.full(order.size, -1)
    stay[order[:count]], number[order[:count]] = True, np.arange(count)
    some = _recoded(data, picked(data.store, stay, side))
    if side:
        return replace(some, cols=number[some.cols], shape=(some.shape[0], count), column_names=None)
    return replace(some, rows=number[some.rows], shape=(count, some.shape[1]), row_names=None)


def _recoded(data: BlockView, some: Observations) -> Observations:
    return some.replaced(data.how.of(some.values)) if isinstance(data.how, Labels) else some


def _clip(data: BlockView, settings: Settings) -> tuple[float, float] | None:
    store = data.store
    if settings.clip is True:
        return store.least, store.largest
    if settings.clip == "auto":
        known = store.levels, store.level_counts
        return None if known[0] is None or known[1] is None else levels_range(known[0], known[1])
    return clip_range(settings.clip, np.array([store.mean]) if store.levels is None else _median(store))


def _median(store: BlockStore) -> Array:
    assert store.levels is not None
    assert store.level_counts is not None
    halfway = int(np.searchsorted(np.cumsum(store.level_counts), store.size / 2))
    return store.levels[[min(halfway, store.levels.size - 1)]]


def block_constant(data: BlockView, loss: Loss, executor: Executor | None) -> float:
    """argmin over a of Σ w ℓ(a; y), as in `fitting.constant`; by passes over the blocks if there are many values."""
    store = data.store
    if loss.located:
        return 0.0
    levels, counts = data.levels, data.level_counts
    if levels is not None and counts is not None and not data.weighted:
        return constant_of(loss, levels.astype(np.float64), counts.astype(np.float64))
    if loss.quadratic and (not data.weighted or store.least == store.largest):
        return store.least if store.least == store.largest else store.mean
    f = Partitioned(loss, data, executor)

    def slopes(a: float) -> tuple[float, float]:
        return f.over(sloped_at, settings=(a,)).sums

    if loss.quadratic:
        slope, curvature = slopes(0.0)
        return -slope / curvature
    numbers = loss.targets is NUMBERS
    ends = (store.least, store.largest) if numbers else (-LARGEST, LARGEST)
    return best_constant(slopes, store.mean if numbers else 0.0, ends)


def sloped_at(bound: SymbolicEntries, tall: tuple[Array, ...], shared: tuple[Array, ...], a: float) -> Passed:
    """Σ w ℓ′(a; y) and Σ w ℓ″(a; y)."""
    fit = bound.fit
    y = np.asarray(fit.y, np.float64)
    w = np.ones(y.size) if fit.weights is None else fit.weights.astype(np.float64)
    z = np.full(y.size, a)
    return Passed(sums=(float(w @ fit.loss.gradient(z, y)), float(w @ fit.loss.curvature(z, y))))
