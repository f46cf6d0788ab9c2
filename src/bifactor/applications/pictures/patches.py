"""Rounds over groups of similar patches, pictures at half and at twice their size, and the noise of a picture."""

from collections.abc import Callable, Iterator

import numpy as np
from scipy.ndimage import distance_transform_edt, uniform_filter

from bifactor import kernels
from bifactor.applications.pictures.patches_reference import PartialPicture, PatchModel
from bifactor.arrays import Array
from bifactor.errors import InputError

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


def model_of(shape: tuple[int, int], variance: float, nugget: float, solved: int, noise: float = 0.0) -> PatchModel:
    """The model for patches that fit into the picture; `noise` is the standard deviation of the noise to remove."""
    patch = min(NOISY_PATCH if noise else PATCH, *shape)
    similar, solved = (NOISY_SIMILAR, NOISY_SOLVED) if noise else (SIMILAR, solved)
    at = np.arange(patch * patch)
    rows, cols = at // patch, at % patch
    apart = np.hypot(rows[:, None] - rows, cols[:, None] - cols)
    correlation = np.exp(-apart / REACH).astype(np.float32)
    floor = FLOOR * variance
    return PatchModel(
        patch, WINDOW, similar, solved, variance, floor, nugget, STRENGTH, correlation, noise > 0, noise**2
    )


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
    model: PatchModel,
    step: int,
    relaxation: float,
    progress: Callable[[float], None] | None = None,
) -> Array:
    """Put better guesses into the planes, and return their variances."""
    told = np.zeros_like(known) if model.all_told else known
    corners = references(told, model.patch, min(step, model.patch))
    kernel = kernels.get("applications.pictures.patches", planes, len(corners) * model.similar, model.patch**4)
    doubts = np.zeros(known.shape, np.float32)
    for band in kernel.aggregate(PartialPicture(brightness(planes), planes, data, known), corners, model, progress):
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


# Pictures at half and at twice their size, and the number of halvings that the holes of a mask need.

CATMULL_ROM = np.array([-9, 111, 29, -3]) / 128
"""Weights of the cells −1, 0, 1, 2 a quarter of the way from cell 0 to cell 1, on a cubic with central slopes."""

SURROUNDINGS = 9
"""The side in pixels of the square in which missing pixels are counted."""

CROWDED = 0.72
"""The share of missing pixels around missing ones above which a picture is halved at least once."""

DISTANCE_ROWS = 128
"""The number of rows whose distances are computed at a time."""

NEAR = 1.6
"""The mean distance in pixels to the nearest known pixel at which a picture is no longer halved."""


def as_kernel_arrays(planes: Array, known: Array) -> tuple[Array, Array]:
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
    planes, known = as_kernel_arrays(planes, known)
    means, some = kernels.get("applications.pictures.plate", planes, planes.size).halve(planes, known)
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
    kernels.get("applications.pictures.plate", out, out.size).double(planes, CATMULL_ROM, np.zeros(shape, bool), out)
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
    for top in range(0, height, DISTANCE_ROWS):
        rows, around = unknown[top : top + DISTANCE_ROWS], DISTANCE_ROWS
        while True:
            first, last = max(0, top - around), min(height, top + DISTANCE_ROWS + around)
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


# The roughness of a picture in its smoothest parts, and its noise.

LEAST, MOST, USUAL = 0.5, 2.0, 1.0
"""Standard deviations in shades: the range of results, and the result for a picture with few known neighbours."""

FEW = 200
"""The smallest number of triples of neighbours."""

NORMAL = 0.6745 * 6**0.5
"""The median absolute second difference of noise of standard deviation 1."""

OF_BENDS = 0.3186 * 6**0.5
"""The lower quartile of the absolute second differences of such noise."""

CELL, FEW_CELLS, OF_CELLS = 12, 20, 4.108
"""The side of cells in pixels, their smallest number, and the 10 % quantile of their mean differences for such noise
(by simulation)."""

SHARE = 0.5
"""The part of the second differences that is not structure; chosen on eight pictures."""

TALL, ENOUGH = 64, 2_000_000
"""The number of rows of a strip, and of pixels in the strips that are used, spread over the picture."""


def roughness(brightness: Array, known: Array) -> float:
    """The standard deviation of the part that no model of patches explains, from the median of second differences.

    Structure makes these larger, so it is an upper bound of the noise rather than an estimate. It is meant for smooth
    pictures, which would be smoothed too much with the noise of a photograph.
    """
    bends = np.concatenate([found for strip in _strips(brightness, known) for found in _bends(*strip)])
    if bends.size < FEW:
        return USUAL
    return float(np.clip(SHARE * np.median(bends) / NORMAL, LEAST, MOST))


def noise_level(brightness: Array, known: Array) -> float:
    """The standard deviation of white noise, in shades, from differences that slopes and edges along axes leave at 0.

    It uses the cells with the smallest differences, where the picture is smooth, or, if holes leave too few cells, the
    smallest quarter of the second differences.
    """
    cells = np.concatenate([_cells(*strip) for strip in _strips(brightness, known)])
    if cells.size >= FEW_CELLS:
        return float(np.quantile(cells, 0.1)) / OF_CELLS
    bends = np.concatenate([found for strip in _strips(brightness, known) for found in _bends(*strip)])
    if bends.size < FEW:
        raise InputError("Too few neighbours are known to estimate the noise. Pass its deviation, such as denoise=5.")
    return float(np.quantile(bends, 0.25)) / OF_BENDS


def _cells(values: Array, known: Array) -> Array:
    """Mean absolute second differences down of second differences across, in cells where most pixels are known."""
    here = known[:, :-2] & known[:, 1:-1] & known[:, 2:]
    here = here[:-2] & here[1:-1] & here[2:]
    across = values[:, :-2] - 2 * values[:, 1:-1] + values[:, 2:]
    sizes = np.where(here, np.abs(across[:-2] - 2 * across[1:-1] + across[2:]), 0)
    height, width = (max(0, side - 2) // CELL for side in known.shape)
    counts, sums = (
        part[: height * CELL, : width * CELL].reshape(height, CELL, width, CELL).sum(axis=(1, 3))
        for part in (here, sizes)
    )
    enough = 2 * counts > CELL**2
    return np.asarray(sums[enough] / counts[enough])


def _strips(values: Array, known: Array) -> Iterator[tuple[Array, Array]]:
    apart = TALL * max(1, round(known.size / ENOUGH))
    for top in range(0, len(known), apart):
        rows = slice(top, top + TALL if apart > TALL else None)
        yield values[rows], known[rows]
        if apart == TALL:
            return


def _bends(values: Array, known: Array) -> Iterator[Array]:
    """Absolute second differences down and across, where all three pixels are known."""
    for these, told in ((values, known), (values.T, known.T)):
        here = told[:-2] & told[1:-1] & told[2:]
        yield np.abs(these[:-2] - 2 * these[1:-1] + these[2:])[here]
