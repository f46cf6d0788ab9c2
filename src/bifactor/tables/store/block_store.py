"""A block store: a folder of blocks and its metadata."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bifactor import kernels
from bifactor._compat import cached_property
from bifactor.arrays import Array
from bifactor.errors import InputError
from bifactor.executors import Workspace
from bifactor.kernels.census_reference import LEAST, MOST, SIZE, SQUARES, SUM, WHOLE
from bifactor.tables.names import Names
from bifactor.tables.observations import Origin
from bifactor.tables.store.manifest import Manifest, Values, block_name, read_manifest, read_marginals, read_names
from bifactor.tables.store.part import Part, Sieve
from bifactor.validation import is_count


class Counted(NamedTuple):
    """Counts from a pass over the blocks."""

    values: Values
    marginals: tuple[Array, Array]


@dataclass(frozen=True, eq=False)
class BlockStore:
    """Observations of a matrix on disk, in blocks of rows or of columns, whichever are more.

    `tables.partition` writes a store, `BlockStore.open` opens one.

    Attributes
    ----------
    folder : Path
    shape : (rows, columns)
    size : int
        The number of observations.
    dtype : numpy.dtype
        Type of loaded values: float32, unless that rounds some value by more than a millionth of their range, or
        values are very large or small.
    flipped : bool
        Whether blocks are ranges of columns.
    parts : tuple of Part
        Each with `start`, `stop`, `size`, `fingerprint` and `load`.
    row_names, column_names : Names or None
        None if they are numbers from 0.
    marginals : (rows, columns)
        The number of observations of each row and of each column.
    mean, total, least, largest : float
        Mean, sum, minimum and maximum of the values.
    whole, ones : bool
        Whether all values are integers; whether all of them are 1.
    levels, level_counts : array or None
        The distinct values, sorted, and how often each occurs; None if there are more than 256.
    weighted : bool
    origin : Origin
    fingerprint : str
        A hash of the content: the same for the same observations in the same blocks.
    """

    folder: Path
    manifest: Manifest
    sieve: Sieve | None = None

    @classmethod
    def open(cls, folder: str | os.PathLike[str]) -> "BlockStore":
        """Open a store; raise `FileError` if there is none, or it is damaged."""
        place = Path(os.path.abspath(folder))
        return cls(place, read_manifest(place))

    @property
    def shape(self) -> tuple[int, int]:
        return self.manifest.shape

    @property
    def size(self) -> int:
        return self.values.size

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(self.manifest.dtype)

    @property
    def flipped(self) -> bool:
        return self.manifest.flipped

    @property
    def weighted(self) -> bool:
        return self.manifest.weighted

    @property
    def origin(self) -> Origin:
        return self.manifest.origin

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        told = self.manifest
        table = () if told.values.levels is None else tuple(value for value, _ in told.values.levels)
        return tuple(
            Part(str(self.folder / block_name(k)), header, table, told.dtype, told.flipped, self.sieve)
            for k, header in enumerate(told.blocks)
        )

    @property
    def row_names(self) -> Names | None:
        return self._names[0]

    @property
    def column_names(self) -> Names | None:
        return self._names[1]

    @cached_property
    def _names(self) -> tuple[Names | None, Names | None]:
        if not self.manifest.named:
            return None, None
        return read_names(self.folder, self.manifest.id, self.shape)

    @cached_property
    def marginals(self) -> tuple[Array, Array]:
        if self.sieve is not None:
            return self._counted.marginals
        return read_marginals(self.folder, self.manifest)

    @property
    def values(self) -> Values:
        """Statistics of the values; for a part of the store, they take one pass over the blocks."""
        return self.manifest.values if self.sieve is None else self._counted.values

    @property
    def total(self) -> float:
        return self.values.total

    @property
    def mean(self) -> float:
        return self.total / self.size if self.size else 0.0

    @property
    def least(self) -> float:
        return self.values.least

    @property
    def largest(self) -> float:
        return self.values.largest

    @property
    def whole(self) -> bool:
        return self.values.whole

    @property
    def ones(self) -> bool:
        return self.least == 1 == self.largest

    @property
    def levels(self) -> Array | None:
        return None if self.values.levels is None else np.array([value for value, _ in self.values.levels])

    @property
    def level_counts(self) -> Array | None:
        return None if self.values.levels is None else np.array([times for _, times in self.values.levels], np.int64)

    @property
    def fingerprint(self) -> str:
        content = self.manifest.fingerprint
        return content if self.sieve is None else f"{content} {tuple(self.sieve)}"

    def train(self, fraction: float, seed: int) -> "BlockStore":
        """The same store without the observations that `held` holds out.

        A hash of the row, the column and the seed decides whether an observation is held out, so the choice is the
        same in memory, in any blocks and on any machine, and observations of one entry are held out together. `size`,
        `marginals` and the statistics of the values are computed on first use, in one pass over the blocks.
        """
        return self._sifted(fraction, seed, False)

    def held(self, fraction: float, seed: int) -> "BlockStore":
        """The observations whose hash is below `fraction`."""
        return self._sifted(fraction, seed, True)

    def _sifted(self, fraction: float, seed: int, held: bool) -> "BlockStore":
        if self.sieve is not None:
            raise InputError("Some observations are already held out of this store. Use the whole store.")
        if not isinstance(fraction, float) or not 0 < fraction < 1:
            raise InputError(f"fraction={fraction!r} is not between 0 and 1. Pass the share to hold out, such as 0.1.")
        if not is_count(seed, 0):
            raise InputError(f"seed={seed!r} is not an integer ≥ 0. Pass one, such as 0.")
        return BlockStore(self.folder, self.manifest, Sieve(fraction, int(seed), held))

    @cached_property
    def _counted(self) -> Counted:
        longer, shorter = np.zeros(max(self.shape), np.int64), np.zeros(min(self.shape), np.int64)
        about = fresh()
        levels: dict[float, int] | None = {} if self.manifest.values.levels is not None else None
        space = Workspace()
        for part in self.parts:
            layout, y, _ = part.load(space)
            outer, inner = layout.counts
            longer[part.start : part.stop] = outer
            shorter += inner.astype(np.int64)
            levels = kernels.find("census", np.float64, y.size).tally(y, np.ones(y.size, bool), about, levels)
        if levels is not None:  # the values before they were rounded
            exact = {float(self.dtype.type(value)): value for value, _ in self.manifest.values.levels or ()}
            levels = {exact[value]: times for value, times in levels.items()}
        marginals = (shorter, longer) if self.flipped else (longer, shorter)
        return Counted(told_values(about, levels), marginals)

    def __repr__(self) -> str:
        m, n = self.shape
        return f"BlockStore({str(self.folder)!r}: {m}×{n}, {len(self.parts)} blocks)"


def fresh() -> Array:
    """Statistics of no values."""
    about = np.zeros(7)
    about[LEAST], about[MOST], about[WHOLE] = np.inf, -np.inf, 1
    return about


def told_values(about: Array, levels: dict[float, int] | None) -> Values:
    """Statistics of values, by name."""
    least, most = (float(about[k]) if about[SIZE] else 0.0 for k in (LEAST, MOST))
    sizes = int(about[SIZE]), float(about[SUM]), float(about[SQUARES])
    return Values(*sizes, least, most, bool(about[WHOLE]), None if levels is None else tuple(sorted(levels.items())))
