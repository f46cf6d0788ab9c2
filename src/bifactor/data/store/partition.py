"""Writes a block store in three passes: names and counts, buckets of observations, and blocks."""

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np

from bifactor import kernels
from bifactor._compat import cached_property
from bifactor.arrays import HOST_ARRAY, Array
from bifactor.data.dataset import ValueTally
from bifactor.data.layout import ReadOptions, infer_layout
from bifactor.data.names import Names
from bifactor.data.observations import LARGEST_SIDE, Observations
from bifactor.data.read import KINDS, OTHERS, read
from bifactor.data.store.block_file import (
    CODES,
    HEADER,
    TYPES,
    Header,
    digest,
    dtype_name,
    encode_columns,
    parse_header,
    precision,
    smallest_type,
)
from bifactor.data.store.block_store import BlockStore
from bifactor.data.store.census_reference import SQUARES
from bifactor.data.store.manifest import (
    MANIFEST,
    MARGINALS,
    NAMES,
    Manifest,
    Values,
    block_name,
    parse_manifest,
    read_checked,
    read_manifest,
    read_marginals,
    read_names,
    with_checksum,
    write_manifest,
    write_sides,
)
from bifactor.data.store.names import Locator, NameCounter, changed_data_error
from bifactor.data.store.parquet import Parquet
from bifactor.data.store.sources import (
    Delimited,
    MemorySource,
    Source,
    Triples,
    identity,
    is_parquet,
    known_part,
    list_files,
    places,
    with_missing_count,
)
from bifactor.data.text import head, reading, require_file
from bifactor.errors import FileError, InputError
from bifactor.executors.executor import bytes_of
from bifactor.kernels.entry_layout import tiling
from bifactor.running import files
from bifactor.running.files import discard
from bifactor.running.progress import choice_bar
from bifactor.validation import require_flag

LEAST_BUDGET = 64 << 20
"""Least memory in bytes."""

SHARE = 160
"""Bytes of memory for each observation of a block. Two decoded blocks, of at most 24 bytes and their encoded form, and
the work on one of them take less than half of it."""

FEWEST, SMALL = 8, 1 << 17
"""Fewest blocks, for data with this many observations for each of them."""


@dataclass(frozen=True, eq=False)
class BlockPlan:
    """Blocks with about equally many observations: ranges of the longer side."""

    cuts: Array
    """The starts of blocks, and the end of the last one."""
    sizes: Array
    """Observations of each block."""
    n_inner: int

    @classmethod
    def of(cls, outer: Array, n_inner: int, memory: int) -> "BlockPlan":
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


# A folder in which a block store is written, by one process at a time; an interrupted one can be continued.

JOURNAL, LOCK = "journal.json", ".lock"

BEGUN, NAMED, SORTED = range(3)
"""Stages: nothing is finished; names and counts are written; observations are in the buckets of their blocks."""

OURS = re.compile(r"block-\d{5,}\.bin|bucket-\d{5,}\.tmp|\.(block|manifest|journal|names|marginals).*\.tmp")


