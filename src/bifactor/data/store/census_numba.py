"""Counts over data in pieces, compiled. The functions are those of `census_reference`."""

import numpy as np
from numba.extending import register_jitable

from bifactor.arrays import Array
from bifactor.data.store.census_reference import EMPTY, ERROR, LEAST, LEVELS, MOST, SIZE, SQUARES, SUM, WHOLE
from bifactor.kernels.compile import compiled

_PHI = np.uint64(0x9E3779B97F4A7C15)
_SLOTS = 4 * LEVELS


@compiled
def count(numbers, known, low, counts):  # type: ignore[no-untyped-def]
    for t in range(numbers.size):
        place = numbers[t] - low
        counts[place] = max(counts[place], 0) + known[t]


@register_jitable
def _slot(number, keys, held, shift):  # type: ignore[no-untyped-def]
    slot, mask = np.int64((np.uint64(number) * _PHI) >> shift), keys.size - 1
    while held[slot] != EMPTY and keys[slot] != number:
        slot = (slot + 1) & mask
    return slot


@compiled
def _enter(numbers, known, keys, counts, used, shift):  # type: ignore[no-untyped-def]
    for t in range(numbers.size):
        slot = _slot(numbers[t], keys, counts, shift)
        if counts[slot] == EMPTY:
            if 2 * used >= keys.size:
                return used, t
            keys[slot], counts[slot] = numbers[t], 0
            used += 1
        counts[slot] += known[t]
    return used, numbers.size


def enter(numbers: Array, known: Array, keys: Array, counts: Array, used: int) -> tuple[int, int]:
    """Add to a hash table until it is half full; return the number of used slots, and of numbers that were added."""
    return _enter(numbers, known, keys, counts, used, _shift(keys))


@compiled
def _fill(numbers, keys, held, shift):  # type: ignore[no-untyped-def]
    for t in range(numbers.size):
        slot = _slot(numbers[t], keys, held, shift)
        keys[slot], held[slot] = numbers[t], t


def fill(numbers: Array, keys: Array, held: Array) -> None:
    """Enter distinct numbers with their places into an empty hash table that is long enough."""
    _fill(numbers, keys, held, _shift(keys))


@compiled
def _find(numbers, keys, held, found, shift):  # type: ignore[no-untyped-def]
    for t in range(numbers.size):
        found[t] = held[_slot(numbers[t], keys, held, shift)]


def find(numbers: Array, keys: Array, held: Array, found: Array) -> None:
    """Look up each number in a hash table; EMPTY if it is not there."""
    _find(numbers, keys, held, found, _shift(keys))


def _shift(keys: Array) -> np.uint64:
    return np.uint64(65 - keys.size.bit_length())


@compiled
def _tally(values, known, about, levels, times, count):  # type: ignore[no-untyped-def]
    """Update statistics; `count` levels are in a small hash table, and more than `LEVELS` are not counted."""
    total, squares, least, most, error = 0.0, 0.0, about[LEAST], about[MOST], about[ERROR]
    whole, size = about[WHOLE] != 0, 0
    for t in range(values.size):
        if not known[t]:
            continue
        y = np.float64(values[t]) + 0.0
        total += y
        squares += y * y
        least, most = min(least, y), max(most, y)
        error = max(error, abs(np.float64(np.float32(y)) - y))
        whole = whole and y == np.floor(y)
        size += 1
        if count <= LEVELS:
            slot = np.int64((np.float64(y).view(np.uint64) * _PHI) >> np.uint64(54))
            while times[slot] > 0 and levels[slot] != y:
                slot = (slot + 1) & (_SLOTS - 1)
            if times[slot] == 0:
                levels[slot] = y
                count += 1
            times[slot] += 1
    about[SUM] += total
    about[SQUARES] += squares
    about[LEAST], about[MOST], about[ERROR], about[WHOLE] = least, most, error, whole
    about[SIZE] += size
    return count


def tally(values: Array, known: Array, about: Array, levels: dict[float, int] | None) -> dict[float, int] | None:
    """Update the statistics of values, and the count of each value; None if there are too many."""
    slots, times = np.empty(_SLOTS), np.zeros(_SLOTS, np.int64)
    count = _tally(values, known, about, slots, times, LEVELS + 1 if levels is None else 0)
    if levels is None or count > LEVELS:
        return None
    for k in np.flatnonzero(times):
        levels[float(slots[k])] = levels.get(float(slots[k]), 0) + int(times[k])
    return levels if len(levels) <= LEVELS else None


@compiled
def _scatter(outer, inner, owner, plan, starts, order, keys):  # type: ignore[no-untyped-def]
    for t in range(outer.size):
        i, j = outer[t], np.uint32(inner[t])
        block = owner[i]
        to = starts[block]
        starts[block] = to + 1
        width = np.uint32(plan[block, 2])
        tile = j // width
        run = np.int64(tile) * plan[block, 1] + i - plan[block, 0]
        keys[to] = (run << plan[block, 3]) | np.int64(j - tile * width)
        order[to] = t


def scatter(outer: Array, inner: Array, owner: Array, plan: Array, n_blocks: int) -> tuple[Array, Array, Array]:
    """Sort entries by block: the start of each block in the order, the order, and the keys in it."""
    starts = np.concatenate([[0], np.cumsum(np.bincount(owner[outer], minlength=n_blocks))])
    order, keys = np.empty(outer.size, np.int64), np.empty(outer.size, np.uint64)
    _scatter(outer, inner, owner, plan, starts[:-1].copy(), order, keys)
    return starts, order, keys
