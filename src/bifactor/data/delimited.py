"""Long and wide tables in text files: csv, tsv and similar, LIBMF triples, MatrixMarket."""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bifactor.arrays import Array
from bifactor.data.layout import MAX_SHOWN_LENGTH, FileLayout, ReadOptions, infer_layout
from bifactor.data.names import Names, integer_or_name
from bifactor.data.observations import Observations, Origin, observations_from_names
from bifactor.data.text import SPACES, Progress, RecordBlock, decimals, head, integers, line_blocks, records
from bifactor.errors import FileError, InputError

WIDE = 1 << 23
"""Characters of names that are compared at a time."""

SPARE = 1 << 20
"""Integers are looked up in a table if their range is below four times their number plus this."""


class Words(NamedTuple):
    """A column of text: distinct words, and the index of each name among them."""

    distinct: list[str]
    inverse: Array


def names_in(block: RecordBlock, column: int, what: str, path: Path, text: bool) -> list[Array | Words]:
    """The names in a column of fields; integers if all of them are, in their shortest form, and `text` is False."""
    starts, ends = block.starts[:, column], block.ends[:, column]
    empty = starts == ends
    if empty.any():
        line = block.lines[int(np.argmax(empty))]
        raise FileError(f"Line {line} of {path}: the {what} has no name. Fill it in, or drop the line.")
    if not text:
        values, good = integers(block.text, starts, ends)
        if good.all():
            return [values]
    return _words(block, starts, ends, path)


def _words(block: RecordBlock, starts: Array, ends: Array, path: Path) -> list[Array | Words]:
    width = int(np.max(ends - starts))
    half = starts.size // 2
    if half and starts.size * width > WIDE:  # one long name must not widen the array for all of them
        found = []
        for part in (slice(None, half), slice(half, None)):
            some = RecordBlock(block.text, block.starts, block.ends, block.lines[part])
            found += _words(some, starts[part], ends[part], path)
        return found
    steps = np.arange(width)
    inside = steps < (ends - starts)[:, None]
    letters = np.where(inside, block.text[np.minimum(starts[:, None] + steps, block.text.size - 1)], 0)
    words = np.ascontiguousarray(letters.astype(np.uint8)).view(f"S{width}").ravel()
    distinct, first, inverse = np.unique(words, return_index=True, return_inverse=True)
    came = np.argsort(first, kind="stable")
    place = np.empty_like(came)
    place[came] = np.arange(came.size)
    return [Words([_decoded(distinct[k], block.lines[first[k]], path) for k in came], place[inverse])]


def _decoded(word: bytes, line: int, path: Path) -> str:
    try:
        return bytes(word).decode("utf-8")
    except UnicodeDecodeError:
        raise FileError(f"Line {line} of {path} is not UTF-8. Convert the file to UTF-8.") from None


class Collector:
    """Collects the names of one side.

    Names that are all integers in their shortest form are kept as integers, and sorted in the end. If there is any
    other name, all are text, in their original order.
    """

    def __init__(self, what: str, path: Path):
        self.what, self.path = what, path
        self._parts: list[Array] = []
        self._order: dict[str, int] | None = None

    def add(self, block: RecordBlock, column: int) -> None:
        """Add a column of fields."""
        for names in names_in(block, column, self.what, self.path, text=self._order is not None):
            if not isinstance(names, Words):
                self._parts.append(_compact(names))
                continue
            if self._order is None:
                self._become_text()
            assert self._order is not None
            order = self._order
            places = np.array([order.setdefault(word, len(order)) for word in names.distinct], np.int32)
            self._parts.append(places[names.inverse])

    def _become_text(self) -> None:
        labels, places = _numbered(self._parts)
        self._order = {str(name): k for k, name in enumerate(labels.values.tolist())}
        self._parts = [places]

    def done(self) -> tuple[Names, Array]:
        """The distinct names, and the index of each name that was added."""
        if self._order is None:
            return _numbered(self._parts)
        names = np.empty(len(self._order), object)
        names[:] = list(self._order)
        return Names(names), np.concatenate(self._parts)


def _compact(values: Array) -> Array:
    info = np.iinfo(np.int32)
    fits = values.size == 0 or (values.min() >= info.min and values.max() <= info.max)
    return values.astype(np.int32 if fits else np.int64)


