"""Writes a block store in three passes: names and counts, buckets of observations, and blocks."""

import os
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from bifactor import kernels
from bifactor.arrays import Array
from bifactor.errors import FileError
from bifactor.executors.executor import bytes_of
from bifactor.kernels.census_reference import SIZE
from bifactor.running.progress import choice_bar
from bifactor.tables.layout import Asked
from bifactor.tables.names import Names
from bifactor.tables.store.block_store import BlockStore, fresh, told_values
from bifactor.tables.store.census import Locator, Side, changed
from bifactor.tables.store.encode import finished, write_block
from bifactor.tables.store.manifest import (
    MANIFEST,
    Manifest,
    read_manifest,
    read_marginals,
    read_names,
    restored,
    write_manifest,
    write_sides,
)
from bifactor.tables.store.opened import identified, opened
from bifactor.tables.store.plan import LEAST_BUDGET, Plan
from bifactor.tables.store.precision import dtype_name, precision
from bifactor.tables.store.sources import Source, known_part, missing_told
from bifactor.tables.store.workplace import NAMED, SORTED, Workplace, locked, require_room
from bifactor.validation import require_flag

Told = Callable[[str, int, int], None]
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
    progress: bool | Told = False,
    dtype: Any = None,
    text_names: bool = False,
) -> BlockStore:
    """Write observations to a folder in blocks, for data larger than memory.

    The longer side of the matrix is divided into ranges with about equally many observations. Names of rows and columns
    are numbered as in `tables.read`. The source is read twice, in pieces. After an interruption, call this again with
    the same source, files and settings to continue.

    Parameters
    ----------
    source : path, list of paths, data frame, Observations or tuple of arrays
        Parquet files: one, a folder of them, a pattern such as ``"ratings/*.parquet"``, or an address that pyarrow or
        fsspec can read. Text as in `tables.read`: one file, a pattern or a list. These are read in pieces. npz,
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
        Keep names as text, even if all of them are numbers; see `tables.read`.

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
    ...     store = bf.tables.partition((rows, cols, values), folder)
    ...     layout, y, weights = store.parts[0].load()
    >>> store.shape, store.size
    ((3, 2), 3)
    >>> y.tolist()
    [5.0, 3.0, 4.0]
    """
    budget, place = bytes_of(memory, LEAST_BUDGET), Path(os.path.abspath(folder))
    wanted = dtype_name(dtype)
    asked = Asked(
        row, col, None if isinstance(value, bool) else value, weight, values=value is not False, text_names=text_names
    )
    require_flag(text_names, "text_names")
    files = identified(source)
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
    data = opened(source, asked)
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

    def __init__(self, data: Source, work: Workplace, budget: int, told: Told, source: Any):
        self.data, self.work, self.budget, self.told, self.source = data, work, budget, told, source

    def run(self) -> None:
        if self.work.stage < NAMED:
            self._name()
        facts = restored({**self.work.facts, "blocks": []})
        marginals = read_marginals(self.work.folder, facts)
        plan = Plan.of(marginals[1 if facts.flipped else 0], min(facts.shape), self.budget)
        if self.work.stage < SORTED:
            self._sort(facts, plan)
        self._encode(facts, plan)

    def _name(self) -> None:
        """The first pass: names, numbers of observations, and statistics of the values."""
        known_names = self.data.names is not None
        sides = [Side(what, self.budget // 4) for what in ("row", "column")]
        counts = [np.zeros(size, np.int64) for size in self.data.shape]
        about, missing = fresh(), 0
        levels: dict[float, int] | None = {}
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
            levels = kernels.find("census", np.float64, known.size).tally(piece.values, known, about, levels)
            self.told("counting", piece.done, self.data.total)
        if not about[SIZE]:
            raise FileError(f"{_spoken(self.source)} holds no entry with a value. Pass at least one.")
        done = [side.done() for side in sides] if not known_names else []
        names = (done[0][0], done[1][0]) if done else self.data.names
        if done and self.work.request["text_names"]:
            names = (done[0][0].as_text(), done[1][0].as_text())
        assert names is not None
        self._note_names(names, (done[0][1], done[1][1]) if done else (counts[0], counts[1]), about, levels, missing)

    def _note_names(
        self,
        names: tuple[Names | None, Names | None],
        counts: tuple[Array, Array],
        about: Array,
        levels: dict[float, int] | None,
        missing: int,
    ) -> None:
        write_sides(self.work.folder, self.work.id, names, counts)
        shape = int(counts[0].size), int(counts[1].size)
        manifest = Manifest(
            id=self.work.id,
            shape=shape,
            flipped=shape[0] < shape[1],
            dtype=self.work.request["dtype"] or precision(about),
            weighted=self.data.weighted,
            named=names[0] is not None,
            values=told_values(about, levels),
            origin=missing_told(self.data.origin, missing),
            blocks=(),
            request=self.work.request,
        )
        self.work.note(NAMED, asdict(manifest))

    def _sort(self, facts: Manifest, plan: Plan) -> None:
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
                raise changed(_spoken(self.source))
            values = _coded(piece.values[known], codes, facts.dtype)
            weights = None if piece.weights is None else piece.weights[known].astype(facts.dtype)
            census = kernels.find("census", np.float64, outer.size)
            starts, order, keys = census.scatter(outer, inner, plan.owner, plan.table, plan.count)
            numbers = [values[order], *([] if weights is None else [weights[order]])]
            self._append(starts, [keys, *numbers])
            sizes += np.diff(starts)
            written += outer.size
            self.told("sorting into blocks", written, facts.values.size)
        if not np.array_equal(sizes, plan.sizes) or identified(self.source) != self.work.request["files"]:
            raise changed(_spoken(self.source))
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

    def _encode(self, facts: Manifest, plan: Plan) -> None:
        """The third pass: write the blocks."""
        headers, done = [], 0
        for block in range(plan.count):
            header = finished(self.work, facts, plan, block)
            headers.append(header or write_block(self.work, facts, plan, block))
            self.work.bucket(block).unlink(missing_ok=True)
            done += int(plan.sizes[block])
            self.told("writing blocks", done, facts.values.size)
        write_manifest(self.work.folder, Manifest(**{**vars(facts), "blocks": tuple(headers)}))
        self.work.finish()


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
