"""Packing of blocks of entries: sorting, encoding and decoding.

Entries of a block are kept in the order of a `Layout`: tile of columns, row, column. A run is the entries of one row in
one tile. For each block, the number of entries in each run is stored (tile by tile, row by row), and for each entry its
column within the tile. A key has the number of the run in its high bits and that column in its `shift` low bits.
"""

import numpy as np

from bifactor.arrays import Array
from bifactor.kernels.hash_reference import begun, bound, drawn


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
    """Move the entries that the hash holds out, or all others, to the front of all arrays; return starts of tiles.

    The arrays are the coordinates, with `first` to be added to those of the outer side, and the data of entries. The
    numbers of entries of each row and column are written to `sums`.
    """
    outer, inner = arrays[0], arrays[1]
    sides = outer.astype(np.int64) + first, inner
    rows, cols = sides[::-1] if flipped else sides
    stay = (drawn(rows, cols, begun(seed)) < bound(fraction)) == held
    size = int(np.count_nonzero(stay))
    for array in arrays:
        array[:size] = array[stay]
    sums[0][:] = np.bincount(outer[:size], minlength=sums[0].size)
    sums[1][:] = np.bincount(inner[:size], minlength=sums[1].size)
    return np.concatenate([[0], np.cumsum(stay)])[tiles]