class Workplace:
    """The folder, with a journal of the work so far."""

    def __init__(self, folder: Path, request: dict[str, Any], resumable: bool):
        self.folder, self.request = folder, request
        self.id, self.stage = uuid4().hex, BEGUN
        self.facts: dict[str, Any] = {}
        found = self._journal() if resumable else None
        if found is not None:
            self.id, self.stage, self.facts = found
        else:
            self.clear()
            self.note(BEGUN, {})

    def _journal(self) -> tuple[str, int, dict[str, Any]] | None:
        """The work that an earlier process has done for the same request."""
        try:
            content = read_checked(self.folder / JOURNAL)
            if content.get("request") != self.request or content.get("stage") not in (NAMED, SORTED):
                return None
            found = parse_manifest({**content["facts"], "blocks": []})
        except (FileError, ValueError, TypeError, KeyError):
            return None
        return (found.id, content["stage"], content["facts"]) if found.id == content["id"] else None

    def note(self, stage: int, facts: dict[str, Any]) -> None:
        """Record the stage."""
        self.stage, self.facts = stage, facts
        content = {"bifactor": "partition", "request": self.request, "id": self.id, "stage": stage, "facts": facts}
        files.write_atomically(self.folder / JOURNAL, with_checksum(content))

    def bucket(self, number: int) -> Path:
        return self.folder / f"bucket-{number:05d}.tmp"

    def empty_buckets(self) -> None:
        for path in self.folder.glob("bucket-*.tmp"):
            path.unlink(missing_ok=True)

    def clear(self) -> None:
        """Delete the files of a store, the manifest first, so that half a store does not look complete."""
        for name in (MANIFEST, JOURNAL, NAMES, MARGINALS):
            (self.folder / name).unlink(missing_ok=True)
        for path in list(self.folder.iterdir()):
            if OURS.fullmatch(path.name):
                discard(path)

    def finish(self) -> None:
        """Delete all files but those of the store."""
        self.empty_buckets()
        (self.folder / JOURNAL).unlink(missing_ok=True)


def require_room(folder: Path, force: bool) -> None:
    """Raise `InputError` if a folder holds files that must not be replaced."""
    if not folder.exists():
        if not folder.parent.is_dir():
            raise InputError(f"{folder} is in a folder that does not exist. Create it first.")
        return
    if not folder.is_dir():
        raise InputError(f"{folder} is a file. Pass the name of a folder.")
    for path in (folder / MANIFEST, folder / JOURNAL):
        if path.is_file() and not _is_signed(path):
            raise InputError(f"{path} does not belong to a block store. Choose another folder, or delete this file.")
    if force or (folder / JOURNAL).is_file():
        return
    if (folder / MANIFEST).is_file():
        raise InputError(f"{folder} holds a block store. Pass force (--force) to replace it, or choose another folder.")
    if any(path.name != LOCK for path in folder.iterdir()):
        raise InputError(f"{folder} holds other files. Choose another folder, or pass force (--force) to use it.")


