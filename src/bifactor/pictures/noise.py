"""How rough a picture is where it is smoothest."""

import numpy as np

from bifactor.arrays import Array

LEAST, MOST, USUAL = 0.5, 2.0, 1.0
"""Standard deviations in shades: the least and the largest that is told, and that of a picture with few neighbours."""

FEW = 200
"""Triples of neighbours that are needed."""

NORMAL = 0.6745 * 6**0.5
"""The median size of a second difference of noise of standard deviation 1."""

SHARE = 0.5
"""Of the second differences, the part that is not structure; chosen on eight pictures."""


def noise_level(brightness: Array, known: Array) -> float:
    """A standard deviation for what no model of patches will explain, by the median of second differences.

    Structure makes these larger, so it is an upper end of the noise rather than an estimate. What it is for is smooth
    pictures: with the noise of a photograph they would be smoothed more than they need.
    """
    found = []
    for values, told in ((brightness, known), (brightness.T, known.T)):
        here = told[:-2] & told[1:-1] & told[2:]
        found.append((values[:-2] - 2 * values[1:-1] + values[2:])[here])
    bends = np.abs(np.concatenate(found))
    if bends.size < FEW:
        return USUAL
    return float(np.clip(SHARE * np.median(bends) / NORMAL, LEAST, MOST))
