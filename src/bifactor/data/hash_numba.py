"""Hashes in [0, 1) of the entries of a matrix, compiled. The functions are those of `hash_reference`."""

import numpy as np
from numba.extending import register_jitable

from bifactor.arrays import Array
from bifactor.data.hash_reference import FIRST, SCALE, SECOND, STEP, initial_state
from bifactor.kernels.compile import compiled

_STEP, _FIRST, _SECOND = np.uint64(STEP), np.uint64(FIRST), np.uint64(SECOND)
_HALF, _30, _27, _31, _11 = (np.uint64(k) for k in (32, 30, 27, 31, 11))


@register_jitable
def integers_of(row, col, start):  # type: ignore[no-untyped-def]
    """The 53-bit integer of one entry."""
    z = ((np.uint64(row) << _HALF) + np.uint64(col)) * _STEP + start
    z = (z ^ (z >> _30)) * _FIRST
    z = (z ^ (z >> _27)) * _SECOND
    return (z ^ (z >> _31)) >> _11


@compiled
def _hashed(rows, cols, start, found):  # type: ignore[no-untyped-def]
    for t in range(found.size):
        found[t] = integers_of(rows[t], cols[t], start) * SCALE


def hashed(rows: Array, cols: Array, seed: int) -> Array:
    """A number in [0, 1) for each entry."""
    found = np.empty(rows.size)
    _hashed(rows, cols, initial_state(seed), found)
    return found
