"""Scores of a fit on held-out entries, in memory and in blocks, and the fraction of deviance that it explains."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bifactor.arrays import Array
from bifactor.data import Dataset, Observations
from bifactor.errors import InputError
from bifactor.executors import BlockResult, Executor
from bifactor.factors import Free
from bifactor.losses import Loss
from bifactor.losses.base import SIGNS
from bifactor.models.completion.fitting import fit_constant
from bifactor.models.completion.noise_selection import MAX_NOISE_SELECTION_ENTRIES
from bifactor.models.link import Link
from bifactor.models.model import Model
from bifactor.operators.entries import SymbolicEntries
from bifactor.solvers.variational.posterior import Posterior
from bifactor.validation import pluralize

if TYPE_CHECKING:
    from bifactor.models.fit import Fit

FOLDS = 5
"""Number of parts of the entries of new rows; each is predicted from the others."""


def deviance_explained(model: Model, data: Observations, z: Array, null_z: Array | None = None) -> float:
    """D² = 1 − deviance(z)/deviance(null z); R² for squared errors. Higher is better, 1 is perfect.

    By default the null model is the best constant; its thresholds are those of the shares of levels.
    """
    y, w = data.values.astype(np.float64), data.weights
    lowest, without = model.loss.saturated(y), model.loss
    if null_z is None:
        null_z = np.full(y.shape, fit_constant(data, without))
        without = without.refit(null_z, y, w) if without.located else without
    null = without.value(null_z.astype(np.float64), y) - lowest
    left = model.loss.value(model.link.clipped(z.astype(np.float64)), y) - lowest
    worst, here = (float(np.average(part, weights=w)) for part in (null, left))
    return 1 - here / worst if worst > 0 else float(here <= 0)


def mean_noise(posterior: Posterior, data: Dataset) -> float:
    """Standard deviation of the noise, as root mean square over all entries in memory, or over a sample of blocks."""
    stay = np.ones(data.shape[0], bool)
    if not data.in_memory and data.size > MAX_NOISE_SELECTION_ENTRIES:
        stay[:] = False
        stay[data.random_lines(MAX_NOISE_SELECTION_ENTRIES, np.random.default_rng(0))] = True
    some = data.lines(stay)
    return float(np.mean(posterior.noise(some.rows, some.cols)) ** 0.5)


def left_out_scores(model: Model, data: Observations) -> Array:
    """z at each entry of new rows, from factors computed without it."""
    z = np.empty(data.values.shape, model.V.dtype)
    fold = np.random.default_rng(0).permutation(data.values.size) % FOLDS
    for k in range(FOLDS):
        hidden = fold == k
        if hidden.any():
            z[hidden] = model.of_rows(data.part(~hidden)).scores(data.rows[hidden], data.cols[hidden])
    return z


def scores(fit: "Fit", i: Array, j: Array, values: Array) -> tuple[dict[str, Any], Array]:
    """Errors at indices, -1 for an unknown row or column, as numbers for a card; and the predictions."""
    model, z = fit.model, fit.model.link.clipped(fit.model.scores(i, j))
    predicted = model.link.mean(z)
    loss = model.loss.value(z.astype(np.float64), values)
    answer: dict[str, Any] = {"entries": int(values.size), "unknown": int(np.count_nonzero((i < 0) | (j < 0)))}
    if model.loss.targets is SIGNS:
        answer["accuracy"] = float(np.mean((predicted >= 0.5) == (values > 0)))
    else:
        error = predicted - values
        answer["rmse"], answer["mae"] = float(np.mean(error**2) ** 0.5), float(np.mean(np.abs(error)))
    here = Observations(i, j, values, (len(fit.rows), len(fit.cols)))
    answer["mean_loss"], answer["explained"] = float(np.mean(loss)), deviance_explained(model, here, z)
    return answer, predicted


def score_file(fit: "Fit", data: Observations, path: Path | None) -> tuple[dict[str, Any], Array, Array]:
    """Scores at the entries of a file, or of other data, by name; predictions; and values."""
    sides = zip((data.row_names, data.column_names), data.shape, strict=True)
    rows, cols = (np.arange(count) if names is None else names.values for names, count in sides)
    i, j = fit.places(rows, "row")[data.rows], fit.places(cols, "column")[data.cols]
    try:
        values = fit.model.link.encode_values(data.values)
        fit.model.loss.targets.check(values, type(fit.model.loss).__name__)
    except InputError as error:
        raise InputError(str(error) if path is None else f"{path}: {error}") from None
    return *scores(fit, i, j, values), values


def format_scores(answer: dict[str, Any]) -> str:
    """Scores in a few words."""
    if "accuracy" in answer:
        first = f"{answer['accuracy']:.1%} correct"
    else:
        first = f"RMSE {answer['rmse']:.4f}, mean absolute error {answer['mae']:.4f}"
    unknown = f", {answer['unknown']:,} with a name that was not in the fit" if answer["unknown"] else ""
    entries = pluralize(answer["entries"], "entry")
    return f"{first}, {answer['explained']:.1%} of the deviance explained ({entries}{unknown})"


# Scores on held-out entries, in memory or in blocks.

SHOWN = 200_000
"""Largest number of entries whose values and predictions are returned."""


class ScoringSettings(NamedTuple):
    """Settings for scoring predictions."""

    link: Link
    null: float
    """The best constant, for comparison."""
    null_loss: Loss
    """The loss with the best thresholds for it, if it has some."""
    step: int
    """One in this many entries is returned."""


def held_out_scores(
    model: Model, held: Dataset, executor: Executor | None = None
) -> tuple[dict[str, Any], Array, Array]:
    """Scores at held-out entries, by a pass; and the values and predictions of some of them."""
    data = held.unweighted()
    if data.size == 0:
        raise InputError("There are too few entries to hold some out. Leave out --holdout.")
    null, null_loss, about = fit_constant(data, model.loss, executor), model.loss, data.summary()
    if model.loss.located and about.levels is not None and about.level_counts is not None:
        null_loss = model.loss.refit(np.zeros(about.levels.size), about.levels, about.level_counts.astype(np.float64))
    settings = ScoringSettings(model.link, null, null_loss, -(-data.size // SHOWN))
    U, V = (one if one.shape[1] else np.zeros((len(one), 1), one.dtype) for one in (model.U, model.V))  # X = 0
    _, sums, each = data.reduce(model.loss, score_block, (U, V), (settings,), executor)
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
    loss, y = judge.link.loss, bound.fit.y.astype(np.float64)
    x = Free().pair(tall[0], shared[0])
    z = bound.bound.measure(x) if y.size else np.zeros(0, x.dtype)
    z = judge.link.clipped(z + z.dtype.type(judge.link.intercept))
    predicted = loss.mean(z)
    error = predicted - y
    right = np.count_nonzero((predicted >= 0.5) == (y > 0))
    losses = loss.value(z.astype(np.float64), y), judge.null_loss.value(np.full(y.size, judge.null), y)
    sums = y.size, right, np.abs(error).sum(), error @ error, *(one.sum() for one in losses), loss.saturated(y).sum()
    some = slice(None, None, judge.step)
    return BlockResult(sums=tuple(map(float, sums)), each=(y[some], predicted[some]))
