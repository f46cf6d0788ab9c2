"""Fits of models: parameters are validated, open settings are chosen, then all entries are fitted."""

import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from bifactor.arrays import Array, dtype_of, to_numpy
from bifactor.data import Dataset
from bifactor.errors import InputError
from bifactor.executors import BlockResult, Executor
from bifactor.factors import Factors
from bifactor.inits import Given, Init, Spectral
from bifactor.losses import Loss, Shifted, Squared
from bifactor.losses.base import NUMBERS
from bifactor.losses.named import loss_of
from bifactor.models.completion.clipping import Clip, clip_of, clip_range
from bifactor.models.completion.noise_selection import (
    ENTRIES_PER_COMPONENT,
    MAX_NOISE_SELECTION_ENTRIES,
    Candidate,
    NoiseChoice,
    candidates,
    select_noise_model,
)
from bifactor.models.completion.offsets import (
    offset_scale,
    penalty,
    root_of,
    scale_fixed_columns,
    unscale_fixed_columns,
    with_scale,
)
from bifactor.models.hyperparameters import (
    CONSERVATIVE_RIDGE_SHARE,
    MIN_HOLDOUT_ENTRIES,
    largest_ridge,
    select_rank_and_ridge,
    without_vanished,
)
from bifactor.models.model import OFFSETS, Model
from bifactor.models.side_information import ScaledFeatures
from bifactor.operators.entries import SymbolicEntries
from bifactor.penalties import Ridge
from bifactor.problems.objective import Objective, Problem, objective_of
from bifactor.problems.state import State
from bifactor.running.progress import Stage, choice_bar
from bifactor.running.result import Result, Status
from bifactor.running.search import Search
from bifactor.running.solve import Callback, solve
from bifactor.solvers import PCG, Refitted, Solver, Variational
from bifactor.solvers.variational.noise import NOISES, NoiseName, noise_named
from bifactor.validation import is_at_least_zero, is_count, positive, require_flag, require_instance

PLATEAU = 30.0
"""With a ridge, a fit ends when ten iterations lower the objective by no more than this many times `tol`. With the
default, held-out errors were within ±0.5 % of those after 300 iterations on six sets of ratings at two ranks and two
ridges, and within ±0.2 % in 19 of 24 cases."""

MAX_INTERCEPT = 20.0
"""Limit of z for losses with a link: beyond it, labels are certain, and counts are huge or zero."""


SHORT = 5
"""Mean number of entries per row, or per column if there are more of these, below which a posterior has two starts.
With 2 to 4, the spectral start and its sketch ended up to 220 nats apart, the errors by a factor of 1.7, and either was
better; with 7 and more they ended at the same place."""

MAX_SEARCH_ENTRIES = 2_000_000
"""Entries used to choose a ridge for data in blocks; of more, those of some rows, or of some columns."""

FIRST = 5
"""Number of components for the first fit of thresholds, if the rank is chosen from the data."""


@dataclass(frozen=True)
class CompletionSettings:
    """How to fit: the validated parameters of an estimator."""

    loss: Loss
    n_components: int | None
    """None for as many as the data justify."""
    ridge: float | None
    """None for the one that predicts best."""
    posterior: bool
    """Whether factors have a posterior, with priors instead of a ridge."""
    noise: NoiseName | None
    """Noise of the posterior; None for the one that predicts best."""
    offsets: bool
    solver: Solver | None
    max_iter: int
    tol: float
    seed: int
    clip: Clip = False
    """Range of predictions, see `MatrixCompletion`."""
    progress: bool = False
    callback: Callable[..., bool | None] | None = None
    checkpoint: str | os.PathLike[str] | None = None
    stage: Stage | None = None
    """Called with the setting that is being chosen before the fit."""
    implicit: bool | None = False
    """Whether the known columns of a row are features of it, and vice versa.

    None: for a posterior, if that predicts better; not for a ridge.
    """
    executor: Executor | None = None
    """Where passes over blocks run; None for this machine."""
    keep_features: bool = False
    """Whether features are used even if a posterior predicts held-out entries clearly worse with them."""
    offset_ridge: float | None = None
    """Ridge of the offsets if `ridge` is given; None for ridge/s, see `models.offsets`."""
    fits_loss: bool = False
    """Whether parameters of the loss are fitted, as thresholds always are."""

    @property
    def choosing(self) -> AbstractContextManager[Stage | None]:
        """Context that reports the progress of choices."""
        return nullcontext(self.stage) if self.stage is not None else choice_bar(self.progress)


