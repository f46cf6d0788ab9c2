"""Simple completions of pictures, as a start and for comparison: a thin plate, a blur, the nearest pixel."""

from types import ModuleType

import numpy as np
from scipy.ndimage import distance_transform_edt, gaussian_filter

from bifactor import kernels
from bifactor.applications.pictures.patches import as_kernel_arrays
from bifactor.arrays import Array

LINEAR = np.array([0.0, 0.75, 0.25, 0.0])
"""Weights of the cells −1, 0, 1, 2 a quarter of the way from cell 0 to cell 1."""

TENSION = 0.02
"""The weight of slopes relative to curvature: holes beyond 1/√0.02 = 7 pixels are spanned as by a soap film."""


def smooth(planes: Array, known: Array) -> Array:
    """The picture (C×H×W, single precision) with its unknown pixels (H×W, the same in all channels) filled in.

    This nearly minimises ‖Δx‖² + 0.02⟨x, −Δx⟩ over the unknown pixels: the picture is halved until nothing is unknown;
    then each size is filled in from the smaller one and smoothed as a plate. Values at unknown pixels are ignored, so
    they may be NaN.
    """
    given, known = as_kernel_arrays(planes, known)
    filled = np.array(given)
    fill(filled, known)
    return filled


def fill(planes: Array, known: Array) -> None:
    """Do the same as `smooth` in place, for arrays returned by `as_kernel_arrays`."""
    _fill(planes, known, TENSION, kernels.get("applications.pictures.plate", planes, planes.size))


def _fill(planes: Array, known: Array, tension: float, plate: ModuleType) -> None:
    if known.all():
        return
    cells, some = plate.halve(planes, known)
    # Cells are twice as far apart: slopes count a quarter there, and curvature a sixteenth.
    _fill(cells, some, 4 * tension, plate)
    plate.double(cells, LINEAR, known, planes)
    plate.bend(planes, known, tension)


# Filling in holes by a blur, for comparison and for mixing.

WIDTHS = (0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0, 8.0)
"""The widths of the Gaussians that are tried, in pixels."""


def best_blur(picture: Array, known: Array, truth: Array) -> Array:
    """Means of the surrounding known pixels, weighted by the Gaussian that comes closest to the truth.

    Pictures are height × width × channels.
    """
    planes = [picture[:, :, k].astype(np.float32) for k in range(picture.shape[2])]
    best, least = picture, np.inf
    for width in WIDTHS:
        found = np.stack([np.where(known, plane, blurred(plane, known, width)) for plane in planes], axis=2)
        error = np.mean((found[~known] - truth[~known].astype(np.float32)) ** 2)
        if error < least:
            best, least = found, error
    return best


def blurred(plane: Array, known: Array, width: float) -> Array:
    """Means of the surrounding known pixels; with twice the width where none is near."""
    weight = gaussian_filter(known.astype(np.float32), width, truncate=4, mode="constant")
    near = weight > 1e-6
    sums = gaussian_filter(np.where(known, plane, np.float32(0)), width, truncate=4, mode="constant")
    means = sums / np.maximum(weight, np.float32(1e-6))
    if near.all():
        return means
    if width > max(known.shape):
        return np.where(near, means, np.mean(plane, where=known))
    return np.where(near, means, blurred(plane, known, 2 * width))


# Filling in pixels by their nearest neighbours.


def nearest(picture: Array, known: Array) -> Array:
    """The picture with each unknown pixel replaced by the nearest known one.

    Parameters
    ----------
    picture : array, H × W × channels
        The picture.
    known : array of bool, H × W
        The mask of known pixels, at least one of which is True.
    """
    places = distance_transform_edt(~known, return_distances=False, return_indices=True)
    return picture[tuple(places)]
