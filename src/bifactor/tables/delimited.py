"""Long and wide tables in text files: csv, tsv and similar, LIBMF triples, MatrixMarket."""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from bifactor.arrays import Array
from bifactor.errors import FileError, InputError
from bifactor.tables.collector import Collector
from bifactor.tables.fields import SPACES, Block, records
from bifactor.tables.layout import SHOWN, Asked, Layout, sniffed
from bifactor.tables.names import Names, integer_or_name
from bifactor.tables.numbers import decimals
from bifactor.tables.observations import Observations, Origin, named
from bifactor.tables.source import Progress, head, line_blocks

_SPOKEN = {"\t": "tab", ",": "comma", ";": "semicolon", "|": "bar", SPACES: "spaces"}


SIZE = re.compile(r"\d{1,18}", re.ASCII)
"""The size of one side of a matrix."""

FIELDS = ("real", "integer", "pattern")
"""Kinds of values of a MatrixMarket file; a pattern has none."""

LARGEST_INDEX = 1 << 53
"""Every integer up to this is exact in double precision."""


def read_delimited(path: Path, asked: Asked, progress: Progress) -> Observations:
    """Read a text file with one record per line."""
    layout = sniffed(head(path), asked, path)
    skip = 0 if layout.header is None else 1
    blocks = records(line_blocks(path, progress), layout.delimiter, layout.width, path, skip)
    return _wide(layout, blocks, path) if layout.wide else _long(layout, blocks, path)


def _long(layout: Layout, blocks: Iterator[Block], path: Path) -> Observations:
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
    return named(names[0].done(), names[1].done(), np.concatenate(values), long_origin(layout), w).known().weighed()


def long_origin(layout: Layout) -> Origin:
    """Where the entries of a long table come from."""
    header = tuple(layout.name(k) for k in layout.places if k is not None)
    sides = zip(("rows", "columns", "values"), header, strict=False)
    spoken = ", ".join(f"{side} in {_called(name, layout)}" for side, name in sides)
    return Origin(f"a long table ({_delimiter(layout)}): {spoken}, {layout.reason}", header)


def _wide(layout: Layout, blocks: Iterator[Block], path: Path) -> Observations:
    names = Collector("row", path)
    place = layout.places[0]
    i, j, values, count, cells = [], [], [np.empty(0)], 0, 0
    for block in blocks:
        if place is not None:
            names.add(block, place)
        for k, column in enumerate(layout.numeric):
            numbers = decimals(
                block, column, path, f"entry of {_called(layout.name(column), layout)[:SHOWN]}", layout.point
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
    return named((rows, at), (cols, along), known, Origin(text, header, cells - known.size, wide=True))


def column_names(names: list[str], path: Path | str) -> Names:
    """Names of the columns of a wide table; integers if all of them are."""
    if len(set(names)) < len(names):
        twice = Counter(names).most_common(1)[0][0]
        raise FileError(f"{path} has two columns called {twice[:SHOWN]!r}. Rename one.")
    whole = [integer_or_name(name) for name in names]
    if all(isinstance(name, int) for name in whole):
        return Names(np.array(whole, np.int64))
    distinct = np.empty(len(names), object)
    distinct[:] = names
    return Names(distinct)


def _wide_names(layout: Layout) -> str:
    place = layout.places[0]
    rows = "rows are numbered" if place is None else f"row names in {_called(layout.name(place), layout)}"
    kept = {*layout.numeric, place}
    left_out = [layout.name(k) for k in range(layout.width) if k not in kept]
    return rows + (f", without columns of text: {', '.join(left_out[:5])}" if left_out else "")


def _called(name: str, layout: Layout) -> str:
    return name if layout.header is not None else f"column {name}"


def _delimiter(layout: Layout) -> str:
    return f"{_SPOKEN.get(layout.delimiter, layout.delimiter)}, {'a' if layout.header is not None else 'no'} header"


def read_market(path: Path, asked: Asked, progress: Progress) -> Observations:
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
    return named(Names.of(i, "row"), Names.of(j, "column"), values, origin).known()


def _entries(blocks: Iterator[Block], shape: tuple[int, int], path: Path) -> tuple[Array, Array, Array]:
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