def fit_model(data: Dataset, settings: CompletionSettings, start: Model | None = None) -> Model:
    """Choose open settings and fit, in memory or in blocks."""
    _require_possible(settings, data)
    settings = with_data_parameters(settings, data)
    check_targets(data, settings.loss)
    clip = clip_range(settings.clip, data)
    intercept = fit_constant(data, settings.loss, settings.executor) if settings.offsets else 0.0
    if settings.posterior:
        data = data.with_representable_squares(intercept)
        model = _with_posterior(data, as_problem(data, settings, intercept), intercept, settings, start)
    else:
        model = _with_ridge(data, ScaledFeatures(data, bool(settings.implicit)), intercept, settings, start)
    # The f of data in blocks holds what runs its passes.
    return replace(model, clip=clip, result=model.result if data.in_memory else replace(model.result, problem=None))


def _require_possible(settings: CompletionSettings, data: Dataset) -> None:
    """Raise `InputError` if there are no entries, or if these settings need them in memory, but they are in blocks."""
    if data.size == 0:
        raise InputError("No entry is known. Pass at least one known entry.")
    if data.in_memory:
        return
    if settings.posterior and settings.noise is not None and noise_named(settings.noise).per_entry:
        raise InputError(f"noise={settings.noise!r} needs all data in memory, but these are in blocks. Pass another.")
    if settings.implicit:
        raise InputError("implicit_features=True needs data in memory. Pass False or 'auto'.")


def with_data_parameters(settings: CompletionSettings, data: Dataset) -> CompletionSettings:
    """Settings with the parameters of the loss that are left to the data."""
    loss, fits = settings.loss, settings.loss.located or settings.loss.left_open
    if loss.left_open:
        loss = loss.with_data_parameters(data.representatives())
    return replace(settings, loss=loss, fits_loss=fits)


def check_targets(data: Dataset, loss: Loss) -> None:
    """Raise `InputError` if the loss does not accept some values: all, or those known without a pass over blocks."""
    if data.in_memory:
        values = data.representatives()
    else:
        about = data.summary()
        values = np.array([about.least, about.largest]) if about.levels is None else about.levels
    loss.targets.check(values, type(loss).__name__)


def _with_ridge(
    data: Dataset, sides: ScaledFeatures, intercept: float, settings: CompletionSettings, start: Model | None
) -> Model:
    problem = as_problem(data, settings, intercept, sides=sides)
    scale = offset_scale(problem, settings.loss)
    problem = with_scale(problem, scale)
    found = _select_ridge(data, problem, intercept, settings, scale)
    if found.fitted:
        problem = problem.with_fitted(found.fitted)
    settings = after_search(settings, found.search)
    init = warm_start(start, problem, found.rank, sides)
    result = run_with_ridge(problem, found.rank, found.ridge, found.offset_ridge, init, settings)
    x = unscale_fixed_columns(problem.kind.pair(to_numpy(result.U), to_numpy(result.V)))
    U, V, side = sides.add_features(with_requested_rank(x, settings))
    fixed = OFFSETS if settings.offsets else (0, 0)
    loss = without_intercept(_loss_of(result)) if settings.fits_loss else settings.loss
    own = found.offset_ridge / root_of(problem) ** 2 if settings.offsets else None
    return Model(loss, intercept, fixed, found.ridge, U, V, result, found.search, side=side, offset_ridge=own)


class RidgeChoice(NamedTuple):
    """Settings of a fit with a ridge."""

    rank: int
    ridge: float
    offset_ridge: float
    """On the scale of the components."""
    search: Search | None = None
    fitted: tuple[float, ...] = ()
    """Parameters of a loss to begin with."""


