"""Parquet files, one or many, on disk or at any address that pyarrow or fsspec can read."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from bifactor.arrays import Array
from bifactor.data.columns import ParquetColumns
from bifactor.data.delimited import Words
from bifactor.data.layout import FileLayout, ReadOptions
from bifactor.data.observations import Origin
from bifactor.data.store.names import Column
from bifactor.data.store.sources import Piece, Place, Source, Text, only
from bifactor.errors import BifactorError, FileError, InputError

BUFFER = 1 << 20
"""Bytes of each column per piece: a row group may be larger than memory."""

TEXT, INTEGERS = "text", "integers"
"""Kinds of names that may have several types."""


class Parquet(Source):
    """Long tables, all with the same columns."""

    lines = True

    def __init__(self, places: list[Place], asked: ReadOptions):
        self.places, self.total = list[Place](), 0
        layout: FileLayout | None = None
        for place in places:
            with _opened(place) as file:
                if not file.metadata.num_rows:  # columns of an empty file often lack their types
                    continue
                self.places.append(place)
                self.total += file.metadata.num_rows
                if layout is None:
                    layout = _layout(file, place, asked)
                    where = place.name
        if layout is None:
            raise FileError(f"{places[0].name} has columns but no rows. Pass files with at least one entry.")
        self.wide, self.weighted = layout.wide, layout.weight is not None
        if self.wide:
            if len(self.places) > 1:
                raise InputError(f"{where} is wide, but several files must be long tables. Pass one file.")
            return
        self.header = tuple(layout.name(k) for k in layout.places if k is not None)
        more = () if layout.weight is None else (layout.name(layout.weight),)
        self.columns = (*self.header, *more)
        self.origin = Origin(f"{where}: {', '.join(self.header)} ({layout.reason})", self.header)

    def pieces(self, text: Text) -> Iterator[Piece]:
        done, kinds = 0, dict[str, tuple[str, str]]()
        for place in self.places:
            with _opened(place) as file:
                self._require_columns(file.schema_arrow, place.name, kinds)
                for batch in file.iter_batches(batch_size=self.piece, columns=list(self.columns), use_threads=False):
                    done += batch.num_rows
                    yield self._piece(batch, place.name)._replace(done=done)

    def _require_columns(self, schema: Any, where: str, kinds: dict[str, tuple[str, str]]) -> None:
        """Raise `InputError` unless a file has the same columns and kinds of names as those before it."""
        lacking = [name for name in self.columns if name not in schema.names]
        if lacking:
            raise InputError(f"{where} has no column {lacking[0]!r}. Pass files with the same columns.")
        for name in self.header[:2]:
            kind = _kind(schema.field(name).type)
            first, before = kinds.setdefault(name, (kind, where))
            if kind != first:
                raise InputError(
                    f"Column {name!r} holds {kind} in {where}, but {first} in {before}. Convert them to one kind."
                )

    def _piece(self, batch: Any, where: str) -> Piece:
        columns = [batch.column(batch.schema.get_field_index(name)) for name in self.columns]
        numbers = [_numbers(column, name, where) for column, name in zip(columns[2:], self.columns[2:], strict=True)]
        valued = len(self.header) > 2
        values = numbers[0] if valued else np.ones(batch.num_rows)
        weights = numbers[-1] if self.weighted else None
        sides = [_names(column, name, where) for column, name in zip(columns[:2], self.header, strict=False)]
        known = ~np.isnan(values)
        if weights is not None:
            known &= weights != 0
        lost = sides[0][1] | sides[1][1]
        if not np.any(lost):
            return Piece([sides[0][0]], [sides[1][0]], values, weights)
        if np.any(lost & known):
            what, name = ("row", self.header[0]) if np.any(sides[0][1] & known) else ("column", self.header[1])
            raise InputError(
                f"Some {what} names are missing in {name!r}. Drop these lines, or give every {what} a name."
            )
        # A line without a value may lack names, too.
        weights = None if weights is None else weights[~lost]
        return Piece(
            [only(sides[0][0], ~lost)], [only(sides[1][0], ~lost)], values[~lost], weights, int(np.count_nonzero(lost))
        )


@contextmanager
def _opened(place: Place) -> Iterator[Any]:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        with place.system.open_input_file(place.path) as raw:
            yield parquet.ParquetFile(raw, buffer_size=BUFFER, pre_buffer=False)
    except BifactorError:
        raise
    except FileNotFoundError:
        raise FileError(f"There is no file {place.name}. Check its name.") from None
    except PermissionError:
        raise FileError(f"{place.name} cannot be read: permission denied. Check its permissions.") from None
    except (pa.ArrowException, OSError, ValueError) as error:
        said = " ".join(str(error).split())[:200]
        raise FileError(f"{place.name} is not parquet, or damaged ({said}). Download or save it again.") from None


def _layout(file: Any, place: Place, asked: ReadOptions) -> FileLayout:
    """The columns to read; the error for a table whose columns are names of folders, such as item=3, says so."""
    try:
        return ParquetColumns(file, place.name).layout(asked)
    except InputError:
        keys = (part.partition("=")[0] for part in place.path.split("/")[:-1] if "=" in part)
        absent = next((key for key in keys if key and key not in file.schema_arrow.names), None)
        if absent is None:
            raise
        raise InputError(
            f"{place.name} has no column {absent!r}, which is only in the name of its folder. "
            "Write it into the files, or name other columns."
        ) from None


def _kind(kind: Any) -> str:
    """The kind of a type of names, in one word."""
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        return _kind(kind.value_type)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return TEXT
    return INTEGERS if pa.types.is_integer(kind) and not pa.types.is_uint64(kind) else str(kind)


def _names(column: Any, name: str, where: str) -> tuple[Column, Array]:
    """Names, and where they are missing."""
    import pyarrow as pa

    kind, lost = column.type, column.is_null().to_numpy(zero_copy_only=False)
    if pa.types.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    if _kind(kind) == TEXT:
        coded = column.dictionary_encode()
        places = coded.indices.fill_null(0).to_numpy()
        return Words(coded.dictionary.to_pylist() or [""], places), lost
    if pa.types.is_integer(kind):
        numbers = column.fill_null(0).to_numpy() if column.null_count else column.to_numpy()
        return numbers if numbers.dtype == np.uint64 else numbers.astype(np.int64, copy=False), lost
    if pa.types.is_boolean(kind):
        return column.fill_null(False).to_numpy(zero_copy_only=False), lost
    if pa.types.is_floating(kind) or pa.types.is_temporal(kind):
        values = column.to_numpy(zero_copy_only=False)
        values = values.astype(np.float32) if values.dtype == np.float16 else values
        if values.dtype.kind in "fmM":
            return values, lost | (values != values)
    raise InputError(f"Column {name!r} of {where} has type {kind}, which is not for names. Convert it to text.")


def _numbers(column: Any, name: str, where: str) -> Array:
    """Floating-point numbers, with NaN for missing values."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_null(kind):
        return np.full(len(column), np.nan)
    if not (
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_decimal(kind)
    ):
        raise InputError(f"Column {name!r} of {where} does not hold numbers. Convert it first.")
    if not pa.types.is_float32(kind):
        column = column.cast(pa.uint8()) if pa.types.is_boolean(kind) else column
        column = column.cast(pa.float64(), safe=False)
    values: Array = column.to_numpy(zero_copy_only=False)
    if np.any(np.isinf(values)):
        raise InputError(f"Column {name!r} of {where} holds infinite values. Remove them or leave them empty.")
    return values