def _numbered(parts: list[Array]) -> tuple[Names, Array]:
    """The distinct integers, sorted, and the index of each."""
    values = np.concatenate(parts) if parts else np.empty(0, np.int64)
    parts.clear()  # frees memory: the data are not held twice
    if values.size == 0:
        return Names(np.empty(0, np.int64)), np.empty(0, np.int32)
    low, high = int(values.min()), int(values.max())
    if high - low >= 4 * values.size + SPARE:
        distinct, inverse = np.unique(values, return_inverse=True)
        return Names(distinct.astype(np.int64)), inverse.astype(np.int32)
    present = np.zeros(high - low + 1, bool)
    present[values - low] = True
    place = np.cumsum(present, dtype=np.int32) - 1
    return Names(np.flatnonzero(present) + low), place[values - low].astype(np.int32)


_SPOKEN = {"\t": "tab", ",": "comma", ";": "semicolon", "|": "bar", SPACES: "spaces"}


SIZE = re.compile(r"\d{1,18}", re.ASCII)
"""The size of one side of a matrix."""

FIELDS = ("real", "integer", "pattern")
"""Kinds of values of a MatrixMarket file; a pattern has none."""

LARGEST_INDEX = 1 << 53
"""Every integer up to this is exact in double precision."""


def read_delimited(path: Path, asked: ReadOptions, progress: Progress) -> Observations:
    """Read a text file with one record per line."""
    layout = infer_layout(head(path), asked, path)
    skip = 0 if layout.header is None else 1
    blocks = records(line_blocks(path, progress), layout.delimiter, layout.width, path, skip)
    return _wide(layout, blocks, path) if layout.wide else _long(layout, blocks, path)


def _long(layout: FileLayout, blocks: Iterator[RecordBlock], path: Path) -> Observations:
    names = Collector("row", path), Collector("column", path)
    values, weights = [np.empty(0)], [np.empty(0)]
    row, col, value = (*layout.places, None)[:3]
    assert row is not None
    assert col is not None
    for block in blocks:
        names[0].add(block, row)
        names[1].add(block, col)
        if value is not None:
            values.append(decimals(block, value, path, "value", layout.point))
        if layout.weight is not None:
            weights.append(decimals(block, layout.weight, path, "weight", layout.point))
    w = None if layout.weight is None else np.concatenate(weights)
    return (
        observations_from_names(names[0].done(), names[1].done(), np.concatenate(values), long_origin(layout), w)
        .known()
        .weighed()
    )


def long_origin(layout: FileLayout) -> Origin:
    """Where the entries of a long table come from."""
    header = tuple(layout.name(k) for k in layout.places if k is not None)
    sides = zip(("rows", "columns", "values"), header, strict=False)
    spoken = ", ".join(f"{side} in {_called(name, layout)}" for side, name in sides)
    return Origin(f"a long table ({_delimiter(layout)}): {spoken}, {layout.reason}", header)


def _wide(layout: FileLayout, blocks: Iterator[RecordBlock], path: Path) -> Observations:
    names = Collector("row", path)
    place = layout.places[0]
    i, j, values, count, cells = [], [], [np.empty(0)], 0, 0
    for block in blocks:
        if place is not None:
            names.add(block, place)
        for k, column in enumerate(layout.numeric):
            numbers = decimals(
                block, column, path, f"entry of {_called(layout.name(column), layout)[:MAX_SHOWN_LENGTH]}", layout.point
            )
            seen = np.flatnonzero(~np.isnan(numbers))
            i.append((seen + count).astype(np.int32))
            j.append(np.full(seen.size, k, np.int32))
            values.append(numbers[seen])
            cells += numbers.size
        count += block.lines.size
    rows, places = names.done() if place is not None else (Names.numbered(count, 1), np.arange(count))
    cols = column_names([layout.name(k) for k in layout.numeric], path)
    text = f"a wide table ({_delimiter(layout)}; {layout.reason}): {_wide_names(layout)}"
    known = np.concatenate(values)
    at = places[np.concatenate(i)] if i else np.empty(0, np.int32)
    along = np.concatenate(j) if j else np.empty(0, np.int32)
    header = ("row" if place is None else layout.name(place), "column", "value")
    return observations_from_names(
        (rows, at), (cols, along), known, Origin(text, header, cells - known.size, wide=True)
    )


def column_names(names: list[str], path: Path | str) -> Names:
    """Names of the columns of a wide table; integers if all of them are."""
    if len(set(names)) < len(names):
        twice = Counter(names).most_common(1)[0][0]
        raise FileError(f"{path} has two columns called {twice[:MAX_SHOWN_LENGTH]!r}. Rename one.")
    whole = [integer_or_name(name) for name in names]
    if all(isinstance(name, int) for name in whole):
        return Names(np.array(whole, np.int64))
    distinct = np.empty(len(names), object)
    distinct[:] = names
    return Names(distinct)