def _select_ridge(
    data: Dataset, problem: Objective, intercept: float, settings: CompletionSettings, scale: float
) -> RidgeChoice:
    """Rank and ridges, chosen with all entries in memory, or with some rows if there are many in blocks.

    A ridge has to outweigh the noise in X, whose largest singular value grows as the root of the entries per row plus
    the root of those per column. A sample of rows has fewer per column, so its best ridge is scaled. That of offsets is
    not: it is the variance of the noise over that of offsets.
    """
    most = min(data.shape) if settings.n_components is None else min(*problem.shape, settings.n_components)
    given = None
    if settings.ridge is not None and not data.in_memory and (settings.ridge > 0 or settings.n_components is not None):
        given = RidgeChoice(most, settings.ridge, _offset_ridge(settings, settings.ridge, None, scale))
        if not settings.fits_loss:
            return given
    rng = np.random.default_rng(settings.seed)
    some: Dataset = data if data.in_memory else data.subsample(MAX_SEARCH_ENTRIES, rng)
    part = problem if some is data else with_scale(as_problem(some, settings, intercept), scale)
    part = with_fitted_loss(part, settings)
    fitted = part.f.parameters.values if settings.fits_loss else ()
    if given is not None:
        return given._replace(fitted=fitted)
    with settings.choosing as stage:
        found = select_rank_and_ridge(part, settings.n_components, settings.ridge, rng, stage=stage)
    factor = 1.0 if some is data else _spread(*data.counts()) / _spread(*some.counts())
    ridge, search = found.ridge * factor, found.search
    if search is not None:
        search = replace(search, settings={"ridge": search["ridge"] * factor})
    return RidgeChoice(found.rank, ridge, _offset_ridge(settings, ridge, found.offset_ridge, scale), search, fitted)


def _offset_ridge(settings: CompletionSettings, ridge: float, own: float | None, scale: float) -> float:
    """The ridge of the offsets on the scale of the components: as given, as found, or that of the components."""
    if settings.offset_ridge is not None:
        return settings.offset_ridge * scale
    return ridge if own is None else own


def _spread(rows: Array, cols: Array) -> float:
    """√ of the entries of a row plus √ of those of a column, averaged over entries."""
    return sum(float(np.sum(counts.astype(np.float64) ** 1.5) / np.sum(counts)) for counts in (rows, cols))


def with_fitted_loss(problem: Objective, settings: CompletionSettings) -> Objective:
    """The problem with the best parameters of its loss, if these are fitted, with factors under a conservative ridge.

    Thresholds from the shares of levels assume z = 0, and are too close to each other if z varies; Huber's δ from the
    values themselves is too large. It is fitted once: repeated fits follow the data more and more closely, and δ tends
    to 0.
    """
    ridge = CONSERVATIVE_RIDGE_SHARE * largest_ridge(problem, problem.zero(0)) if settings.fits_loss else 0.0
    if ridge == 0:
        return problem
    rank = min(*problem.shape, FIRST if settings.n_components is None else settings.n_components)
    result = run(problem.penalized(Ridge(ridge)), rank, None, None, _quiet(settings))
    if result.status is Status.INTERRUPTED:  # before there is a fit
        raise KeyboardInterrupt
    return problem.with_fitted(problem.f.parameters.refit(problem.kind.pair(result.U, result.V), None))


def run_with_ridge(
    problem: Objective, rank: int, ridge: float, offset_ridge: float, init: Given | None, settings: CompletionSettings
) -> Result:
    """Fit factors under a ridge, and thresholds if the loss has some."""
    penalized = problem.penalized(penalty(ridge, offset_ridge))
    solver = settings.solver if init is None or settings.solver is not None else PCG()
    if settings.loss.located and settings.solver is None:
        if init is None:
            result = run(penalized, rank, None, None, _quiet(settings))
            if result.status is Status.INTERRUPTED:
                return result
            init = _given(result)
        solver = Refitted()
    return run(penalized, rank, solver, init, settings)


def with_requested_rank(x: Factors, settings: CompletionSettings) -> Factors:
    """Factors without vanished columns if the rank is chosen; otherwise of the rank that was asked for."""
    if settings.n_components is None:
        return without_vanished(x)
    m, n = x.left.shape[0], x.right.shape[0]
    return x.padded(x.kind.fixed_columns + min(m, n, settings.n_components))


def without_intercept(loss: Loss) -> Loss:
    """The loss without the intercept of a model."""
    return loss.loss if isinstance(loss, Shifted) else loss


def _loss_of(result: Result) -> Loss:
    assert result.problem is not None
    loss: Loss = result.problem.f.loss  # type: ignore[attr-defined]  # f of data, in memory or in blocks
    return loss


