"""Pictures at half and at twice their size, and the number of halvings that the holes of a mask need."""

import numpy as np
from scipy.ndimage import distance_transform_edt, uniform_filter

from bifactor.arrays import Array
from bifactor.errors import InputError
from bifactor.kernels import find

CATMULL_ROM = np.array([-9, 111, 29, -3]) / 128
"""Weights of the cells −1, 0, 1, 2 a quarter of the way from cell 0 to cell 1, on a cubic with central slopes."""

SURROUNDINGS = 9
"""The side in pixels of the square in which missing pixels are counted."""

CROWDED = 0.72
"""The share of missing pixels around missing ones above which a picture is halved at least once."""

TALL = 128
"""The number of rows whose distances are computed at a time."""

NEAR = 1.6
"""The mean distance in pixels to the nearest known pixel at which a picture is no longer halved."""


def settled(planes: Array, known: Array) -> tuple[Array, Array]:
    """The channels in single precision and the mask of known pixels, as arrays for kernels, checked."""
    planes, known = np.asarray(planes), np.asarray(known)
    if known.dtype != bool:
        raise InputError(f"known has dtype {known.dtype}. Pass booleans, True for known pixels.")
    if planes.ndim != 3 or planes.shape[1:] != known.shape:
        raise InputError(
            f"Planes of shape {planes.shape} do not match known of shape {known.shape}. "
            "Pass channels×rows×columns and rows×columns."
        )
    _require_some(known)
    return np.require(planes, np.float32, ["C", "W"]), np.require(known, bool, ["C", "W"])


def halved(planes: Array, known: Array) -> tuple[Array, Array]:
    """Means of the known pixels in cells of 2×2, and a mask of the cells that have one; zero in the others.

    Sides are rounded up: cells at the far border may have only one row or column.
    """
    planes, known = settled(planes, known)
    means, some = find("plate", planes.dtype, planes.size).halve(planes, known)
    return means, some


def enlarged(planes: Array, shape: tuple[int, int]) -> Array:
    """A picture at twice its size by cubic interpolation (Catmull–Rom); sides of `shape` may be one pixel shorter."""
    planes = np.require(planes, np.float32, ["C", "W"])
    if planes.ndim != 3 or planes.shape[1:] != tuple((side + 1) // 2 for side in shape):
        raise InputError(
            f"Planes of shape {planes.shape} are not half of {tuple(shape)}. "
            "Pass channels×rows×columns with half the rows and columns, rounded up."
        )
    out = np.empty((len(planes), *shape), np.float32)
    find("plate", out.dtype, out.size).double(planes, CATMULL_ROM, np.zeros(shape, bool), out)
    return out


def missing_share(known: Array) -> float:
    """The mean share of unknown pixels in the 9×9 surroundings of an unknown one; 0 if all are known."""
    unknown = ~np.asarray(known, dtype=bool)
    if not unknown.any():
        return 0.0
    shares = uniform_filter(unknown.astype(np.float32), SURROUNDINGS)
    return float(np.mean(shares, where=unknown, dtype=np.float64))


def level_count(known: Array) -> int:
    """The number of halvings until unknown pixels are near known ones; at least one if few are known."""
    unknown = ~np.asarray(known, dtype=bool)
    _require_some(~unknown)
    if not unknown.any():
        return 0
    distance = _mean_distance(unknown)
    least = 1 if missing_share(known) > CROWDED else 0
    return max(least, int(np.ceil(np.log2(distance / NEAR))))


def _mean_distance(unknown: Array) -> float:
    """The mean distance of unknown pixels to the nearest known one, some rows at a time, because it takes memory."""
    total, height = 0.0, len(unknown)
    for top in range(0, height, TALL):
        rows, around = unknown[top : top + TALL], TALL
        while True:
            first, last = max(0, top - around), min(height, top + TALL + around)
            part, whole = unknown[first:last], last - first == height
            if whole or not part.all():
                far = distance_transform_edt(part)[top - first :][: len(rows)]
                if whole or far.max() <= around:
                    break
            around *= 4
        total += float(np.sum(far, where=rows))
    return total / np.count_nonzero(unknown)


def _require_some(known: Array) -> None:
    if not known.any():
        raise InputError(f"None of the {known.size:,} pixels are known. Pass a picture with at least one known pixel.")