def _wide_names(layout: FileLayout) -> str:
    place = layout.places[0]
    rows = "rows are numbered" if place is None else f"row names in {_called(layout.name(place), layout)}"
    kept = {*layout.numeric, place}
    left_out = [layout.name(k) for k in range(layout.width) if k not in kept]
    return rows + (f", without columns of text: {', '.join(left_out[:5])}" if left_out else "")


def _called(name: str, layout: FileLayout) -> str:
    return name if layout.header is not None else f"column {name}"


def _delimiter(layout: FileLayout) -> str:
    return f"{_SPOKEN.get(layout.delimiter, layout.delimiter)}, {'a' if layout.header is not None else 'no'} header"


def read_market(path: Path, asked: ReadOptions, progress: Progress) -> Observations:
    """Read MatrixMarket's coordinate format; names of rows and columns are numbers from 1, as in the file."""
    if asked.weight is not None:
        raise InputError(f"{path} is a MatrixMarket file, which holds no weights. Leave out weight.")
    lines = head(path)
    words = lines[0].lower().split()
    if len(words) != 5 or words[:2] != ["%%matrixmarket", "matrix"]:
        raise FileError(f"{path} does not begin with %%MatrixMarket matrix. Pass a MatrixMarket file.")
    kind, field, symmetry = words[2:]
    if kind != "coordinate" or field not in FIELDS or symmetry not in ("general", "symmetric"):
        raise FileError(
            f"{path} is {' '.join(words[2:])[:80]}; supported are coordinate, {', '.join(FIELDS)}, general or "
            "symmetric. Save it as such, or as npz."
        )
    if field == "pattern" and asked.values:
        raise InputError(
            f"{path} is a pattern, without values. Use bifactor.Recommender, or --implicit on the command line."
        )
    before = next((k for k, line in enumerate(lines) if line.strip() and not line.startswith("%")), None)
    sizes = lines[before].split() if before is not None else []
    if before is None or len(sizes) != 3 or not all(SIZE.fullmatch(word) for word in sizes):
        raise FileError(f"{path} has no line with the three sizes of the matrix. Download or save it again.")
    m, n, count = map(int, sizes)
    text = _without_lines(line_blocks(path, progress), before + 1)
    width = 2 if field == "pattern" else 3
    i, j, values = _entries(records(text, SPACES, width, path, first_line=before + 2), (m, n), path)
    if i.size != count:
        raise FileError(f"{path} has {i.size} entries, but its header says {count}. Download or save it again.")
    if symmetry == "symmetric":
        off = i != j
        i, j, values = np.concatenate([i, j[off]]), np.concatenate([j, i[off]]), np.concatenate([values, values[off]])
    origin = Origin(f"MatrixMarket, {m}×{n}, {symmetry}, numbered from 1")
    return observations_from_names(Names.of(i, "row"), Names.of(j, "column"), values, origin).known()


def _entries(blocks: Iterator[RecordBlock], shape: tuple[int, int], path: Path) -> tuple[Array, Array, Array]:
    parts: list[list[Array]] = [[np.empty(0, np.int64)], [np.empty(0, np.int64)], [np.empty(0)]]
    for block in blocks:
        for side, (what, size) in enumerate(zip(("row", "column"), shape, strict=True)):
            numbers = decimals(block, side, path, what)
            if not np.all(numbers == np.floor(numbers)):
                raise FileError(f"{path} has a {what} that is not an integer. Download or save it again.")
            if np.any((numbers < 1) | (numbers > min(size, LARGEST_INDEX))):
                raise FileError(
                    f"{path} has an entry outside its {shape[0]}×{shape[1]} matrix. Download or save it again."
                )
            parts[side].append(numbers.astype(np.int64))
        # All entries of a pattern count as 1.
        some = block.starts.shape[1] > 2
        parts[2].append(decimals(block, 2, path, "value") if some else np.ones(block.lines.size))
    i, j, values = (np.concatenate(part) for part in parts)
    return i, j, values


def _without_lines(blocks: Iterator[bytes], count: int) -> Iterator[bytes]:
    """Drop the first `count` lines."""
    for block in blocks:
        while count and block:
            block = block[block.find(b"\n") + 1 :]
            count -= 1
        if block:
            yield block