def _given(result: Result) -> Given:
    return Given(result.U, result.V)


def after_search(settings: CompletionSettings, search: Search | None) -> CompletionSettings:
    """Settings for the fit after a search; without the checkpoint if that was interrupted.

    If it is not interrupted the next time, the choice may be another one, whose run could not be resumed.
    """
    return replace(settings, checkpoint=None) if search is not None and search.interrupted else settings


def _quiet(settings: CompletionSettings) -> CompletionSettings:
    return replace(settings, callback=None, progress=False, checkpoint=None)


def _with_posterior(
    data: Dataset, problem: Objective, intercept: float, settings: CompletionSettings, start: Model | None
) -> Model:
    best, choice = select_noise_settings(data, settings, intercept)
    after = after_search(settings, None if choice is None else choice.search)
    solver = best.with_features(data.features)
    result = run_posterior(problem, best, solver, warm_start(start, problem, best.rank), after)
    fixed = OFFSETS if settings.offsets else (0, 0)
    assert result.posterior is not None
    posterior = result.posterior
    if choice is not None and any(choice.blind):
        posterior = posterior.without_features(choice.blind, data.counts())
    U, V = posterior.means(dtype_of(result.U))
    model = Model(settings.loss, intercept, fixed, None, U, V, result, None, posterior, choice)
    return (model.pruned() if settings.n_components is None else model).with_side()


def run_posterior(
    problem: Objective, best: Candidate, solver: Variational, init: Given | None, settings: CompletionSettings
) -> Result:
    """Run a solver as a choice says; where rows are short, from two starts, and the one of larger evidence is taken."""
    within = replace(settings, callback=stop_after(best.sweeps, settings.callback))
    result = run(problem, best.rank, solver, init, within)
    short = (problem.f.seen or 0) < SHORT * max(problem.shape)
    stopped = result.status is Status.CALLBACK and result.n_iter != best.sweeps
    if init is not None or not short or best.rank == 0 or stopped or result.status is Status.INTERRUPTED:
        return result
    other = Spectral(sketch=not problem.f.data.expensive)  # the usual one is the opposite
    quiet = replace(_quiet(settings), callback=stop_after(best.sweeps, None))
    try:
        again = run(problem, best.rank, solver, other, quiet)
    except KeyboardInterrupt:  # before its first sweep
        return result
    return again if again.objective < result.objective and again.status is not Status.INTERRUPTED else result


def select_noise_settings(
    data: Dataset, settings: CompletionSettings, intercept: float
) -> tuple[Candidate, NoiseChoice | None]:
    """Settings of a posterior, and how they were chosen, with those of some rows if there are many entries."""
    solver, rng = settings.solver, np.random.default_rng(settings.seed)
    if isinstance(solver, Variational):
        rank = ENTRIES_PER_COMPONENT[solver.prior] if settings.n_components is None else settings.n_components
        return Candidate(solver, min(*data.shape, rank), features=True), None
    in_blocks = not data.in_memory
    tried = candidates(settings.noise, settings.n_components, data.shape, bool(settings.implicit), in_blocks)
    if data.size < MIN_HOLDOUT_ENTRIES:
        return replace(tried[0], features=True), None
    some = data.subsample(MAX_NOISE_SELECTION_ENTRIES, rng)
    problem, auto = as_problem(some, settings, intercept), settings.implicit is None and data.in_memory
    assert isinstance(problem, Problem)
    with settings.choosing as stage:
        choice = select_noise_model(problem, tried, rng, stage, some.features, auto, settings.keep_features)
    return choice.chosen, choice


def stop_after(sweeps: int | None, callback: Callback | None) -> Callback | None:
    """A callback that ends a run after this many sweeps, or when `callback` does."""
    if sweeps is None:
        return callback

    def over(sweep: int, state: State) -> bool:
        asked = callback is not None and callback(sweep, state)
        return bool(asked) or sweep >= sweeps

    return over


def run(
    problem: Objective, rank: int, solver: Solver | None, init: Init | None, settings: CompletionSettings
) -> Result:
    """Run a solver with the limits of the settings."""
    return solve(
        problem,
        rank,
        solver,
        init,
        rng=settings.seed,
        max_iter=settings.max_iter,
        tol=settings.tol,
        objective_tol=0.0 if settings.posterior else PLATEAU * settings.tol,  # a bound can have any value
        callback=settings.callback,
        checkpoint=settings.checkpoint,
        progress=settings.progress,
    )


