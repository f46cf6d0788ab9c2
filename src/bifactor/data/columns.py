"""Tables given as columns: data frames of any library, parquet files, and JSON lines."""

import datetime as dt
import decimal
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np

from bifactor.arrays import Array, floating
from bifactor.data.column_types import is_nothing
from bifactor.data.delimited import column_names
from bifactor.data.layout import MAX_SHOWN_LENGTH, SAMPLE, FileLayout, ReadOptions, with_columns, with_hints
from bifactor.data.names import Names
from bifactor.data.observations import Observations, Origin, observations_from_names
from bifactor.data.text import Progress, line_blocks, reading
from bifactor.errors import BifactorError, FileError, InputError


class Columns(ABC):
    """Named columns, some of which are read."""

    header: tuple[str, ...]
    where: str
    """The name of the table in messages."""

    @abstractmethod
    def sample(self) -> list[list[str]]:
        """The first lines as text, with empty cells for missing values."""

    @abstractmethod
    def take(self, names: Sequence[str]) -> list[Array]:
        """Some of the columns, with None or NaN for missing values."""

    def layout(self, asked: ReadOptions) -> FileLayout:
        """The roles of the columns, as asked for or as inferred."""
        blank = FileLayout("", len(self.header), self.header, False, (), (), "")
        return with_columns(blank, self.sample(), with_hints(asked, self.header), self.where)

    def observations(self, asked: ReadOptions) -> Observations:
        """The entries, from the columns that were asked for or inferred."""
        layout = self.layout(asked)
        return self._wide(layout) if layout.wide else self._long(layout)

    def _long(self, layout: FileLayout) -> Observations:
        header = tuple(layout.name(k) for k in layout.places if k is not None)
        more = () if layout.weight is None else (layout.name(layout.weight),)
        rows, cols, *rest = self.take([*header, *more])
        numbers = [_numbers(column, name, self.where) for column, name in zip(rest, [*header, *more][2:], strict=True)]
        values = numbers[0] if len(header) > 2 else np.empty(0)
        weights = numbers[-1] if more else None
        known = np.ones(len(rows), bool) if len(header) < 3 else ~np.isnan(values)
        if weights is not None:
            known &= weights != 0
        # A line without a value may lack names, too.
        stay = known | ~(_empty(rows) | _empty(cols))
        if not stay.all():
            rows, cols, values = rows[stay], cols[stay], values[stay]
            weights = None if weights is None else weights[stay]
        origin = Origin(f"{self.where}: {', '.join(header)} ({layout.reason})", header, int(np.count_nonzero(~stay)))
        names = _names(rows, header[0], "row"), _names(cols, header[1], "column")
        found = observations_from_names(*names, values, origin, weights)
        return (found.known() if len(header) > 2 else found).weighed()

    def _wide(self, layout: FileLayout) -> Observations:
        header = [layout.name(k) for k in layout.numeric]
        numbers = [_numbers(c, name, self.where) for c, name in zip(self.take(header), header, strict=True)]
        table = np.column_stack(numbers)
        i, j = np.nonzero(~np.isnan(table))
        rows, at, place = Names.numbered(table.shape[0], 1), i, layout.places[0]
        if place is not None:
            rows, places = _names(self.take([layout.name(place)])[0], layout.name(place), "row")
            at = places[i]
        values, first = table[i, j], "row" if place is None else layout.name(place)
        origin = Origin(
            f"{self.where}, wide ({layout.reason})", (first, "column", "value"), table.size - values.size, wide=True
        )
        return observations_from_names((rows, at), (column_names(header, self.where), j), values, origin)


def is_frame(source: Any) -> bool:
    """Whether this is a data frame of any library that narwhals supports, including lazy ones."""
    return isinstance(nw.from_native(source, pass_through=True), (nw.DataFrame, nw.LazyFrame))


