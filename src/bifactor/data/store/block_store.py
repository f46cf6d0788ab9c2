"""A block store: a folder of blocks and its metadata. A block is small until it is loaded."""

import os
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from bifactor import kernels
from bifactor._compat import cached_property
from bifactor.arrays import HOST_ARRAY, Array
from bifactor.data.hash_reference import SCALE, bound
from bifactor.data.names import Names
from bifactor.data.observations import Observations, Origin
from bifactor.data.store.block_file import ADVICE, HEADER, Header, digest, read_block
from bifactor.data.store.census_reference import LEAST, LEVELS, MOST, SIZE, SQUARES, SUM, WHOLE
from bifactor.data.store.codec_reference import COPIED
from bifactor.data.store.manifest import Manifest, Values, block_name, read_manifest, read_marginals, read_names
from bifactor.errors import FileError, InputError
from bifactor.executors import BlockData, Workspace
from bifactor.kernels.entry_layout import EntryLayout, index_type
from bifactor.validation import is_count

_checked: set[tuple[str, int, str]] = set()
"""Files whose checksum this process has verified: name, time of the last change and checksum."""


class Marks(NamedTuple):
    """Which entries of a block are held out."""

    gaps: Array
    """Others between them, as `kernels.codec_reference.marked` tells."""
    held: Array
    """How many in each run."""

    @property
    def bytes(self) -> int:
        return int(self.gaps.nbytes + self.held.nbytes)


MAX_MARK_BYTES = 1 << 28
"""Bytes of marks that a process keeps: a hash takes twice as long as reading all the rest. Of a tenth that is held out
they take about a fifth of a byte for each observation."""

_marks: dict[tuple[str, bool, float, int], Marks] = {}
_lock = Lock()


def _remember(name: tuple[str, bool, float, int], marks: Marks) -> None:
    """Keep marks as long as there is room. Those of other fractions and seeds give way, and the first ones stay."""
    with _lock:
        if sum(one.bytes for one in _marks.values()) + marks.bytes > MAX_MARK_BYTES:
            for other in [other for other in _marks if other[2:] != name[2:]]:
                del _marks[other]
        if sum(one.bytes for one in _marks.values()) + marks.bytes <= MAX_MARK_BYTES:
            _marks[name] = marks


class HoldoutFilter(NamedTuple):
    """A choice of entries: those whose hash is below a fraction are held out."""

    fraction: float
    seed: int
    held: bool
    """Whether the held-out entries are loaded, or all others."""