def as_problem(
    data: Dataset, settings: CompletionSettings, intercept: float, sides: ScaledFeatures | None = None
) -> Objective:
    """The problem of fitting the data with a fixed intercept."""
    f = data.bind(Shifted(settings.loss, intercept) if intercept else settings.loss, executor=settings.executor)
    return objective_of(f if sides is None else sides.wrap(f), offsets=settings.offsets)


def fit_constant(data: Dataset, loss: Loss, executor: Executor | None = None) -> float:
    """argmin over a of Σ w ℓ(a; y), by Newton's method, within ±MAX_INTERCEPT for losses with a link.

    In blocks, by passes if there are many values. 0 if the loss has thresholds, which contain the intercept.
    """
    if loss.located:
        return 0.0
    found = data.weighted_values()
    if found is not None:
        y, w = found
        if loss.quadratic:  # the mean of equal values would have a rounding error
            return float(y[0]) if np.all(y == y[0]) else float(np.average(y, weights=w))
        return fit_constant_with_offset(loss, y, w, np.zeros_like(y))

    def slopes(a: float) -> tuple[float, float]:
        slope, curvature = data.reduce(loss, sum_derivatives, settings=(a,), executor=executor).sums
        return slope, curvature

    about = data.summary()
    if loss.quadratic:
        if about.constant or not data.is_weighted:
            return about.least if about.constant else about.mean
        slope, curvature = slopes(0.0)
        return -slope / curvature
    numbers = loss.targets is NUMBERS
    ends = (about.least, about.largest) if numbers else (-MAX_INTERCEPT, MAX_INTERCEPT)
    return best_constant(slopes, about.mean if numbers else 0.0, ends)


def sum_derivatives(
    bound: SymbolicEntries, tall: tuple[Array, ...], shared: tuple[Array, ...], a: float
) -> BlockResult:
    """Σ w ℓ′(a; y) and Σ w ℓ″(a; y)."""
    fit = bound.fit
    y = np.asarray(fit.y, np.float64)
    w = np.ones(y.size) if fit.weights is None else fit.weights.astype(np.float64)
    z = np.full(y.size, a)
    return BlockResult(sums=(float(w @ fit.loss.gradient(z, y)), float(w @ fit.loss.curvature(z, y))))


def fit_constant_with_offset(loss: Loss, y: Array, w: Array, offset: Array) -> float:
    """argmin over a of Σ w ℓ(a + offset; y), in the same way."""

    def slopes(a: float) -> tuple[float, float]:
        z = a + offset
        return float(np.sum(w * loss.gradient(z, y))), float(np.sum(w * loss.curvature(z, y)))

    if loss.targets is NUMBERS:
        rest = y - offset
        return best_constant(slopes, float(np.median(rest)), (float(rest.min()), float(rest.max())))
    return best_constant(slopes, 0.0, (-MAX_INTERCEPT, MAX_INTERCEPT))


def best_constant(slopes: Callable[[float], tuple[float, float]], a: float, ends: tuple[float, float]) -> float:
    """Minimiser of a convex function of one number between two ends, from its first two derivatives.

    Newton's method; a step beyond an end goes to that end first, and one that leaves the interval in which the minimum
    is known to be is replaced by a bisection.
    """
    (low, high), reached = ends, [False, False]
    for _ in range(100):
        slope, bend = slopes(a)
        side = int(slope > 0)  # 0: the minimum is at a or above
        low, high = (low, a) if side else (a, high)
        reached[side] = True
        new = a - slope / bend if bend > 0 else a - float(np.sign(slope)) * np.inf if slope else a
        if not low <= new <= high:
            new = (low + high) / 2 if reached[1 - side] else ends[1 - side]
        if abs(new - a) <= 1e-12 * (ends[1] - ends[0]):
            return new
        a = new
    return a


