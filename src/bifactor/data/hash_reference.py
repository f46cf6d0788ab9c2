"""Hashes in [0, 1) of the entries of a matrix, which do not depend on the order in which entries are stored.

The number of entry (i, j) is the output of the generator splitmix64 (Steele, Lea, Flood, 2014), started by the seed, at
step i·2³² + j.
"""

import numpy as np

from bifactor.arrays import Array

STEP, FIRST, SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
"""The constants of splitmix64."""

SCALE = 2.0**-53
"""The unit of 53-bit integers, the precision of a double."""


def initial_state(seed: int) -> np.uint64:
    """The start of the generator, which must differ greatly for similar seeds."""
    return np.uint64(_mixed(np.array([seed], np.uint64) + np.uint64(STEP))[0])


def bound(fraction: float) -> np.uint64:
    """The 53-bit integer below which entries are held out."""
    return np.uint64(round(fraction / SCALE))


def hashed(rows: Array, cols: Array, seed: int) -> Array:
    """A number in [0, 1) for each entry."""
    return integers_of(rows, cols, initial_state(seed)) * SCALE


def integers_of(rows: Array, cols: Array, start: np.uint64) -> Array:
    """The 53-bit integers of entries."""
    place = (rows.astype(np.uint64) << np.uint64(32)) + cols.astype(np.uint64)
    return _mixed(place * np.uint64(STEP) + start) >> np.uint64(11)


def _mixed(z: Array) -> Array:
    z = (z ^ (z >> np.uint64(30))) * np.uint64(FIRST)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(SECOND)
    return z ^ (z >> np.uint64(31))
