"""Sources of observations, which can be read in pieces and several times."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bifactor.arrays import Array
from bifactor.errors import InputError
from bifactor.tables.collector import Words, names_in
from bifactor.tables.delimited import long_origin
from bifactor.tables.fields import records
from bifactor.tables.layout import Asked, Layout, sniffed
from bifactor.tables.names import Names
from bifactor.tables.numbers import decimals
from bifactor.tables.observations import Observations, Origin
from bifactor.tables.source import head, line_blocks
from bifactor.tables.store.census import Column

PIECE = 1 << 20
"""Most observations of a piece."""

WORK = 1000
"""Bytes of memory for each observation of a piece, which takes a tenth of that."""

Text = Callable[[int], bool]
"""Whether the names of rows (0), or of columns (1), are text."""


class Piece(NamedTuple):
    """Some lines: names of rows and columns, values with NaN for missing ones, weights, and the progress so far."""

    rows: list[Column]
    cols: list[Column]
    values: Array
    weights: Array | None
    lost: int = 0
    """The number of lines without a value and a name."""
    done: int = 0
    """Bytes, or lines, read so far."""


class Source(ABC):
    """Observations in pieces."""

    origin: Origin
    weighted: bool
    total: int
    """Bytes, or lines, in all."""
    lines: bool
    """Whether `total` counts lines."""
    names: tuple[Names | None, Names | None] | None = None
    """If names are known, rows and columns are indices of them; None if they are yet to be collected."""
    shape: tuple[int, int] = (0, 0)
    """The shape, if names are known."""

    piece: int
    """Lines per piece, if it can be chosen."""

    def limit(self, memory: int) -> None:
        """Choose pieces that are small compared with so many bytes of memory."""
        self.piece = min(PIECE, memory // WORK)

    @abstractmethod
    def pieces(self, text: Text) -> Iterator[Piece]:
        """All pieces, in order."""


class Held(Source):
    """Observations in memory."""

    lines = True

    def __init__(self, data: Observations):
        self.data, self.weighted, self.total = data, data.weights is not None, int(data.rows.size)
        self.origin = data.origin or Origin("arrays, numbered from 0")
        self.names, self.shape = (data.row_names, data.column_names), data.shape
        if not self.total:
            raise InputError("There are no observations. Pass at least one.")
        require_real(data.values, "values")
        if not np.all(np.isfinite(data.values)):
            raise InputError("Some values are NaN or infinite. Leave them out.")

    def pieces(self, text: Text) -> Iterator[Piece]:
        data = self.data
        for start in range(0, self.total, self.piece):
            part = slice(start, start + self.piece)
            values = data.values[part] if data.values.size else np.ones(data.rows[part].size)
            weights = None if data.weights is None else data.weights[part]
            yield Piece([data.rows[part]], [data.cols[part]], values, weights, done=min(start + self.piece, self.total))


class Delimited(Source):
    """Long tables of text, all with the same columns."""

    lines = False

    def __init__(self, paths: list[Path], asked: Asked):
        self.paths = paths
        self.layouts = [sniffed(head(path), asked, path) for path in paths]
        first = self.layouts[0]
        for path, layout in zip(paths, self.layouts, strict=True):
            if layout.wide:
                raise InputError(f"{path} is wide, but several files must be long tables. Pass one file.")
            if (layout.header, layout.places, layout.width) != (first.header, first.places, first.width):
                raise InputError(f"{path} and {paths[0]} have different columns. Pass files with the same columns.")
        self.origin, self.weighted = long_origin(first), first.weight is not None
        self.total = sum(path.stat().st_size for path in paths)

    def pieces(self, text: Text) -> Iterator[Piece]:
        before = 0
        for path, layout in zip(self.paths, self.layouts, strict=True):
            read = [0]

            def note(done: int, total: int, read: list[int] = read) -> None:
                read[0] = done

            for block in records(
                line_blocks(path, note), layout.delimiter, layout.width, path, 0 if layout.header is None else 1
            ):
                yield self._piece(block, layout, path, text)._replace(done=before + read[0])
            before += path.stat().st_size

    def _piece(self, block: Any, layout: Layout, path: Path, text: Text) -> Piece:
        row, col, value = (*layout.places, None)[:3]
        assert row is not None
        assert col is not None
        rows, cols = names_in(block, row, "row", path, text(0)), names_in(block, col, "column", path, text(1))
        size = block.lines.size
        values = np.ones(size) if value is None else decimals(block, value, path, "value", layout.point)
        weights = None if layout.weight is None else decimals(block, layout.weight, path, "weight", layout.point)
        return Piece(rows, cols, values, weights)


def require_real(numbers: Array, what: str) -> None:
    """Raise `InputError` for complex numbers, which blocks do not hold."""
    if np.iscomplexobj(numbers):
        raise InputError(f"{what} has dtype {numbers.dtype}, but blocks hold real numbers. Fit complex data in memory.")


def only(column: Column, stay: Array) -> Column:
    """Some of the names."""
    return Words(column.distinct, column.inverse[stay]) if isinstance(column, Words) else column[stay]


def known_part(piece: Piece) -> Array:
    """A mask of lines with a value and a weight above 0; raise `InputError` for invalid weights."""
    known = ~np.isnan(piece.values)
    if piece.weights is not None:
        known &= piece.weights != 0
        if not np.all(piece.weights[known] > 0) or not np.all(np.isfinite(piece.weights[known])):
            raise InputError("Some weights are negative, NaN or infinite. Pass numbers ≥ 0; 0 leaves an entry out.")
    return known


def missing_told(origin: Origin, missing: int) -> Origin:
    """With the number of lines that had no value."""
    return replace(origin, missing=origin.missing + missing)
