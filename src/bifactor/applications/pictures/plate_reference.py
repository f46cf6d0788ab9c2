"""Halving, doubling and thin-plate smoothing of pictures, in NumPy: the definition of the compiled kernels.

Pictures are C×H×W, and all channels have the same known pixels. Beyond its border, a picture is its own mirror image.
"""

from itertools import product

import numpy as np

from bifactor.arrays import Array

TILE = 64
"""The side in pixels of the tiles in which a plate is smoothed, one after another."""

HALO = 6
"""The number of pixels around a tile that are smoothed with it, so that tiles agree where they meet."""

ITERATIONS = 60
"""The largest number of conjugate gradient steps in one tile."""

ENOUGH = 1e-3
"""The relative norm of the residual at which a tile is done."""

ROUNDING = 32.0
"""Residuals below this times the machine precision times the largest number in a tile are rounding errors."""


def halve(planes: Array, known: Array) -> tuple[Array, Array]:
    """Means of the known pixels in cells of 2×2, and a mask of the cells that have one; zero in the others."""
    sides = [n + n % 2 for n in known.shape]
    widths = [(0, side - n) for n, side in zip(known.shape, sides, strict=True)]
    mask = np.pad(known, widths)
    values = np.where(mask, np.pad(planes, [(0, 0), *widths]), 0).astype(np.float64)
    cells = (sides[0] // 2, 2, sides[1] // 2, 2)
    count = mask.reshape(cells).sum((1, 3))
    means = values.reshape(-1, *cells).sum((2, 4)) / np.maximum(count, 1)
    return means.astype(planes.dtype), count > 0


def double(coarse: Array, taps: Array, known: Array, out: Array) -> None:
    """Write the coarse picture at twice its size to the unknown pixels of `out`.

    `taps` are the weights of the cells −1, 0, 1, 2 for a pixel in the second half of cell 0; the other half is their
    mirror image.
    """
    values = coarse.astype(np.float64)
    for axis, side in ((1, known.shape[0]), (2, known.shape[1])):
        pixel = np.arange(side)
        away = np.where(pixel % 2, 1, -1)
        cells = [np.clip(pixel // 2 + k * away, 0, values.shape[axis] - 1) for k in (-1, 0, 1, 2)]
        values = sum(tap * np.take(values, cell, axis) for tap, cell in zip(taps, cells, strict=True))
    np.copyto(out, values, where=~known, casting="same_kind")


def boxes(known: Array) -> list[Array]:
    """(top, bottom, left, right) of the unknown pixels of each tile and their halo, in four lots.

    No two boxes of a lot touch, nor does one touch the pixels that are read for another: their order does not matter.
    """
    m, n = known.shape
    lots = []
    for first in product((0, TILE), repeat=2):
        lot = []
        for i, j in product(range(first[0], m, 2 * TILE), range(first[1], n, 2 * TILE)):
            unknown = ~known[i : i + TILE, j : j + TILE]
            if unknown.any():
                rows, columns = np.flatnonzero(unknown.any(1)), np.flatnonzero(unknown.any(0))
                top, left = max(i + rows[0] - HALO, 0), max(j + columns[0] - HALO, 0)
                lot.append((top, min(i + rows[-1] + 1 + HALO, m), left, min(j + columns[-1] + 1 + HALO, n)))
        lots.append(np.array(lot, dtype=np.int64).reshape(-1, 4))
    return lots


def bend(planes: Array, known: Array, tension: float) -> None:
    """Lower ‖Δx‖² + tension·⟨x, −Δx⟩ over the unknown pixels in place, by conjugate gradients in tile after tile.

    A tile starts from the results of its neighbours, and values around it are fixed. So the energy decreases in each,
    and there are no seams.
    """
    for lot in boxes(known):
        for box in lot:
            for plane in planes:
                _bend_box(plane, known, box, tension)


def _bend_box(plane: Array, known: Array, box: Array, tension: float) -> None:
    top, bottom, left, right = box
    free = ~known[top:bottom, left:right]
    rows, columns = mirrored(top - 2, bottom + 2, known.shape[0]), mirrored(left - 2, right + 2, known.shape[1])
    within = np.logical_and.outer((rows >= top) & (rows < bottom), (columns >= left) & (columns < right))
    sources = np.ix_(np.clip(rows - top, 0, bottom - top - 1), np.clip(columns - left, 0, right - left - 1))

    def gradient(x: Array) -> Array:
        y = _laplacian(x)
        return free * (_laplacian(y) + tension * y[1:-1, 1:-1])

    x = plane[np.ix_(rows, columns)]
    x = x - x[2, 2]
    peak = np.abs(x).max()
    residual = -gradient(x / peak if peak else x)
    direction, moved, square = residual, 0 * residual, np.sum(residual**2, dtype=np.float64)
    least = ENOUGH**2 * square + (ROUNDING * np.finfo(x.dtype).eps) ** 2 * free.sum()
    for _ in range(ITERATIONS):
        if square <= least:
            break
        bent = gradient(np.where(within, direction[sources], 0))
        step = square / np.sum(direction * bent, dtype=np.float64)
        moved, residual = moved + x.dtype.type(step) * direction, residual - x.dtype.type(step) * bent
        last, square = square, np.sum(residual**2, dtype=np.float64)
        direction = residual + x.dtype.type(square / last) * direction
    plane[top:bottom, left:right][free] += (peak * moved)[free]


def _laplacian(x: Array) -> Array:
    """−Δx, without the outermost pixels."""
    return 4 * x[1:-1, 1:-1] - x[:-2, 1:-1] - x[2:, 1:-1] - x[1:-1, :-2] - x[1:-1, 2:]


def mirrored(start: int, stop: int, size: int) -> Array:
    """Indices from start to stop, reflected into 0 … size − 1."""
    place = np.arange(start, stop) % (2 * size)
    return np.minimum(place, 2 * size - 1 - place)
