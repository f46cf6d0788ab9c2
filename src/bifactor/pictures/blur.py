"""The simplest way to fill in holes, to compare with."""

import numpy as np
from scipy.ndimage import gaussian_filter

from bifactor.arrays import Array

WIDTHS = (0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 8.0)
"""Of the Gaussians that are tried, in pixels."""


def best_blur(picture: Array, known: Array, truth: Array) -> Array:
    """Means of the known pixels around, weighted by the Gaussian that comes closest to the truth: a blur at its best.

    Pictures are height × width × channels. Where no known pixel is near, the mean of all is taken.
    """
    found = [_blurred(picture, known, width) for width in WIDTHS]
    errors = [np.mean((one[~known] - truth[~known].astype(np.float32)) ** 2) for one in found]
    return found[int(np.argmin(errors))]


def _blurred(picture: Array, known: Array, width: float) -> Array:
    weight = gaussian_filter(known.astype(np.float32), width, truncate=4)
    near = weight > 1e-6
    out = picture.astype(np.float32)
    for k in range(picture.shape[2]):
        plane = np.where(known, out[:, :, k], np.float32(0))
        mean = np.float32(plane[known].mean())
        blurred = gaussian_filter(plane, width, truncate=4)
        guess = np.where(near, blurred / np.maximum(weight, np.float32(1e-6)), mean)
        out[:, :, k] = np.where(known, out[:, :, k], guess)
    return out
