"""Filling in holes by a blur, for comparison and for mixing."""

import numpy as np
from scipy.ndimage import gaussian_filter

from bifactor.arrays import Array

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