@dataclass(frozen=True)
class Part:
    """A range of rows, or of columns if the store is `flipped`, and the observations in it."""

    path: str
    header: Header
    table: tuple[float, ...]
    """The values of codes; empty if values are stored as numbers."""
    dtype: str
    flipped: bool
    sieve: HoldoutFilter | None = None

    @property
    def start(self) -> int:
        return self.header.start

    @property
    def stop(self) -> int:
        return self.header.stop

    @property
    def size(self) -> int:
        """The number of observations, before some are held out."""
        return self.header.size

    @property
    def fingerprint(self) -> str:
        """A hash of the content."""
        content = self.header.fingerprint
        return content if self.sieve is None else f"{content} {tuple(self.sieve)}"

    def sifted(self, sieve: HoldoutFilter) -> "Part":
        """The same block with another choice of its entries."""
        return replace(self, sieve=sieve)

    def load(self, workspace: Workspace | None = None) -> BlockData:
        """Read the block, check it and unpack it.

        Parameters
        ----------
        workspace : Workspace, optional
            Memory that is reused. The arrays of the last block are overwritten.

        Raises
        ------
        FileError
            If the file is missing, truncated or changed, or belongs to another store. The checksum of the whole content
            and the range of its numbers are verified when a process first reads the file, and again after the file has
            changed.
        """
        space = Workspace() if workspace is None else workspace
        buffer, time = read_block(Path(self.path), self.header, space)
        column = {
            name: buffer[at : at + length * dtype.itemsize].view(dtype)
            for name, (at, length, dtype) in self.header.sections.items()
        }
        column["runs"] = column["runs"].reshape(self.header.n_tiles, self.stop - self.start)
        known = (self.path, time, self.header.fingerprint)
        if known not in _checked:
            if digest(self.header, [buffer.data[HEADER:]]) != self.header.fingerprint:
                raise self._damaged("its checksum does not match")
            self._require_valid(column)
            _checked.add(known)
        return self._decoded(column, space)

    def _require_valid(self, column: dict[str, Array]) -> None:
        """Raise `FileError` for numbers out of range: anybody can write a right checksum, and loops check no bounds."""
        header, runs, columns = self.header, column["runs"], column["columns"]
        ends = np.cumsum(runs.sum(axis=1, dtype=np.int64))
        # A number beyond int64 would wrap to a negative one.
        if runs.max() > header.size or ends[-1] != header.size:
            raise self._uneven()
        for tile, end in enumerate(ends.tolist()):
            part = columns[(ends[tile - 1] if tile else 0) : end]
            if part.size and part.max() >= min(header.width, header.n_inner - tile * header.width):
                raise self._damaged("some entries lie outside of the matrix")
        counts = column["marginals"]
        if counts.max() > header.size or counts.sum(dtype=np.int64) != header.size:
            raise self._damaged(f"its columns do not have {header.size} entries")
        values, weights = column["values"], column.get("weights", np.ones(1))
        if not np.all(values < len(self.table) if self.table else np.isfinite(values)):
            raise self._damaged("some values are not numbers")
        if not np.all((weights > 0) & (weights < np.inf)):
            raise self._damaged("some weights are not positive numbers")

    def _decoded(self, column: dict[str, Array], space: Workspace) -> BlockData:
        header = self.header
        codec = kernels.get("data.store.codec", HOST_ARRAY, header.size)
        rows = self.stop - self.start
        if self.sieve is not None:
            column = self._sifted(column, self.sieve, codec, space)
        size, index = column["columns"].size, index_type(rows, header.n_inner)
        outer, inner = space.take("outer", size, index), space.take("inner", size, index)
        sums = space.take("rows", rows, np.float64)
        tiles = codec.decode(column["runs"], column["columns"], header.width, outer, inner, sums)
        if tiles[-1] != size:
            raise self._uneven()
        y, weights, marginals = self._numbers(column, codec, space), None, None
        if "weights" in column:
            weights = column["weights"].astype(self.dtype, copy=False)
        if "marginals" in column:
            marginals = space.take("cols", header.n_inner, np.float64)
            marginals[:] = column["marginals"]
        return BlockData(EntryLayout(outer, inner, rows, header.n_inner, tiles, given=(sums, marginals)), y, weights)

    def _sifted(self, column: dict[str, Array], sieve: HoldoutFilter, codec: Any, space: Workspace) -> dict[str, Array]:
        """The columns of a block that has only what the sieve leaves. What each column has is not told."""
        name = (self.header.fingerprint, self.flipped, sieve.fraction, sieve.seed)
        marks = _marks.get(name)
        if marks is None:
            settings = self.header.width, self.start, self.flipped, sieve.seed, sieve.fraction
            gaps, held, size = codec.marked(column["runs"], column["columns"], *settings)
            if size != self.header.size:
                raise self._uneven()
            marks = Marks(gaps, held)
            _remember(name, marks)
        found = {"runs": marks.held if sieve.held else column["runs"] - marks.held}
        size = int(np.sum(found["runs"], dtype=np.int64))
        for name_of, source in column.items():
            if name_of in ("values", "weights", "columns"):
                out = space.take(f"sifted {name_of}", size + COPIED, source.dtype)
                codec.sift(marks.gaps, sieve.held, source, out)
                found[name_of] = out[:size]
        return found

    def _uneven(self) -> FileError:
        return self._damaged(f"its rows do not have {self.header.size} entries")

    def _damaged(self, fact: str) -> FileError:
        return FileError(f"{self.path} is damaged: {fact}. {ADVICE}")

    def _numbers(self, column: dict[str, Array], codec: Any, space: Workspace) -> Array:
        values = column["values"]
        if not self.table:
            return values.astype(self.dtype, copy=False)
        y = space.take("y", values.size, self.dtype)
        table = np.zeros(LEVELS, self.dtype)
        table[: len(self.table)] = self.table
        codec.look_up(values, table, y)
        return y