class FrameColumns(Columns):
    """A data frame of any library that narwhals supports, including lazy ones."""

    def __init__(self, frame: Any, where: str = "the frame"):
        try:
            self.frame: Any = nw.from_native(frame)
        except TypeError:
            raise InputError(
                f"{type(frame).__name__} is neither a data frame nor the name of a file. Pass one of them."
            ) from None
        self.named = {str(name): name for name in self.frame.collect_schema().names()}
        self.header, self.where = tuple(self.named), where

    def sample(self) -> list[list[str]]:
        head = self._collected(self.frame.head(SAMPLE))
        cells = [part.to_list() for part in (head.get_column(self.named[name]) for name in self.header)]
        lines = [["" if is_nothing(cell) else str(cell) for cell in row] for row in zip(*cells, strict=True)]
        if not lines:
            raise InputError(f"{self.where} has no rows. Pass at least one entry.")
        return lines

    def take(self, names: Sequence[str]) -> list[Array]:
        part = self._collected(self.frame.select([nw.col(self.named[name]) for name in names]))
        return [_array(part.get_column(self.named[name])) for name in names]

    def native(self) -> Any:
        """The frame in its own library."""
        return nw.to_native(self._collected(self.frame))

    @staticmethod
    def _collected(frame: Any) -> Any:
        return frame.collect() if isinstance(frame, nw.LazyFrame) else frame


class Records(Columns):
    """One JSON object per line, all with the same keys or some of them."""

    def __init__(self, path: Path, progress: Progress):
        self.where = str(path)
        self.records: list[dict[str, Any]] = []
        number = 0
        for block in line_blocks(path, progress):
            for line in block.splitlines():
                number += 1
                if line.strip():
                    self.records.append(self._record(line, number))
        if not self.records:
            raise FileError(f"{path} has no records. Pass at least one entry.")
        self.header = tuple(dict.fromkeys(key for record in self.records[:SAMPLE] for key in record))

    def _record(self, line: bytes, number: int) -> dict[str, Any]:
        try:
            record = json.loads(line)
            if b"\\ud" in line.lower():  # a lone surrogate is not a character
                json.dumps(record, ensure_ascii=False).encode()
        except (ValueError, RecursionError):
            record = None
        if not isinstance(record, dict):
            raise FileError(f"Line {number} of {self.where} is not a JSON object. Write one object per line.")
        return record

    def sample(self) -> list[list[str]]:
        lines = ([record.get(key) for key in self.header] for record in self.records[:SAMPLE])
        return [["" if cell is None else str(cell) for cell in line] for line in lines]

    def take(self, names: Sequence[str]) -> list[Array]:
        return [self._column([record.get(name) for record in self.records], name) for name in names]

    def _column(self, cells: list[Any], name: str) -> Array:
        kinds = {type(cell) for cell in cells}
        if kinds & {dict, list}:
            raise FileError(f"{self.where}: {_called(name)} holds lists or objects. Pass names and numbers.")
        if kinds <= {int} and all(abs(cell) < 1 << 62 for cell in cells):
            return np.array(cells, np.int64)
        if kinds <= {int, float, type(None)} and not any(isinstance(c, int) and abs(c) > 1 << 53 for c in cells):
            return np.array([np.nan if cell is None else cell for cell in cells], np.float64)
        column = np.empty(len(cells), object)
        # Integers that are too long, or beside text in other lines, become text, as in other files.
        column[:] = [str(cell) if type(cell) is int else cell for cell in cells]
        return column


def read_parquet(path: Path, asked: ReadOptions, progress: Progress) -> Observations:
    """A parquet file with a column each for rows, columns and values, or a wide one."""
    found: Observations = _of_parquet(path, lambda columns: columns.observations(asked))
    progress(1, 1)
    return found


def parquet_columns(path: Path) -> "FrameColumns":
    """All columns of a parquet file."""
    found: FrameColumns = _of_parquet(path, lambda columns: FrameColumns(columns.file.read(), str(path)))
    return found


def _of_parquet(path: Path, read: "Callable[[ParquetColumns], Any]") -> Any:
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        raise BifactorError("Parquet files need pyarrow. Install it with: pip install 'bifactor[parquet]'") from None
    with reading(path):
        try:
            with parquet.ParquetFile(path) as file:
                return read(ParquetColumns(file, path))
        except BifactorError:
            raise
        except (pa.ArrowException, OSError, ValueError) as error:
            said = " ".join(str(error).split())[:200]
            raise FileError(f"{path} is not a parquet file, or damaged ({said}). Download or save it again.") from None


