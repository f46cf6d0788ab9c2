"""Models for data in blocks: open settings are chosen with some rows in memory, then all blocks are fitted."""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from bifactor.arrays import Array, to_numpy
from bifactor.data import BlockStore, Observations
from bifactor.data.store.block_store import load_rows
from bifactor.errors import InputError
from bifactor.executors import BlockResult, Executor
from bifactor.factors import Free
from bifactor.losses import Loss, Shifted
from bifactor.losses.base import NUMBERS, SIGNS
from bifactor.models.completion.clipping import clip_range, levels_range
from bifactor.models.completion.fitting import (
    MAX_INTERCEPT,
    CompletionSettings,
    after_choice,
    as_problem,
    best_constant,
    fit_constant_to_values,
    run_posterior,
    run_with_ridge,
    select_noise_settings,
    warm_start,
    with_fitted_loss,
    with_requested_rank,
    without_intercept,
)
from bifactor.models.completion.noise_selection import MAX_NOISE_SELECTION_ENTRIES
from bifactor.models.completion.offsets import offset_scale, root_of, unscale_fixed_columns, with_scale
from bifactor.models.hyperparameters import RidgePath, select_rank_and_ridge
from bifactor.models.model import OFFSETS, Model
from bifactor.models.recoding import BlockView, Labels
from bifactor.operators import Partitioned
from bifactor.operators.entries import SymbolicEntries
from bifactor.operators.partitioned import with_data_parameters
from bifactor.problems.objective import Objective
from bifactor.running.result import Result
from bifactor.solvers.variational.noise import noise_named

MAX_SEARCH_ENTRIES = 2_000_000
"""Observations used to choose a ridge; of more, those of some rows, or of some columns if there are more columns."""


def fit_blocks(data: BlockView, settings: CompletionSettings, start: Model | None = None) -> Model:
    """Choose open settings and fit: `fit_model` for data in blocks."""
    settings = _suited(_possible(replace(settings, implicit=False)), data)
    loss, executor = settings.loss, settings.executor
    _check(data, loss)
    clip = _clip(data, settings)
    intercept = block_constant(data, loss, executor) if settings.offsets else 0.0
    seen_through = Shifted(loss, intercept) if intercept else loss
    problem = Objective(Partitioned(seen_through, data, executor), offsets=settings.offsets)
    fit = _posterior_in_blocks if settings.posterior else _ridge_in_blocks
    model = fit(data, problem, intercept, settings, start)
    return replace(model, clip=clip, result=replace(model.result, problem=None))


def _suited(settings: CompletionSettings, data: BlockView) -> CompletionSettings:
    """Settings with the parameters of the loss that are left to the data: all values, or some if there are many."""
    loss, levels = settings.loss, data.levels
    fits = loss.located or loss.left_open
    if levels is None and loss.left_open and not loss.located:
        return replace(
            settings, loss=loss.with_data_parameters(subsample_blocks(data, MAX_SEARCH_ENTRIES).values), fits_loss=fits
        )
    return replace(settings, loss=with_data_parameters(loss, data, False), fits_loss=fits)


def _check(data: BlockView, loss: Loss) -> None:
    """Raise `InputError` if the loss does not accept some values, as far as known before a pass over all blocks."""
    store = data.store
    values = np.array([store.least, store.largest]) if store.levels is None else store.levels
    loss.targets.check(data.how.of(values) if isinstance(data.how, Labels) else values, type(loss).__name__)


def _possible(settings: CompletionSettings) -> CompletionSettings:
    """Raise `InputError` if these settings are not possible with blocks."""
    if settings.posterior and settings.noise is not None and noise_named(settings.noise).per_entry:
        raise InputError(f"noise={settings.noise!r} needs all data in memory, but these are in blocks. Pass another.")
    return settings


def _ridge_in_blocks(
    data: BlockView, problem: Objective, intercept: float, settings: CompletionSettings, start: Model | None
) -> Model:
    problem = with_scale(problem, offset_scale(problem, settings.loss))
    choice = _tuned(data, intercept, settings, root_of(problem) ** 2)
    settings = after_choice(settings, choice.path)
    problem = problem.with_fitted(choice.fitted) if choice.fitted else problem
    init = warm_start(start, problem, choice.rank)
    result = run_with_ridge(problem, choice.rank, choice.ridge, choice.offset_ridge, init, settings)
    x = with_requested_rank(unscale_fixed_columns(problem.kind.pair(to_numpy(result.U), to_numpy(result.V))), settings)
    fixed = OFFSETS if settings.offsets else (0, 0)
    loss = without_intercept(_loss_of(result)) if settings.fits_loss else settings.loss
    own = choice.offset_ridge / root_of(problem) ** 2 if settings.offsets else None
    return Model(loss, intercept, fixed, choice.ridge, x.left, x.right, result, choice.path, offset_ridge=own)


