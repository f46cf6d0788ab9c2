"""Packing of blocks of entries: sorting, encoding and decoding.

Entries of a block are kept in the order of an `EntryLayout`: tile of columns, row, column. A run is the entries of one
row in one tile. For each block, the number of entries in each run is stored (tile by tile, row by row), and for each
entry its column within the tile. A key has the number of the run in its high bits and that column in its `shift` low
bits.
"""

import numpy as np

from bifactor.arrays import Array
from bifactor.data.hash_reference import bound, initial_state, integers_of

LONG = 255
"""The mark for this many entries of which none is held out."""

COPIED = 32
"""The number of entries that are copied at once."""


def order(keys: Array, bits: int) -> tuple[Array, Array]:
    """The stable order of keys of this many bits, and the sorted keys; the given keys may be overwritten."""
    found = np.argsort(keys, kind="stable")
    return found, keys[found]


def runs(keys: Array, shift: int, count: int, columns: Array) -> Array:
    """The number of entries of each of `count` runs; the columns of sorted keys are written to `columns`."""
    columns[:] = keys & np.uint64((1 << shift) - 1)
    return np.bincount((keys >> np.uint64(shift)).astype(np.int64), minlength=count)


def decode(counts: Array, columns: Array, width: int, outer: Array, inner: Array, sums: Array) -> Array:
    """Fill in the coordinates of entries and their numbers in each row; return the starts of tiles, and the end.

    `counts` has one line for each tile.
    """
    n_tiles, rows = counts.shape
    wide = counts.astype(np.int64)
    outer[:] = np.repeat(np.tile(np.arange(rows, dtype=outer.dtype), n_tiles), wide.ravel())
    tiles = np.concatenate([[0], np.cumsum(wide.sum(axis=1))])
    inner[:] = columns
    inner += np.repeat(width * np.arange(n_tiles), np.diff(tiles)).astype(inner.dtype)
    sums[:] = wide.sum(axis=0)
    return tiles


def look_up(codes: Array, table: Array, y: Array) -> None:
    """y = table[codes]."""
    y[:] = table[codes]


def marked(
    counts: Array, columns: Array, width: int, first: int, flipped: bool, seed: int, fraction: float
) -> tuple[Array, Array, int]:
    """Marks of the entries that the hash holds out, their number in each run, and the number of entries in all runs.

    `first` is the number of the first row of the block. A mark is the number of other entries before one that is held
    out, in one byte; `LONG` stands for that many other entries, and no held-out one. Entries after the last mark are
    not held out.
    """
    (n_tiles, rows), size = counts.shape, int(np.sum(counts, dtype=np.int64))
    held = np.zeros_like(counts)
    if size != columns.size:  # the file is damaged
        return np.empty(0, np.uint8), held, size
    run = np.repeat(np.arange(n_tiles * rows), counts.ravel())
    sides = first + run % rows, width * (run // rows) + columns
    i, j = sides[::-1] if flipped else sides
    out = np.flatnonzero(integers_of(i, j, initial_state(seed)) < bound(fraction))
    held += np.bincount(run[out], minlength=n_tiles * rows).reshape(counts.shape).astype(counts.dtype)
    between = np.diff(out, prepend=-1) - 1
    whole, rest = between // LONG, between % LONG
    gaps = np.full(int(np.sum(whole + 1)), LONG, np.uint8)
    gaps[np.cumsum(whole + 1) - 1] = rest
    return gaps, held, size


def sift(gaps: Array, held: bool, source: Array, out: Array) -> None:
    """Write the entries that are held out, or all others, to the start of `out`, which has room for `COPIED` more."""
    ends = np.cumsum(gaps.astype(np.int64) + (gaps < LONG))
    aside = np.zeros(source.size, bool)
    aside[ends[gaps < LONG] - 1] = True
    some = source[aside if held else ~aside]
    out[: some.size] = some