def read_records(path: Path, asked: ReadOptions, progress: Progress) -> Observations:
    """Read JSON lines."""
    return Records(path, progress).observations(asked)


class ParquetColumns(Columns):
    """The columns of a parquet file, read only as needed."""

    def __init__(self, file: Any, path: Path | str):
        self.file, self.where = file, str(path)
        self.header = tuple(file.schema_arrow.names)
        if file.metadata.num_rows == 0:
            raise FileError(f"{path} has columns but no rows. Pass a file with at least one entry.")

    def sample(self) -> list[list[str]]:
        import pyarrow as pa

        first = next(self.file.iter_batches(batch_size=SAMPLE), None)
        if first is None:
            raise FileError(f"{self.where} has no rows, contrary to its metadata. Save it again.")
        return FrameColumns(pa.Table.from_batches([first]), self.where).sample()

    def take(self, names: Sequence[str]) -> list[Array]:
        return FrameColumns(self.file.read(columns=list(names)), self.where).take(names)


def _array(column: Any) -> Array:
    """A column with NaN, NaT or None for missing values."""
    if column.dtype == nw.Boolean or column.dtype.is_integer():
        return column.cast(nw.Float64).to_numpy() if column.null_count() else column.to_numpy()
    if column.dtype == nw.Float32:
        return np.asarray(column.to_numpy(), np.float32)
    if column.dtype.is_numeric():
        return np.asarray(column.cast(nw.Float64).to_numpy(), np.float64)
    if column.dtype.is_temporal():
        return column.to_numpy()
    return _plain([None if is_nothing(cell) else cell for cell in column.to_list()])


def _plain(cells: list[Any]) -> Array:
    """Cells of one kind as an array of that kind; others as objects."""
    kinds = {type(cell) for cell in cells}
    if kinds <= {int, np.int64} and cells and all(abs(cell) < 1 << 63 for cell in cells):
        return np.array(cells, np.int64)
    if kinds and kinds <= {dt.date}:
        return np.array(cells, "M8[D]")
    if decimal.Decimal in kinds and kinds <= {decimal.Decimal, int, float, type(None)}:
        return np.array([np.nan if cell is None else float(cell) for cell in cells])
    values = np.empty(len(cells), object)
    values[:] = cells
    return values


def _numbers(column: Array, name: str, where: str) -> Array:
    """A column of floating-point numbers, with NaN for missing values."""
    if column.dtype.kind == "O" and all(cell is None or isinstance(cell, (int, float)) for cell in column.tolist()):
        column = np.array([np.nan if cell is None else float(cell) for cell in column.tolist()])
    if column.dtype.kind not in "biuf":
        raise InputError(f"Column {_called(name)} of {where} does not hold numbers. Convert it first.")
    values = floating(column, name)
    if np.any(np.isinf(values)):
        raise InputError(f"Column {_called(name)} of {where} holds infinite values. Remove them or leave them empty.")
    return values


def _called(name: str) -> str:
    """A name for a message, shortened if it is long."""
    return repr(name if len(name) <= MAX_SHOWN_LENGTH else name[:MAX_SHOWN_LENGTH] + "…")


def _empty(column: Array) -> Array:
    """Where cells are missing."""
    if column.dtype.kind == "O":
        return np.array([cell is None or cell != cell for cell in column.tolist()], bool)
    return column != column


def _names(column: Array, name: str, what: str) -> tuple[Names, Array]:
    kind = column.dtype.kind
    if np.any(_empty(column)):
        raise InputError(
            f"Some {what} names are missing in {_called(name)}. Drop these lines, or give every {what} a name."
        )
    if kind == "f" and column.size and np.all(np.abs(column) < 1 << 53) and np.all(column % 1 == 0):
        column = column.astype(np.int64)  # integers that were floats because of missing values
    return Names.of(column, what)
