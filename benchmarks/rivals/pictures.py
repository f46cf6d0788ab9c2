"""Other methods to fill the holes of a picture, each with the settings that are tried; packages of the `bench` extra.

`fill` takes bytes, height × width or height × width × 3, in which unknown pixels are 0, and where they are known. It
returns a value for every pixel; `completed` keeps those of the known ones and rounds the others.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import interpolate, ndimage
from threadpoolctl import threadpool_limits

from benchmarks.harness.rows import library

WIDTHS = (0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0, 8.0)
RADIUS = 3
"""Of OpenCV's methods, in pixels."""


@dataclass(frozen=True)
class Inpainter:
    """`fill` takes the picture, what is known, and one of the settings."""

    name: str
    fill: Callable[..., np.ndarray]
    settings: tuple[dict[str, float], ...] = ({},)


def completed(values: np.ndarray, picture: np.ndarray, known: np.ndarray) -> np.ndarray:
    filled = np.clip(np.rint(values), 0, 255).astype(np.uint8)
    filled[known] = picture[known]
    return filled


def gaussian_average(picture: np.ndarray, known: np.ndarray, width: float) -> np.ndarray:
    """Means of known pixels weighted by distance; of twice the width where none is within four widths."""
    planes = np.atleast_3d(np.where(np.atleast_3d(known), np.atleast_3d(picture), 0)).astype(float)
    weight = ndimage.gaussian_filter(known.astype(float), width, mode="constant")
    sums = np.stack([ndimage.gaussian_filter(p, width, mode="constant") for p in np.moveaxis(planes, 2, 0)], axis=2)
    near = weight > 0
    values = sums / np.where(near, weight, 1)[:, :, None]
    if not near.all():
        values[~near] = np.atleast_3d(gaussian_average(picture, known, 2 * width))[~near]
    return values.reshape(picture.shape)


def linear(picture: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Linear on a Delaunay triangulation of the known pixels; the nearest one outside of it."""
    here, there = np.argwhere(known), np.argwhere(~known)
    values = picture.astype(float)
    with threadpool_limits(1, user_api="blas"):  # a tiny solve for each triangle, for which threads wait for each other
        inside = interpolate.griddata(here, values[known], there, method="linear")
    outside = np.isnan(inside.reshape(len(there), -1)).any(axis=1)
    if outside.any():
        inside[outside] = interpolate.NearestNDInterpolator(here, values[known])(there[outside])
    values[~known] = inside
    return values


def opencv(flag: str) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """Both methods look under the mask at the border; zeros there or the truth differ by 0.03 dB at most."""

    def fill(picture: np.ndarray, known: np.ndarray) -> Any:
        package = library("cv2")
        return package.inpaint(picture, (~known).astype(np.uint8), RADIUS, getattr(package, flag))

    return fill


def biharmonic(picture: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Channel by channel."""
    package = library("skimage.restoration")
    axis = {"channel_axis": -1} if picture.ndim == 3 else {}
    return 255 * package.inpaint_biharmonic(picture, ~known, **axis)


INPAINTERS = (
    Inpainter("Gaussian average, best width", gaussian_average, tuple({"width": width} for width in WIDTHS)),
    Inpainter("SciPy linear", linear),
    Inpainter("OpenCV Telea", opencv("INPAINT_TELEA")),
    Inpainter("OpenCV Navier-Stokes", opencv("INPAINT_NS")),
    Inpainter("scikit-image biharmonic", biharmonic),
)