class BlockCounts(NamedTuple):
    """Counts from a pass over the blocks."""

    values: Values
    marginals: tuple[Array, Array]


@dataclass(frozen=True, eq=False)
class BlockStore:
    """Observations of a matrix on disk, in blocks of rows or of columns, whichever are more.

    `data.partition` writes a store, `BlockStore.open` opens one.

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
    sieve: HoldoutFilter | None = None

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
        return BlockStore(self.folder, self.manifest, HoldoutFilter(fraction, int(seed), held))

    @cached_property
    def _counted(self) -> BlockCounts:
        longer, shorter = np.zeros(max(self.shape), np.int64), np.zeros(min(self.shape), np.int64)
        about = fresh()
        levels: dict[float, int] | None = {} if self.manifest.values.levels is not None else None
        space = Workspace()
        for part in self.parts:
            layout, y, _ = part.load(space)
            outer, inner = layout.counts
            longer[part.start : part.stop] = outer
            shorter += inner.astype(np.int64)
            census = kernels.get("data.store.census", HOST_ARRAY, y.size)
            levels = census.tally(y, np.ones(y.size, bool), about, levels)
        if levels is not None:  # the values before they were rounded
            exact = {float(self.dtype.type(value)): value for value, _ in self.manifest.values.levels or ()}
            levels = {exact[value]: times for value, times in levels.items()}
        marginals = (shorter, longer) if self.flipped else (longer, shorter)
        return BlockCounts(values_from_statistics(about, levels), marginals)

    def __repr__(self) -> str:
        m, n = self.shape
        return f"BlockStore({str(self.folder)!r}: {m}×{n}, {len(self.parts)} blocks)"


def fresh() -> Array:
    """Statistics of no values."""
    about = np.zeros(7)
    about[LEAST], about[MOST], about[WHOLE] = np.inf, -np.inf, 1
    return about


def values_from_statistics(about: Array, levels: dict[float, int] | None) -> Values:
    """Statistics of values, by name."""
    least, most = (float(about[k]) if about[SIZE] else 0.0 for k in (LEAST, MOST))
    sizes = int(about[SIZE]), float(about[SUM]), float(about[SQUARES])
    return Values(*sizes, least, most, bool(about[WHOLE]), None if levels is None else tuple(sorted(levels.items())))


# Some observations of a store in memory, and the choice of those held out.


def is_held_out(rows: Array, cols: Array, fraction: float, seed: int) -> Array:
    """A mask of entries that a hash of row, column and seed holds out, the same as in `BlockStore.held`."""
    found = kernels.get("data.hash", HOST_ARRAY, rows.size).hashed(rows, cols, seed)
    below: Array = found < float(bound(fraction)) * SCALE
    return below


def load_rows(store: BlockStore, stay: Array, side: int = 0) -> Observations:
    """All observations of the rows (side 0), or columns (1), where `stay` is True, by one pass over their blocks.

    Indices and names are those of the store.
    """
    space, found, given = Workspace(), list[tuple[Array, Array, Array]](), list[Array]()
    blocks_of = int(store.flipped)
    for part in store.parts:
        if side == blocks_of and not stay[part.start : part.stop].any():
            continue
        layout, y, weights = part.load(space)
        here = (stay[part.start : part.stop][layout.outer] if side == blocks_of else stay[layout.inner]).nonzero()[0]
        outer = layout.outer[here].astype(np.int64) + part.start
        found.append((outer, layout.inner[here].astype(np.int64), y[here]))
        if weights is not None:
            given.append(weights[here])
    outer, inner, values = (_joined([one[k] for one in found]) for k in range(3))
    rows, cols = (inner, outer) if store.flipped else (outer, inner)
    kept = np.concatenate(given) if given else None
    return Observations(rows, cols, values, store.shape, kept, store.row_names, store.column_names, store.origin)


def _joined(parts: list[Array]) -> Array:
    return np.concatenate(parts) if parts else np.empty(0, np.int64)