def _loss_of(result: Result) -> Loss:
    assert result.problem is not None
    assert isinstance(result.problem.f, Partitioned)
    return result.problem.f.loss


def _posterior_in_blocks(
    data: BlockView, problem: Objective, intercept: float, settings: CompletionSettings, start: Model | None
) -> Model:
    best, choice = select_noise_settings(
        data.shape,
        data.store.size,
        settings,
        intercept,
        lambda rng: subsample_blocks(data, MAX_NOISE_SELECTION_ENTRIES, rng),
        in_blocks=True,
    )
    result = run_posterior(
        problem, best, best.solver, warm_start(start, problem, best.rank), after_choice(settings, choice)
    )
    fixed = OFFSETS if settings.offsets else (0, 0)
    assert result.posterior is not None
    U, V = result.posterior.means(to_numpy(result.U).dtype)
    model = Model(settings.loss, intercept, fixed, None, U, V, result, None, result.posterior, choice)
    return model.pruned() if settings.n_components is None else model


class SettingsChoice(NamedTuple):
    """Settings that were chosen with some of the observations."""

    rank: int
    ridge: float
    offset_ridge: float
    """On the scale of the components."""
    path: RidgePath | None = None
    fitted: tuple[float, ...] = ()
    """Parameters of a loss to begin with."""


def _tuned(data: BlockView, intercept: float, settings: CompletionSettings, scale: float) -> SettingsChoice:
    """Rank and ridges, chosen with some of the rows if there are many.

    A ridge has to outweigh the noise in X, whose largest singular value grows as the root of the observations per row
    plus the root of those per column. A sample of rows has fewer per column, so its best ridge is scaled. That of
    offsets is not: it is the variance of the noise over that of offsets.
    """
    most = min(data.shape) if settings.n_components is None else min(*data.shape, settings.n_components)
    given = None
    if settings.ridge is not None and (settings.ridge > 0 or settings.n_components is not None):
        own = settings.ridge if settings.offset_ridge is None else settings.offset_ridge * scale
        given = SettingsChoice(most, settings.ridge, own)
        if not settings.fits_loss:
            return given
    rng = np.random.default_rng(settings.seed)
    some = subsample_blocks(data, MAX_SEARCH_ENTRIES, rng)
    part = with_fitted_loss(with_scale(as_problem(some, settings, intercept), scale), settings)
    fitted = part.f.parameters.values if settings.fits_loss else ()
    if given is not None:
        return given._replace(fitted=fitted)
    with settings.choosing as stage:
        found = select_rank_and_ridge(part, settings.n_components, settings.ridge, rng, stage=stage)
    factor = _spread(*data.store.marginals) / _spread(np.bincount(some.rows), np.bincount(some.cols))
    path = None if found.path is None else replace(found.path, ridges=found.path.ridges * factor)
    ridge = found.ridge * factor
    return SettingsChoice(found.rank, ridge, ridge if found.offset_ridge is None else found.offset_ridge, path, fitted)


def _spread(rows: Array, cols: Array) -> float:
    """√ of the observations of a row plus √ of those of a column, averaged over observations."""
    return sum(float(np.sum(counts.astype(np.float64) ** 1.5) / np.sum(counts)) for counts in (rows, cols))


def subsample_blocks(data: BlockView, most: int, rng: np.random.Generator | None = None) -> Observations:
    """At most `most` observations: all, or those of some rows, or of some columns if there are more columns."""
    if data.store.size <= most:
        return _recoded(data, load_rows(data.store, np.ones(data.shape[0], bool)))
    side = int(data.shape[1] > data.shape[0])
    order = (rng or np.random.default_rng(0)).permutation(data.shape[side])
    totals = np.cumsum(data.store.marginals[side][order])
    count = max(1, int(np.searchsorted(totals, most, side="right")))
    stay, number = np.zeros(order.size, bool), np.full(order.size, -1)
    stay[order[:count]], number[order[:count]] = True, np.arange(count)
    some = _recoded(data, load_rows(data.store, stay, side))
    if side:
        return replace(some, cols=number[some.cols], shape=(some.shape[0], count), column_names=None)
    return replace(some, rows=number[some.rows], shape=(count, some.shape[1]), row_names=None)


