"""Packing and unpacking of blocks of entries, compiled. The functions are those of `codec_reference`."""

import numpy as np

from bifactor.arrays import Array
from bifactor.kernels.compile import compiled
from bifactor.kernels.hash_numba import drawn
from bifactor.kernels.hash_reference import begun, bound

DIGIT = 11
"""The number of bits of a key that are sorted at a time."""

WIDE = 8
"""The number of entries of a run that are always written: a loop over few entries of unpredictable number is slower."""

CHUNK = 4096
"""The number of entries that are sifted at a time."""


@compiled
def _digits(keys, n_digits, counts):  # type: ignore[no-untyped-def]
    """Count the values of each digit."""
    mask = np.uint64((1 << DIGIT) - 1)
    for t in range(keys.size):
        key = keys[t]
        for d in range(n_digits):
            counts[d, (key >> np.uint64(DIGIT * d)) & mask] += 1


@compiled
def _moved(keys, places, shift, starts, keys_to, places_to):  # type: ignore[no-untyped-def]
    mask = np.uint64((1 << DIGIT) - 1)
    for t in range(keys.size):
        digit = (keys[t] >> np.uint64(shift)) & mask
        to = starts[digit]
        starts[digit] = to + 1
        keys_to[to] = keys[t]
        places_to[to] = places[t]


def order(keys: Array, bits: int) -> tuple[Array, Array]:
    """The stable order of keys of this many bits, and the sorted keys; the given keys may be overwritten."""
    n_digits = -(-bits // DIGIT)
    counts = np.zeros((max(n_digits, 1), 1 << DIGIT), np.int64)
    _digits(keys, n_digits, counts)
    places = np.arange(keys.size, dtype=np.uint32 if keys.size < 1 << 32 else np.uint64)
    spare = np.empty_like(keys), np.empty_like(places)
    for d in range(n_digits):
        if counts[d].max() == keys.size:  # all have the same value
            continue
        _moved(keys, places, DIGIT * d, np.cumsum(counts[d]) - counts[d], *spare)
        (keys, places), spare = spare, (keys, places)
    return places, keys


@compiled
def _runs(keys, shift, counts, columns):  # type: ignore[no-untyped-def]
    mask = np.uint64((1 << shift) - 1)
    for t in range(keys.size):
        key = keys[t]
        columns[t] = key & mask
        counts[key >> np.uint64(shift)] += 1


def runs(keys: Array, shift: int, count: int, columns: Array) -> Array:
    """The number of entries of each of `count` runs; the columns of sorted keys are written to `columns`."""
    counts = np.zeros(count, np.int64)
    _runs(keys, shift, counts, columns)
    return counts


@compiled
def _decode(counts, columns, width, outer, inner, sums, tiles):  # type: ignore[no-untyped-def]
    n_tiles, rows = counts.shape
    t = np.int64(0)
    for tile in range(n_tiles):
        begin = t
        for i in range(rows):
            count = np.int64(counts[tile, i])
            if t + count > outer.size:  # the file is damaged; do not write beyond the array
                return
            sums[i] += count
            if t + WIDE <= outer.size:
                for k in range(WIDE):  # most runs are short; the next ones overwrite the excess
                    outer[t + k] = i
                for k in range(t + WIDE, t + count):
                    outer[k] = i
            else:
                for k in range(t, t + count):
                    outer[k] = i
            t += count
        first = inner.dtype.type(tile * width)
        for k in range(begin, t):
            inner[k] = first + columns[k]
        tiles[tile + 1] = t


def decode(counts: Array, columns: Array, width: int, outer: Array, inner: Array, sums: Array) -> Array:
    """Fill in the coordinates of entries and their numbers in each row; return the starts of tiles, and the end."""
    tiles = np.zeros(counts.shape[0] + 1, np.int64)
    sums[:] = 0
    _decode(counts, columns, width, outer, inner, sums, tiles)
    return tiles


@compiled
def _look_up(codes, table, y):  # type: ignore[no-untyped-def]
    for t in range(y.size):
        y[t] = table[codes[t]]


def look_up(codes: Array, table: Array, y: Array) -> None:
    """y = table[codes]."""
    _look_up(codes, table, y)


@compiled
def _chosen(outer, inner, first, flipped, start, below, held, stays):  # type: ignore[no-untyped-def]
    """Mark the entries that are kept."""
    if flipped:
        for t in range(outer.size):
            stays[t] = (drawn(inner[t], outer[t] + first, start) < below) == held
    else:
        for t in range(outer.size):
            stays[t] = (drawn(outer[t] + first, inner[t], start) < below) == held


@compiled
def _count(places, stays, counts):  # type: ignore[no-untyped-def]
    for t in range(places.size):
        counts[places[t]] += stays[t]


@compiled
def _closed(outer, inner, y, weights, begin, to, stays, size):  # type: ignore[no-untyped-def]
    """Move the kept entries together; return their end."""
    weighted = weights.size > 0
    for t in range(size):
        at = begin + t
        outer[to], inner[to], y[to] = outer[at], inner[at], y[at]  # without an unpredictable branch
        if weighted:
            weights[to] = weights[at]
        to += stays[t]
    return to


@compiled
def _sift(outer, inner, y, weights, tiles, first, flipped, rows, cols, start, below, held, begins):  # type: ignore[no-untyped-def]
    to, stays = 0, np.empty(CHUNK, np.uint8)
    for tile in range(tiles.size - 1):
        for begin in range(tiles[tile], tiles[tile + 1], CHUNK):
            # Simple loops in sequence use SIMD, or at least do not wait for each other's results.
            end = min(begin + CHUNK, tiles[tile + 1])
            i, j = outer[begin:end], inner[begin:end]
            _chosen(i, j, first, flipped, start, below, held, stays)
            _count(i, stays, rows)
            _count(j, stays, cols)
            to = _closed(outer, inner, y, weights, begin, to, stays, end - begin)
        begins[tile + 1] = to


def sift(
    arrays: list[Array],
    tiles: Array,
    first: int,
    flipped: bool,
    sums: tuple[Array, Array],
    seed: int,
    fraction: float,
    held: bool,
) -> Array:
    """Move the entries that the hash holds out, or all others, to the front of all arrays; return starts of tiles."""
    outer, inner, y, *more = arrays
    begins = np.zeros(tiles.size, np.int64)
    weights = more[0] if more else np.empty(0, y.dtype)
    rows, cols = (np.zeros(side.size, np.int32) for side in sums)  # adding integers takes half the time
    _sift(outer, inner, y, weights, tiles, first, flipped, rows, cols, begun(seed), bound(fraction), held, begins)
    sums[0][:], sums[1][:] = rows, cols
    return begins
