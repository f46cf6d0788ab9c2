"""Scores of a fit on held-out entries, in memory and in blocks, and the fraction of deviance that it explains."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bifactor.arrays import Array
from bifactor.data import Observations
from bifactor.errors import InputError
from bifactor.losses.base import SIGNS
from bifactor.models.completion.fitting import fit_constant
from bifactor.models.model import Model
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
    left = model.loss.value(model.clipped(z.astype(np.float64)), y) - lowest
    worst, here = (float(np.average(part, weights=w)) for part in (null, left))
    return 1 - here / worst if worst > 0 else float(here <= 0)


def mean_noise(posterior: Posterior, data: Observations) -> float:
    """Standard deviation of the noise, as root mean square over the entries without weights."""
    return float(np.mean(posterior.noise(data.rows, data.cols)) ** 0.5)


def left_out_scores(model: Model, data: Observations) -> Array:
    """z at each entry of new rows, from factors computed without it."""
    z = np.empty(data.values.shape, model.V.dtype)
    fold = np.random.default_rng(0).permutation(data.values.size) % FOLDS
    for k in range(FOLDS):
        hidden = fold == k
        if hidden.any():
            U = model.rows(data.part(~hidden))
            z[hidden] = model.entries(U, model.V, data.rows[hidden], data.cols[hidden])
    return z


def scores(fit: "Fit", i: Array, j: Array, values: Array) -> tuple[dict[str, Any], Array]:
    """Errors at indices, -1 for an unknown row or column, as numbers for a card; and the predictions."""
    model, z = fit.model, fit.model.clipped(fit.scores(i, j))
    predicted = model.predicted(z)
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
    """Scores at the entries of a file, by name; predictions; and values."""
    assert data.row_names is not None
    assert data.column_names is not None
    i = fit.places(data.row_names.values, "row")[data.rows]
    j = fit.places(data.column_names.values, "column")[data.cols]
    try:
        values = fit.encoded(data.values)
        fit.model.loss.targets.check(values, type(fit.model.loss).__name__)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
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


# Scores of a fit on held-out entries in blocks.