def _recoded(data: BlockView, some: Observations) -> Observations:
    return some.replaced(data.how.of(some.values)) if isinstance(data.how, Labels) else some


def _clip(data: BlockView, settings: CompletionSettings) -> tuple[float, float] | None:
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
        return fit_constant_to_values(loss, levels.astype(np.float64), counts.astype(np.float64))
    if loss.quadratic and (not data.weighted or store.least == store.largest):
        return store.least if store.least == store.largest else store.mean
    f = Partitioned(loss, data, executor)

    def slopes(a: float) -> tuple[float, float]:
        return f.run_pass(sloped_at, settings=(a,)).sums

    if loss.quadratic:
        slope, curvature = slopes(0.0)
        return -slope / curvature
    numbers = loss.targets is NUMBERS
    ends = (store.least, store.largest) if numbers else (-MAX_INTERCEPT, MAX_INTERCEPT)
    return best_constant(slopes, store.mean if numbers else 0.0, ends)


def sloped_at(bound: SymbolicEntries, tall: tuple[Array, ...], shared: tuple[Array, ...], a: float) -> BlockResult:
    """Σ w ℓ′(a; y) and Σ w ℓ″(a; y)."""
    fit = bound.fit
    y = np.asarray(fit.y, np.float64)
    w = np.ones(y.size) if fit.weights is None else fit.weights.astype(np.float64)
    z = np.full(y.size, a)
    return BlockResult(sums=(float(w @ fit.loss.gradient(z, y)), float(w @ fit.loss.curvature(z, y))))


SHOWN = 200_000
"""Largest number of entries whose values and predictions are returned."""


class ScoringSettings(NamedTuple):
    """Settings for scoring predictions."""

    loss: Loss
    intercept: float
    clip: tuple[float, float] | None
    null: float
    """The best constant, for comparison."""
    null_loss: Loss
    """The loss with the best thresholds for it, if it has some."""
    step: int
    """One in this many entries is returned."""


def block_scores(model: Model, held: BlockView, executor: Executor | None) -> tuple[dict[str, Any], Array, Array]:
    """Scores as in `scores.scores`, and values and predictions of some entries."""
    data = BlockView(held.store, held.how, plain=True)
    if held.store.size == 0:
        raise InputError("There are too few entries to hold some out. Leave out --holdout.")
    null = block_constant(data, model.loss, executor)
    null_loss = model.loss
    levels, counts = data.levels, data.level_counts
    if model.loss.located and levels is not None and counts is not None:
        null_loss = model.loss.refit(np.zeros(levels.size), levels, counts.astype(np.float64))
    f = Partitioned(model.loss, data, executor)
    judge = ScoringSettings(model.loss, model.intercept, model.clip, null, null_loss, -(-held.store.size // SHOWN))
    outer, inner = f.sides(model.U, model.V)
    _, sums, each = f.run_pass(score_block, (outer,), (inner,), (judge,))
    size, right, absolute, squares, losses, nothing, lowest = (float(one) for one in sums)
    answer: dict[str, Any] = {"entries": int(size), "unknown": 0}
    if model.loss.targets is SIGNS:
        answer["accuracy"] = right / size
    else:
        answer["rmse"], answer["mae"] = (squares / size) ** 0.5, absolute / size
    worst, here = nothing - lowest, losses - lowest
    answer["mean_loss"] = losses / size
    answer["explained"] = 1 - here / worst if worst > 0 else float(here <= 0)
    values, predicted = (np.concatenate([one[k] for one in each]) for k in range(2))
    return answer, values, predicted


def score_block(
    bound: SymbolicEntries, tall: tuple[Array, ...], shared: tuple[Array, ...], judge: ScoringSettings
) -> BlockResult:
    """Sums over the entries of a block, and some of the entries."""
    loss, y = judge.loss, bound.fit.y.astype(np.float64)
    x = Free().pair(tall[0], shared[0])
    z = bound.bound.measure(x) if y.size else np.zeros(0, x.dtype)
    z = z + z.dtype.type(judge.intercept)
    z = z if judge.clip is None else np.clip(z, *judge.clip)
    predicted = loss.mean(z)
    error = predicted - y
    right = np.count_nonzero((predicted >= 0.5) == (y > 0))
    losses = loss.value(z.astype(np.float64), y), judge.null_loss.value(np.full(y.size, judge.null), y)
    sums = y.size, right, np.abs(error).sum(), error @ error, *(one.sum() for one in losses), loss.saturated(y).sum()
    some = slice(None, None, judge.step)
    return BlockResult(sums=tuple(map(float, sums)), each=(y[some], predicted[some]))
