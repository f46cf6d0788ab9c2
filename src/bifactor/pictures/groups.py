"""A round over all groups of similar patches."""

from collections.abc import Callable

import numpy as np

from bifactor import kernels
from bifactor.arrays import Array
from bifactor.kernels.patches_reference import Model, Picture

WINDOW = 10
"""The distance in pixels around a patch within which similar ones are searched."""

PATCH, SIMILAR = 8, 64
"""The side of a patch in pixels, and the number of patches in a group."""

NOISY_PATCH, NOISY_SIMILAR, NOISY_SOLVED = 6, 144, 60
"""The same if known pixels have noise, and the number of patches of a group that are completed: more patches are
needed to separate the noise of a covariance from its signal."""

FLOOR = 0.25
"""The share of the variance of the noise below which differences between patches are not significant."""

REACH, STRENGTH = 8.0, 10.0
"""The prior: the distance in pixels over which the correlation decreases to 1/e, and its weight in patches."""


def brightness(planes: Array) -> Array:
    """The plane by which patches are compared. All planes have its covariance, up to a factor that cancels."""
    return np.ascontiguousarray(planes.sum(axis=0) / np.float32(len(planes) ** 0.5))


def model_of(shape: tuple[int, int], variance: float, nugget: float, solved: int, noise: float = 0.0) -> Model:
    """The model for patches that fit into the picture; `noise` is the standard deviation of the noise to remove."""
    patch = min(NOISY_PATCH if noise else PATCH, *shape)
    similar, solved = (NOISY_SIMILAR, NOISY_SOLVED) if noise else (SIMILAR, solved)
    at = np.arange(patch * patch)
    rows, cols = at // patch, at % patch
    apart = np.hypot(rows[:, None] - rows, cols[:, None] - cols)
    correlation = np.exp(-apart / REACH).astype(np.float32)
    floor = FLOOR * variance
    return Model(patch, WINDOW, similar, solved, variance, floor, nugget, STRENGTH, correlation, noise > 0, noise**2)


def references(known: Array, patch: int, step: int) -> Array:
    """Corners on a grid, the last ones at the border, whose patches have unknown pixels."""
    rows, cols = (_along(size, patch, step) for size in known.shape)
    found = []
    for i in rows.tolist():
        holes = np.concatenate([[0], np.cumsum((~known[i : i + patch]).sum(axis=0))])
        j = cols[holes[cols + patch] > holes[cols]]
        found.append(np.stack([np.full_like(j, i), j], axis=1))
    return np.concatenate(found)


def improve(
    planes: Array,
    data: Array,
    known: Array,
    model: Model,
    step: int,
    relaxation: float,
    progress: Callable[[float], None] | None = None,
) -> Array:
    """Put better guesses into the planes, and return their variances."""
    told = np.zeros_like(known) if model.all_told else known
    corners = references(told, model.patch, min(step, model.patch))
    find = kernels.find("patches", np.float32, len(corners) * model.similar, model.patch**4)
    doubts = np.zeros(known.shape, np.float32)
    for band in find.aggregate(Picture(brightness(planes), planes, data, known), corners, model, progress):
        rows = slice(band.top, band.top + len(band.weights))
        here = ~told[rows] & (band.weights > 0)
        weights = band.weights[here]
        # Guesses of holes are over-relaxed, towards the result of the next round.
        over = np.where(known[rows][here], np.float32(1), np.float32(relaxation))
        for plane, sums in zip(planes[:, rows], band.values, strict=True):
            plane[here] += over * (sums[here] / weights - plane[here])
        doubts[rows][here] = band.doubts[here] / weights
    return doubts


def _along(size: int, patch: int, step: int) -> Array:
    return np.unique(np.append(np.arange(0, size - patch + 1, step), size - patch))
