"""Packing and unpacking of blocks of entries, compiled. The functions are those of `codec_reference`."""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from bifactor.arrays import Array
from bifactor.data.hash_numba import integers_of
from bifactor.data.hash_reference import bound, initial_state
from bifactor.data.store.codec_reference import COPIED, LONG
from bifactor.kernels.compile import compiled

DIGIT = 11
"""The number of bits of a key that are sorted at a time."""

WIDE = 8
"""The number of entries of a run that are always written: a loop over few entries of unpredictable number is slower."""


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
def _marked(counts, columns, width, first, flipped, start, below, gaps, held):  # type: ignore[no-untyped-def]
    n_tiles, rows = counts.shape
    t, n, gap, last = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    for tile in range(n_tiles):
        for i in range(rows):
            end = t + np.int64(counts[tile, i])
            if end > columns.size:  # the file is damaged
                return t, last
            for k in range(t, end):
                j = tile * width + np.int64(columns[k])
                number = integers_of(j, i + first, start) if flipped else integers_of(i + first, j, start)
                if number < below:
                    gaps[n] = gap
                    held[tile, i] += 1
                    n, gap, last = n + 1, np.int64(0), n + 1
                elif gap == LONG - 1:
                    gaps[n] = LONG
                    n, gap = n + 1, np.int64(0)
                else:
                    gap += 1
            t = end
    return t, last


def marked(
    counts: Array, columns: Array, width: int, first: int, flipped: bool, seed: int, fraction: float
) -> tuple[Array, Array, int]:
    """Marks of the entries that the hash holds out, their number in each run, and the number of entries in all runs."""
    held, gaps = np.zeros_like(counts), np.empty(columns.size + columns.size // LONG + 1, np.uint8)
    size, n = _marked(counts, columns, width, first, flipped, initial_state(seed), bound(fraction), gaps, held)
    return gaps[:n].copy(), held, int(size)


@intrinsic
def _copy(context, out, to, source, at):  # type: ignore[no-untyped-def]
    """Copy `COPIED` entries, by one or two instructions; a loop would take one for each entry."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = context.get_data_type(signature.args[0].dtype)
        size = context.get_abi_sizeof(kind)
        arrays = (context.make_array(signature.args[k])(context, builder, args[k]) for k in (0, 2))
        places = (builder.gep(array.data, [args[k]]) for array, k in zip(arrays, (1, 3), strict=True))
        wide = ir.VectorType(kind, COPIED).as_pointer()
        target, origin = (builder.bitcast(place, wide) for place in places)
        builder.store(builder.load(origin, align=size), target, align=size)
        return context.get_dummy_value()

    return types.void(out, to, source, at), codegen


@compiled
def _without(gaps, source, out):  # type: ignore[no-untyped-def]
    at, to, size = np.int64(0), np.int64(0), np.int64(source.size)
    for n in range(gaps.size + 1):
        gap = np.int64(gaps[n]) if n < gaps.size else size - at  # all entries after the last mark
        k = np.int64(0)
        if at + COPIED <= size:  # most gaps are shorter; the next ones overwrite the excess
            _copy(out, to, source, at)
            k += COPIED
        while k < gap and at + k + COPIED <= size:
            _copy(out, to + k, source, at + k)
            k += COPIED
        while k < gap:
            out[to + k] = source[at + k]
            k += 1
        to += gap
        at += gap + (1 if gap < LONG else 0)


@compiled
def _marks(gaps, source, out):  # type: ignore[no-untyped-def]
    at, to = np.int64(0), np.int64(0)
    for n in range(gaps.size):
        at += gaps[n]
        if gaps[n] < LONG:
            out[to] = source[at]
            at, to = at + 1, to + 1


def sift(gaps: Array, held: bool, source: Array, out: Array) -> None:
    """Write the entries that are held out, or all others, to the start of `out`, which has room for `COPIED` more."""
    (_marks if held else _without)(gaps, source, out)
