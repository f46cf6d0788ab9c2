"""How rough a picture is where it is smoothest, and how noisy."""

from collections.abc import Iterator

import numpy as np

from bifactor.arrays import Array
from bifactor.errors import InputError

LEAST, MOST, USUAL = 0.5, 2.0, 1.0
"""Standard deviations in shades: the least and the largest that is told, and that of a picture with few neighbours."""

FEW = 200
"""Triples of neighbours that are needed."""

NORMAL = 0.6745 * 6**0.5
"""The median size of a second difference of noise of standard deviation 1."""

QUARTER = 0.3186
"""The size below which a quarter of normal numbers of standard deviation 1 are."""

SHARE = 0.5
"""Of the second differences, the part that is not structure; chosen on eight pictures."""

TALL, ENOUGH = 64, 2_000_000
"""Rows of a strip, and pixels in the strips that are looked at, spread over the picture."""


def roughness(brightness: Array, known: Array) -> float:
    """A standard deviation for what no model of patches will explain, by the median of second differences.

    Structure makes these larger, so it is an upper end of the noise rather than an estimate. What it is for is smooth
    pictures: with the noise of a photograph they would be smoothed more than they need.
    """
    bends = np.concatenate([found for strip in _strips(brightness, known) for found in _bends(*strip)])
    if bends.size < FEW:
        return USUAL
    return float(np.clip(SHARE * np.median(bends) / NORMAL, LEAST, MOST))


def noise_level(brightness: Array, known: Array) -> float:
    """The standard deviation of white noise, in shades, from differences that no slope and no edge along an axis moves.

    By the smallest quarter of them: those in smooth parts of the picture.
    """
    found = np.concatenate([np.abs(_crosses(*strip)) for strip in _strips(brightness, known)])
    spread = 6 * QUARTER
    if found.size < FEW:
        found = np.concatenate([bends for strip in _strips(brightness, known) for bends in _bends(*strip)])
        spread = 6**0.5 * QUARTER
    if found.size < FEW:
        raise InputError("Too few neighbours are known to tell the noise. Pass its standard deviation, as denoise=5.")
    return float(np.quantile(found, 0.25)) / spread


def _crosses(values: Array, known: Array) -> Array:
    """Second differences down of second differences across, where all nine pixels are known."""
    here = known[:, :-2] & known[:, 1:-1] & known[:, 2:]
    across = values[:, :-2] - 2 * values[:, 1:-1] + values[:, 2:]
    down = across[:-2] - 2 * across[1:-1] + across[2:]
    return np.asarray(down[here[:-2] & here[1:-1] & here[2:]])


def _strips(values: Array, known: Array) -> Iterator[tuple[Array, Array]]:
    apart = TALL * max(1, round(known.size / ENOUGH))
    for top in range(0, len(known), apart):
        rows = slice(top, top + TALL if apart > TALL else None)
        yield values[rows], known[rows]
        if apart == TALL:
            return


def _bends(values: Array, known: Array) -> Iterator[Array]:
    """Sizes of second differences down and across, where all three pixels are known."""
    for these, told in ((values, known), (values.T, known.T)):
        here = told[:-2] & told[1:-1] & told[2:]
        yield np.abs(these[:-2] - 2 * these[1:-1] + these[2:])[here]
