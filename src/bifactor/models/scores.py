"""Scores of a fit on held-out entries."""

from pathlib import Path
from typing import Any

import numpy as np

from bifactor.arrays import Array
from bifactor.errors import InputError
from bifactor.losses.base import SIGNS
from bifactor.models.fit import Fit
from bifactor.models.scoring import explained
from bifactor.tables import Observations
from bifactor.validation import counted


def scores(fit: Fit, i: Array, j: Array, values: Array) -> tuple[dict[str, Any], Array]:
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
    answer["mean_loss"], answer["explained"] = float(np.mean(loss)), explained(model, here, z)
    return answer, predicted


def tested(fit: Fit, data: Observations, path: Path | None) -> tuple[dict[str, Any], Array, Array]:
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


def spoken(answer: dict[str, Any]) -> str:
    """Scores in a few words."""
    if "accuracy" in answer:
        first = f"{answer['accuracy']:.1%} correct"
    else:
        first = f"RMSE {answer['rmse']:.4f}, mean absolute error {answer['mae']:.4f}"
    unknown = f", {answer['unknown']:,} with a name that was not in the fit" if answer["unknown"] else ""
    return (
        f"{first}, {answer['explained']:.1%} of the deviance explained ({counted(answer['entries'], 'entry')}{unknown})"
    )
