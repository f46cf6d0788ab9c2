"""Counts over data in pieces: the number of times that each integer occurs, and the distinct values.

Integers are counted in an array over their range, or in a hash table if that would be too long. A count of -1 means
that an integer has not occurred, 0 that it has occurred only in lines that do not count.
"""

import numpy as np

from bifactor.arrays import Array

EMPTY = -1
"""The count of an integer that has not occurred."""

LEVELS = 256
"""The largest number of distinct values that are counted."""

SUM, SQUARES, LEAST, MOST, ERROR, WHOLE, SIZE = range(7)
"""The places of the statistics of values: Σy, Σy², their range, the largest error of single precision, whether all are
integers, and their number."""


def count(numbers: Array, known: Array, low: int, counts: Array) -> None:
    """Add known numbers to the counts of low, low + 1, …"""
    places = numbers - low
    there = np.unique(places)
    counts[there] = np.maximum(counts[there], 0)
    np.add.at(counts, places[known], 1)


def enter(numbers: Array, known: Array, keys: Array, counts: Array, used: int) -> tuple[int, int]:
    """Add to a hash table, whose length is a power of two, until it is half full.

    Return the number of used slots, and of numbers that were added.
    """
    for t, number in enumerate(numbers.tolist()):
        slot = _slot(number, keys, counts)
        if counts[slot] == EMPTY:
            if 2 * used >= keys.size:
                return used, t
            keys[slot], counts[slot] = number, 0
            used += 1
        counts[slot] += known[t]
    return used, numbers.size


def fill(numbers: Array, keys: Array, held: Array) -> None:
    """Enter distinct numbers with their places into an empty hash table that is long enough."""
    for t, number in enumerate(numbers.tolist()):
        slot = _slot(number, keys, held)
        keys[slot], held[slot] = number, t


def find(numbers: Array, keys: Array, held: Array, found: Array) -> None:
    """Look up each number in a hash table; EMPTY if it is not there."""
    found[:] = [held[_slot(number, keys, held)] for number in numbers.tolist()]


def _slot(number: int, keys: Array, held: Array) -> int:
    slot = home(number, keys.size)
    while held[slot] != EMPTY and keys[slot] != number:
        slot = (slot + 1) % keys.size
    return slot


def home(number: int, size: int) -> int:
    """The first slot of a number in a hash table: the high bits of its product with 2⁶⁴/φ."""
    product = (number * 0x9E3779B97F4A7C15) % (1 << 64)
    return product >> (65 - size.bit_length())


def tally(values: Array, known: Array, about: Array, levels: dict[float, int] | None) -> dict[float, int] | None:
    """Update the statistics of values, and the count of each value; None if there are too many."""
    y = values[known].astype(np.float64) + 0.0  # -0 is 0
    if y.size == 0:
        return levels
    with np.errstate(over="ignore", invalid="ignore"):  # of infinite sums
        error = np.abs(y.astype(np.float32).astype(np.float64) - y)
        about[SUM] += y.sum()
        about[SQUARES] += y @ y
    about[LEAST], about[MOST] = min(about[LEAST], y.min()), max(about[MOST], y.max())
    about[ERROR] = max(about[ERROR], error.max())
    about[WHOLE] = about[WHOLE] and np.all(y == np.floor(y))
    about[SIZE] += y.size
    if levels is None:
        return None
    for value, times in zip(*np.unique(y, return_counts=True), strict=True):
        levels[float(value)] = levels.get(float(value), 0) + int(times)
    return levels if len(levels) <= LEVELS else None


def scatter(outer: Array, inner: Array, owner: Array, plan: Array, n_blocks: int) -> tuple[Array, Array, Array]:
    """Sort entries by block: the start of each block in the order, the order, and the keys in it.

    For each block, `plan` holds its first row, its number of rows, the width of its tiles and the bits of a column.
    """
    block = owner[outer]
    order = np.argsort(block, kind="stable")
    first, rows, width, shift = (part[block[order]] for part in plan.T)
    tile, column = np.divmod(inner[order].astype(np.int64), width)
    keys = ((tile * rows + outer[order] - first) << shift) | column
    starts = np.concatenate([[0], np.cumsum(np.bincount(block, minlength=n_blocks))])
    return starts, order, keys.astype(np.uint64)
