"""The roughness of a picture in its smoothest parts, and its noise."""

from collections.abc import Iterator

import numpy as np

from bifactor.arrays import Array
from bifactor.errors import InputError

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