def warm_start(start: Model | None, problem: Objective, rank: int, sides: ScaledFeatures | None = None) -> Given | None:
    """Start from an earlier fit, if its shape and rank match."""
    if start is None or (start.U.shape[0], start.V.shape[0]) != problem.f.measured_shape:
        return None
    factors = (start.U, start.V) if sides is None else sides.remove_features(start.U, start.V, start.side)
    factors = scale_fixed_columns(problem, *factors) if factors and start.offsets else factors
    return Given(*factors) if factors and start.U.shape[1] == rank + problem.kind.fixed_columns else None


# Validation of the parameters of estimators.

NOISE_SETTINGS = ("auto", *NOISES)
"""Kinds of noise of a posterior."""


def validate_settings(
    *,
    loss: Any,
    n_components: Any,
    ridge: Any,
    noise: Any = "auto",
    offsets: Any,
    solver: Any,
    max_iter: Any,
    tol: Any,
    random_state: Any,
    verbose: Any,
    implicit_features: Any = "auto",
    keep_features: Any = False,
    clip: Any = False,
) -> CompletionSettings:
    """Settings from the parameters of a user; raises `InputError` if one is invalid."""
    require_flag(offsets, "offsets")
    least = 0 if offsets else 1  # without offsets or components there is nothing to fit
    if n_components != "auto" and not is_count(n_components, least):
        alone = "0 fits offsets alone." if offsets else "Without offsets, at least one component is needed."
        raise InputError(f"n_components={n_components!r} is not an integer ≥ {least}, nor 'auto'. {alone}")
    if ridge is not None and ridge != "auto" and not is_at_least_zero(ridge):
        raise InputError(f"ridge={ridge!r} is not a number ≥ 0. Pass such a number, 'auto' or None.")
    if solver is not None:
        require_instance(solver, Solver, "solver")
    seen_through = loss_of(loss)
    posterior = _wants_posterior(seen_through, ridge, noise, solver)
    if not (implicit_features == "auto" or isinstance(implicit_features, bool)):
        raise InputError(f"implicit_features={implicit_features!r} is unknown. Pass True, False or 'auto'.")
    require_flag(keep_features, "keep_features")
    if not is_count(max_iter, 1):
        raise InputError(f"max_iter={max_iter!r} is not an integer ≥ 1. Pass the maximum number of iterations.")
    return CompletionSettings(
        loss=seen_through,
        n_components=None if n_components == "auto" else int(n_components),
        ridge=None if ridge is None or ridge == "auto" else float(ridge),
        posterior=posterior,
        noise=None if noise == "auto" else noise,
        offsets=bool(offsets),
        solver=solver,
        max_iter=int(max_iter),
        tol=positive(tol, "tol", "It is relative to X."),
        seed=seed_of(random_state),
        clip=clip_of(clip, seen_through),
        progress=bool(verbose),
        implicit=None if implicit_features == "auto" else bool(implicit_features),
        keep_features=bool(keep_features),
    )


def _wants_posterior(loss: Loss, ridge: Any, noise: Any, solver: Solver | None) -> bool:
    """Whether to fit a posterior, with error bars; not with a ridge, another loss or another solver."""
    if noise not in NOISE_SETTINGS:
        raise InputError(f"noise={noise!r} is unknown. Pass one of {', '.join(map(repr, NOISE_SETTINGS))}.")
    given = isinstance(solver, Variational)
    possible = isinstance(loss, Squared) and ridge is None and (solver is None or given)
    if given and not possible:
        raise InputError("Variational needs loss='squared' and no ridge. Leave out ridge, or the solver.")
    if noise != "auto" and given:
        raise InputError(f"noise={noise!r} cannot be combined with a solver. Pass Variational({noise!r}).")
    if noise != "auto" and not possible:
        raise InputError(f"noise={noise!r} needs loss='squared', without ridge or a solver. Leave them out.")
    return possible


def seed_of(random_state: Any) -> int:
    """Seed from an int, RandomState, Generator or None, with the conventions of scikit-learn."""
    if random_state is None:
        random_state = np.random.mtrand._rand
    elif is_count(random_state, 0) and random_state < 1 << 32:
        random_state = np.random.RandomState(int(random_state))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(np.iinfo(np.int32).max))
    if not isinstance(random_state, np.random.RandomState):
        raise InputError(
            f"random_state={random_state!r} is not a seed. "
            "Pass an integer from 0 to 2³² − 1, a RandomState, a Generator or None."
        )
    return int(random_state.randint(np.iinfo(np.int32).max))