def _is_signed(path: Path) -> bool:
    """Whether a file, perhaps damaged, was written by `with_checksum`."""
    with reading(path), open(path, "rb") as file:
        return re.match(rb'\s*(\{\s*("content"|$)|$)', file.read(64)) is not None


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Make the folder and lock it; raise if another process holds the lock, which ends with that process."""
    try:
        folder.mkdir(exist_ok=True)
        file = open(folder / LOCK, "a")  # noqa: SIM115
    except OSError as error:
        raise FileError(f"Cannot write to {folder}: {error.strerror}. Choose another folder.") from None
    with file:
        try:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not os.path.samestat(os.fstat(file.fileno()), os.stat(folder / LOCK)):
                raise BlockingIOError  # the file was replaced after it was opened
        except ImportError:  # Windows
            pass
        except OSError:
            raise FileError(f"Another process is writing a block store to {folder}. Wait for it, or end it.") from None
        try:
            yield
        finally:
            with suppress(OSError):
                os.unlink(folder / LOCK)


ProgressCallback = Callable[[str, int, int], None]
"""Called with the current stage, the work done so far, and the total."""


def partition(
    source: Any,
    folder: str | os.PathLike[str],
    memory: str | int = "2GB",
    *,
    row: str | None = None,
    col: str | None = None,
    value: str | bool | None = None,
    weight: str | None = None,
    force: bool = False,
    progress: bool | ProgressCallback = False,
    dtype: Any = None,
    text_names: bool = False,
) -> BlockStore:
    """Write observations to a folder in blocks, for data larger than memory.

    The longer side of the matrix is divided into ranges with about equally many observations. Names of rows and columns
    are numbered as in `data.read`. The source is read twice, in pieces. After an interruption, call this again with
    the same source, files and settings to continue.

    Parameters
    ----------
    source : path, list of paths, data frame, Observations or tuple of arrays
        Parquet files: one, a folder of them, a pattern such as ``"ratings/*.parquet"``, or an address that pyarrow or
        fsspec can read. Text as in `data.read`: one file, a pattern or a list. These are read in pieces. npz,
        MatrixMarket, JSON lines, wide tables and frames are held in memory. ``(rows, cols, values)``, or with weights
        as a fourth array: rows and columns are integers from 0 and are not renumbered; arrays may be memory-mapped.
    folder : path
        Created if it does not exist.
    memory : str or int
        Most memory for this call, and for a fit that streams the blocks: "2GB", "512MiB" or a number of bytes. It
        determines the size of blocks. Names may take at most a quarter of it on each side.
    row, col, value, weight : str, optional
        Columns, by name or by number from 1. Lines without a value, or of weight 0, are left out. Pass
        ``value=False`` for pairs without values, which all count as 1.
    force : bool
        Replace a block store, or use a folder with other files, which are kept.
    progress : bool or callable (what, done, total)
    dtype : float32 or float64, optional
        Type of values when they are loaded. By default float32, unless that would round some value by more than a
        millionth of their range, or values are very large or small.
    text_names : bool
        Keep names as text, even if all of them are numbers; see `data.read`.

    Returns
    -------
    BlockStore

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import bifactor as bf
    >>> rows, cols, values = np.array([2, 0, 1]), np.array([0, 1, 1]), np.array([4.0, 5.0, 3.0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = bf.data.partition((rows, cols, values), folder)
    ...     layout, y, weights = store.parts[0].load()
    >>> store.shape, store.size
    ((3, 2), 3)
    >>> y.tolist()
    [5.0, 3.0, 4.0]
    """
    budget, place = bytes_of(memory, LEAST_BUDGET), Path(os.path.abspath(folder))
    wanted = dtype_name(dtype)
    asked = ReadOptions(
        row, col, None if isinstance(value, bool) else value, weight, values=value is not False, text_names=text_names
    )
    require_flag(text_names, "text_names")
    files = identify_source(source)
    request = {
        "files": files,
        "columns": [row, col, value, weight],
        "memory": budget,
        "dtype": wanted,
        "text_names": text_names,
    }
    if not force and _is_done(place, request):
        return BlockStore.open(place)
    require_room(place, force)
    data = open_source(source, asked)
    data.limit(budget)
    with choice_bar(progress is True) as bar, locked(place):
        told = progress if callable(progress) else bar or (lambda what, done, total: None)
        if not force and _is_done(place, request):  # by another process, while this one opened its source
            return BlockStore.open(place)
        require_room(place, force)
        if force and (place / MANIFEST).is_file():
            (place / MANIFEST).unlink()
        work = Workplace(place, request, resumable=files is not None)
        _Partition(data, work, budget, told, source).run()
    return BlockStore.open(place)


def _is_done(folder: Path, request: dict[str, Any]) -> bool:
    """Whether the folder holds the finished store of the same files and settings."""
    if request["files"] is None or not (folder / MANIFEST).is_file():
        return False
    return read_manifest(folder).request == request


class _Partition:
    """The three passes over the data."""

    def __init__(self, data: Source, work: Workplace, budget: int, told: ProgressCallback, source: Any):
        self.data, self.work, self.budget, self.told, self.source = data, work, budget, told, source

    def run(self) -> None:
        if self.work.stage < NAMED:
            self._name()
        facts = parse_manifest({**self.work.facts, "blocks": []})
        marginals = read_marginals(self.work.folder, facts)
        plan = BlockPlan.of(marginals[1 if facts.flipped else 0], min(facts.shape), self.budget)
        if self.work.stage < SORTED:
            self._sort(facts, plan)
        self._encode(facts, plan)

    def _name(self) -> None:
        """The first pass: names, numbers of observations, and statistics of the values."""
        known_names = self.data.names is not None
        sides = [NameCounter(what, self.budget // 4) for what in ("row", "column")]
        counts = [np.zeros(size, np.int64) for size in self.data.shape]
        tally, missing = ValueTally(), 0
        for piece in self.data.pieces(lambda side: sides[side].text):
            known = known_part(piece)
            missing += piece.lost + known.size - int(np.count_nonzero(known))
            for k, columns in enumerate((piece.rows, piece.cols)):
                at = 0
                for column in columns:
                    size = len(column.inverse) if isinstance(column, tuple) else column.size
                    if known_names:
                        counts[k] += np.bincount(column[known[at : at + size]], minlength=counts[k].size)
                    else:
                        sides[k].add(column, known[at : at + size])
                    at += size
            tally.add(piece.values, known)
            self.told("counting", piece.done, self.data.total)
        if not tally.size:
            raise FileError(f"{_spoken(self.source)} holds no entry with a value. Pass at least one.")
        done = [side.done() for side in sides] if not known_names else []
        names = (done[0][0], done[1][0]) if done else self.data.names
        if done and self.work.request["text_names"]:
            names = (done[0][0].as_text(), done[1][0].as_text())
        assert names is not None
        self._note_names(names, (done[0][1], done[1][1]) if done else (counts[0], counts[1]), tally, missing)

    def _note_names(
        self,
        names: tuple[Names | None, Names | None],
        counts: tuple[Array, Array],
        tally: ValueTally,
        missing: int,
    ) -> None:
        write_sides(self.work.folder, self.work.id, names, counts)
        shape = int(counts[0].size), int(counts[1].size)
        manifest = Manifest(
            id=self.work.id,
            shape=shape,
            flipped=shape[0] < shape[1],
            dtype=self.work.request["dtype"] or precision(tally.about),
            weighted=self.data.weighted,
            named=names[0] is not None,
            values=_values_of(tally),
            origin=with_missing_count(self.data.origin, missing),
            blocks=(),
            request=self.work.request,
        )
        self.work.note(NAMED, asdict(manifest))

    def _sort(self, facts: Manifest, plan: BlockPlan) -> None:
        """The second pass: put each observation into the bucket of its block."""
        self.work.empty_buckets()
        locators = self._locators(facts)
        codes = None if facts.values.levels is None else np.array([value for value, _ in facts.values.levels])
        sizes = np.zeros(plan.count, np.int64)
        written = 0
        for piece in self.data.pieces(lambda side: bool(locators) and locators[side].names.values.dtype.kind == "O"):
            known = known_part(piece)
            places = [
                np.concatenate([locators[k].places(column) if locators else column for column in columns])
                for k, columns in enumerate((piece.rows, piece.cols))
            ]
            outer, inner = (side[known] for side in (places[::-1] if facts.flipped else places))
            if outer.size and min(outer.min(), inner.min()) < 0:
                raise changed_data_error(_spoken(self.source))
            values = _coded(piece.values[known], codes, facts.dtype)
            weights = None if piece.weights is None else piece.weights[known].astype(facts.dtype)
            census = kernels.get("data.store.census", HOST_ARRAY, outer.size)
            starts, order, keys = census.scatter(outer, inner, plan.owner, plan.table, plan.count)
            numbers = [values[order], *([] if weights is None else [weights[order]])]
            self._append(starts, [keys, *numbers])
            sizes += np.diff(starts)
            written += outer.size
            self.told("sorting into blocks", written, facts.values.size)
        if not np.array_equal(sizes, plan.sizes) or identify_source(self.source) != self.work.request["files"]:
            raise changed_data_error(_spoken(self.source))
        self.work.note(SORTED, self.work.facts)

    def _locators(self, facts: Manifest) -> list[Locator]:
        if self.data.names is not None:
            return []
        names = read_names(self.work.folder, self.work.id, facts.shape)
        return [Locator(side, self.budget // 4) for side in names]

    def _append(self, starts: Array, columns: list[Array]) -> None:
        """Write a segment to each bucket: the number of observations, and their columns."""
        try:
            for block in np.flatnonzero(np.diff(starts)).tolist():
                part = slice(int(starts[block]), int(starts[block + 1]))
                count = np.array([part.stop - part.start], np.int64)
                with open(self.work.bucket(block), "ab", buffering=0) as file:
                    for column in (count, *columns):
                        _write_all(file, column if column is count else column[part])
        except OSError as error:
            self.work.empty_buckets()
            raise FileError(
                f"Cannot write to {self.work.folder}: {error.strerror}. Free some space there and start again."
            ) from None

    def _encode(self, facts: Manifest, plan: BlockPlan) -> None:
        """The third pass: write the blocks."""
        headers, done = [], 0
        for block in range(plan.count):
            header = finished_header(self.work, facts, plan, block)
            headers.append(header or write_block(self.work, facts, plan, block))
            self.work.bucket(block).unlink(missing_ok=True)
            done += int(plan.sizes[block])
            self.told("writing blocks", done, facts.values.size)
        write_manifest(self.work.folder, Manifest(**{**vars(facts), "blocks": tuple(headers)}))
        self.work.finish()


def _values_of(tally: ValueTally) -> Values:
    found, levels = tally.summary(), tally.levels
    listed = None if levels is None else tuple(sorted(levels.items()))
    sums = found.total, float(tally.about[SQUARES])
    return Values(found.size, *sums, found.least, found.largest, found.whole, listed)


def _write_all(file: Any, column: Array) -> None:
    view = column.data.cast("B")
    while view.nbytes:
        view = view[file.write(view) :]


def _coded(values: Array, codes: Array | None, dtype: str) -> Array:
    """Values as they are stored."""
    if codes is None:
        return values.astype(dtype)
    return np.searchsorted(codes, values.astype(np.float64)).astype(np.uint8)


def _spoken(source: Any) -> str:
    """The name of a source in messages."""
    if isinstance(source, (str, os.PathLike)):
        return os.fspath(source)
    return "The source"


def finished_header(work: Workplace, facts: Manifest, plan: BlockPlan, block: int) -> Header | None:
    """The header of a block that an earlier process has written; files get their name when they are complete."""
    path = work.folder / block_name(block)
    try:
        with open(path, "rb") as file:
            header = parse_header(file.read(HEADER))
        size = os.path.getsize(path)
    except OSError:
        return None
    if header is None or header.store != facts.id or size != header.bytes:
        return None
    told = (int(plan.cuts[block]), int(plan.cuts[block + 1]), int(plan.sizes[block]))
    return header if (header.start, header.stop, header.size) == told else None


def write_block(work: Workplace, facts: Manifest, plan: BlockPlan, block: int) -> Header:
    """Sort the observations of a bucket and write them."""
    size, rows = int(plan.sizes[block]), int(plan.cuts[block + 1] - plan.cuts[block])
    kind = CODES if facts.values.levels is not None else TYPES.index(np.dtype(facts.dtype).str)
    weighed = TYPES.index(np.dtype(facts.dtype).str) if facts.weighted else 0
    keys, values, weights = _bucket(work.bucket(block), size, TYPES[kind], TYPES[weighed] if weighed else None)
    n_tiles, width = plan.tiles(block)
    shift = plan.shift(block)
    if int(keys.max()) >> shift >= n_tiles * rows:
        raise _lost(work.bucket(block))
    codec = kernels.get("data.store.codec", HOST_ARRAY, size)
    order, keys = codec.order(keys, (n_tiles * rows - 1).bit_length() + shift)
    columns = np.empty(size, TYPES[smallest_type(width - 1)])
    runs = codec.runs(keys, shift, n_tiles * rows, columns)
    marginals = _marginals(columns, runs, (n_tiles, width, plan.n_inner))
    del keys
    types = {"runs": smallest_type(int(runs.max())), "marginals": smallest_type(int(marginals.max()))}
    content = {"values": values[order]}
    if weights is not None:
        content["weights"] = weights[order]
    content |= {"columns": columns, "runs": runs.astype(TYPES[types["runs"]])}
    content["marginals"] = marginals.astype(TYPES[types["marginals"]])
    header = Header(
        facts.id,
        int(plan.cuts[block]),
        int(plan.cuts[block + 1]),
        size,
        plan.n_inner,
        n_tiles,
        width,
        kind,
        weighed,
        smallest_type(width - 1),
        **types,
        fingerprint="0" * 32,
    )
    parts = encode_columns(content)
    header = header._replace(fingerprint=digest(header, parts))
    files.write_atomically(work.folder / block_name(block), header.pack(), *parts)
    return header


def _marginals(columns: Array, runs: Array, sizes: tuple[int, int, int]) -> Array:
    """The number of entries of each column, tile by tile."""
    n_tiles, width, n_inner = sizes
    ends = np.cumsum(runs.reshape(n_tiles, -1).sum(axis=1))
    found = np.zeros((n_tiles, width), np.int64)
    start = 0
    for tile, end in enumerate(ends.tolist()):
        found[tile] = np.bincount(columns[start:end], minlength=width)
        start = end
    return found.ravel()[:n_inner]


def _bucket(path: Path, size: int, kind: str, weighed: str | None) -> tuple[Array, Array, Array | None]:
    """All segments of a bucket, concatenated."""
    keys, values = np.empty(size, np.uint64), np.empty(size, kind)
    weights = None if weighed is None else np.empty(size, weighed)
    at = 0
    with reading(path), open(path, "rb") as file:
        while head := file.read(8):
            count = int.from_bytes(head, "little")
            if at + count > size:
                break
            for column in (keys, values, weights):
                if column is not None:
                    part = column[at : at + count].data.cast("B")
                    if file.readinto(part) != part.nbytes:
                        raise _lost(path)
            at += count
    if at != size:
        raise _lost(path)
    return keys, values, weights


def _lost(path: Path) -> FileError:
    return FileError(f"{path} is truncated or has changed. Delete its folder and start again.")


def identify_source(source: Any) -> list[list[Any]] | None:
    """The names, sizes and times of the files of a source; None for data in memory."""
    return identity(list_files(source)) if _is_named(source) else None


def open_source(source: Any, asked: ReadOptions) -> Source:
    """A source of observations; raise `InputError` or `FileError` if it is not valid."""
    if isinstance(source, Observations):
        return MemorySource((source.with_text_names() if asked.text_names else source).weighed())
    if isinstance(source, tuple) and not _is_named(source):
        return Triples(source)
    if not _is_named(source):
        return MemorySource(_read(source, asked))
    names = list_files(source)
    if any("://" in name or is_parquet(name) for name in names):
        if not all(is_parquet(name) or "://" in name for name in names):
            raise InputError("Some of the files are parquet and some are not. Pass files of one kind.")
        for name in names:
            if "://" not in name:
                require_file(Path(name))
        found = Parquet(places(names), asked)
        return MemorySource(_read(names[0], asked)) if found.wide else found
    for name in names:
        require_file(Path(name))
    whole = tuple(end for end in (*KINDS, *OTHERS))
    if any(name.lower().removesuffix(".gz").endswith(whole) for name in names):
        if len(names) > 1:
            raise InputError(f"Only one file of the kind of {names[0]} is read. Pass one, or parquet or text files.")
        return MemorySource(_read(names[0], asked))
    if len(names) == 1 and infer_layout(head(Path(names[0])), asked, Path(names[0])).wide:
        return MemorySource(_read(names[0], asked))
    return Delimited([Path(name) for name in names], asked)


def _is_named(source: Any) -> bool:
    """Whether the source is files."""
    if isinstance(source, tuple):
        return bool(source) and all(isinstance(part, (str, os.PathLike)) for part in source)
    return isinstance(source, (str, os.PathLike, list))


def _read(source: Any, asked: ReadOptions) -> Observations:
    names = ("row", "col", "value", "weight", "values", "text_names")
    return read(source, **{name: getattr(asked, name) for name in names})
