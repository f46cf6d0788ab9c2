"""The fraction of deviance explained by a fit."""

import numpy as np

from bifactor.arrays import Array
from bifactor.models.fitting import constant
from bifactor.models.model import Model
from bifactor.solvers.variational.posterior import Posterior
from bifactor.tables import Observations

FOLDS = 5
"""Number of parts of the entries of new rows; each is predicted from the others."""


def explained(model: Model, data: Observations, z: Array, null_z: Array | None = None) -> float:
    """D² = 1 − deviance(z)/deviance(null z); R² for squared errors. Higher is better, 1 is perfect.

    By default the null model is the best constant; its thresholds are those of the shares of levels.
    """
    y, w = data.values.astype(np.float64), data.weights
    lowest, without = model.loss.lowest(y), model.loss
    if null_z is None:
        null_z = np.full(y.shape, constant(data, without))
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
