"""How observations are divided into blocks for a given amount of memory."""

from dataclasses import dataclass

import numpy as np

from bifactor._compat import cached_property
from bifactor.arrays import Array
from bifactor.errors import InputError
from bifactor.kernels.layout import tiling

LEAST_BUDGET = 64 << 20
"""Least memory in bytes."""

SHARE = 160
"""Bytes of memory for each observation of a block. Two decoded blocks, of at most 24 bytes and their encoded form, and
the work on one of them take less than half of it."""

FEWEST, SMALL = 8, 1 << 17
"""Fewest blocks, for data with this many observations for each of them."""

LARGEST_SIDE = np.iinfo(np.int32).max


@dataclass(frozen=True, eq=False)
class Plan:
    """Blocks with about equally many observations: ranges of the longer side."""

    cuts: Array
    """The starts of blocks, and the end of the last one."""
    sizes: Array
    """Observations of each block."""
    n_inner: int

    @classmethod
    def of(cls, outer: Array, n_inner: int, memory: int) -> "Plan":
        """For rows of the longer side with so many observations each."""
        if max(outer.size, n_inner) > LARGEST_SIDE:
            raise InputError(f"One side has {max(outer.size, n_inner):,} names, more than supported. Pass fewer.")
        ends = np.cumsum(outer)
        size = int(ends[-1])
        most = max(1, min(memory // SHARE, max(-(-size // FEWEST), SMALL)))
        count = -(-size // most)
        shares = size * np.arange(1, count, dtype=np.float64) / count
        cuts = np.unique(np.r_[0, 1 + np.searchsorted(ends, shares), outer.size])
        # Rows at the ends may have no observations, but every block has some.
        sizes = np.diff(np.r_[0, ends[cuts[1:] - 1]])
        stay = np.flatnonzero(sizes)
        cuts = np.r_[0, cuts[1:][stay]]
        cuts[-1] = outer.size
        return cls(cuts, sizes[stay], n_inner)

    @property
    def count(self) -> int:
        return int(self.sizes.size)

    @cached_property
    def owner(self) -> Array:
        """The block of each row of the longer side."""
        kind = np.uint16 if self.count < 1 << 16 else np.int32
        return np.repeat(np.arange(self.count, dtype=kind), np.diff(self.cuts))

    def tiles(self, block: int) -> tuple[int, int]:
        """The number of tiles of the columns of a block, and their width."""
        rows = int(self.cuts[block + 1] - self.cuts[block])
        return tiling(int(self.sizes[block]), rows, self.n_inner)

    def shift(self, block: int) -> int:
        """Bits of a column within its tile."""
        return (self.tiles(block)[1] - 1).bit_length()

    @cached_property
    def table(self) -> Array:
        """For each block: its first row, its number of rows, the width of its tiles and the bits of a column."""
        blocks = range(self.count)
        widths, shifts = [self.tiles(b)[1] for b in blocks], [self.shift(b) for b in blocks]
        return np.column_stack([self.cuts[:-1], np.diff(self.cuts), widths, shifts]).astype(np.int64)
