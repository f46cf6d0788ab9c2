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
from bifactor.data.dataset import BlockDataset, Dataset, Summary
from bifactor.data.masks import CellMask, RandomCells
from bifactor.data.names import Names
from bifactor.data.observations import Origin
from bifactor.data.seen_items import StoreAddress
from bifactor.data.store.block_file import ADVICE, HEADER, Header, digest, read_block
from bifactor.data.store.census_reference import LEVELS
from bifactor.data.store.codec_reference import COPIED
from bifactor.data.store.manifest import Manifest, block_name, read_manifest, read_marginals, read_names
from bifactor.errors import FileError
from bifactor.executors import BlockData, Workspace
from bifactor.kernels.entry_layout import EntryLayout, index_type

_checked: set[tuple[str, int, str]] = set()
"""Files whose checksum this process has verified: name, time of the last change and checksum."""


class Marks(NamedTuple):
    """Which entries of a block are held out."""

    gaps: Array
    """Others between them, as `codec_reference.marked` returns them."""
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


@dataclass(frozen=True, eq=False)
class BlockStore(BlockDataset):
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
    is_weighted : bool
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
    def shape(self) -> tuple[int, int]:  # type: ignore[override]
        return self.manifest.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(self.manifest.dtype)

    @property
    def flipped(self) -> bool:  # type: ignore[override]
        return self.manifest.flipped

    @property
    def is_weighted(self) -> bool:
        return self.manifest.weighted

    @property
    def origin(self) -> Origin:  # type: ignore[override]
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
    def row_names(self) -> Names | None:  # type: ignore[override]
        return self._names[0]

    @property
    def column_names(self) -> Names | None:  # type: ignore[override]
        return self._names[1]

    @cached_property
    def _names(self) -> tuple[Names | None, Names | None]:
        if not self.manifest.named:
            return None, None
        return read_names(self.folder, self.manifest.id, self.shape)

    @cached_property
    def _counts(self) -> tuple[Array, Array]:
        return self._pass.counts if self.sieve is not None else read_marginals(self.folder, self.manifest)

    def counts(self) -> tuple[Array, Array]:
        return self._counts

    @cached_property
    def _summary(self) -> Summary:
        known, levels = self.manifest.values, self.manifest.values.levels
        if self.sieve is None:
            counts = None if levels is None else np.array([times for _, times in levels], np.int64)
            exact = None if levels is None else np.array([value for value, _ in levels])
            return Summary(known.size, known.least, known.largest, known.total, known.whole, exact, counts)
        found = self._pass.summary
        if levels is None or found.levels is None:
            return found
        exact = np.array([value for value, _ in levels])  # before they were rounded
        return found._replace(levels=exact[np.isin(exact.astype(self.dtype), found.levels.astype(self.dtype))])

    def summary(self) -> Summary:
        """Statistics of the values; of a part of the store, they take one pass over the blocks."""
        return self._summary

    @property
    def fingerprint(self) -> str:
        content = self.manifest.fingerprint
        return content if self.sieve is None else f"{content} {tuple(self.sieve)}"

    def address(self) -> StoreAddress | None:
        return StoreAddress(self.folder, self.fingerprint) if self.sieve is None else None

    def content(self, path: Path) -> dict[str, Any]:
        return {"bytes": sum(Path(part.path).stat().st_size for part in self.parts), **super().content(path)}

    def split(self, mask: CellMask) -> tuple[Dataset, Dataset]:
        """The observations outside of a set of cells, and those in it. `RandomCells` are marked once for each block.

        Numbers and statistics of the parts are computed on first use, in one pass over the blocks.
        """
        if self.sieve is not None or not isinstance(mask, RandomCells):
            return super().split(mask)
        sieves = (HoldoutFilter(mask.fraction, int(mask.seed), held) for held in (False, True))
        train, held = (BlockStore(self.folder, self.manifest, sieve) for sieve in sieves)
        return train, held

    def __repr__(self) -> str:
        m, n = self.shape
        return f"BlockStore({str(self.folder)!r}: {m}×{n}, {len(self.parts)} blocks)"
