"""Parquet files, through pyarrow."""

from pathlib import Path
from typing import Any

import numpy as np

from bifactor.arrays import Array
from bifactor.errors import BifactorError, FileError
from bifactor.tables.delimited import labelled
from bifactor.tables.labels import Labels
from bifactor.tables.layout import Asked, Layout, with_columns
from bifactor.tables.names import Names
from bifactor.tables.source import Progress, reading
from bifactor.tables.triples import Triples


def read_parquet(path: Path, asked: Asked, progress: Progress) -> Triples:
    """A table with a column each for rows, columns and values, or a wide one."""
    try:
        import pyarrow as pa
        from pyarrow import parquet as pq
    except ImportError:
        raise BifactorError("Parquet files need pyarrow. Install it with: pip install 'bifactor[parquet]'") from None
    with reading(path):
        try:
            with pq.ParquetFile(path) as file:
                return _table(file, path, asked, progress)
        except pa.ArrowInvalid as error:
            raise FileError(f"{path} is no parquet file, or cut short ({error}). Fetch or save it again.") from None


def _table(file: Any, path: Path, asked: Asked, progress: Progress) -> Triples:
    header = tuple(file.schema_arrow.names)
    if file.metadata.num_rows == 0:
        raise FileError(f"{path} has columns and no rows. Pass a file with at least one entry.")
    start = next(file.iter_batches(batch_size=200)).to_pydict()
    body = [["" if cell is None else str(cell) for cell in row] for row in zip(*start.values(), strict=True)]
    layout = with_columns(Layout("", len(header), header, False, (), (), ""), body, asked, path)
    return (_wide if layout.wide else _long)(file, path, layout, progress)


def _long(file: Any, path: Path, layout: Layout, progress: Progress) -> Triples:
    header = tuple(layout.name(k) for k in layout.places if k is not None)
    names = Names("row", path), Names("column", path)
    values, done = [np.empty(0)], 0
    for batch in file.iter_batches(columns=list(header)):
        for side in (0, 1):
            _add(names[side], batch[header[side]], header[side], path)
        if len(header) > 2:
            values.append(_numbers(batch[header[2]], header[2], path))
        done += batch.num_rows
        progress(done, file.metadata.num_rows)
    (rows, i), (cols, j) = names[0].done(), names[1].done()
    text = f"a parquet table: {', '.join(header)} ({layout.reason})"
    return Triples(rows, cols, i, j, np.concatenate(values), text, header).known()


def _wide(file: Any, path: Path, layout: Layout, progress: Progress) -> Triples:
    columns = [layout.name(k) for k in layout.numeric]
    table = np.column_stack([_numbers(column, name, path) for name, column in _columns(file, columns)])
    progress(1, 1)
    i, j = np.nonzero(~np.isnan(table))
    rows, at = Labels(np.arange(1, table.shape[0] + 1)), i
    place = layout.places[0]
    if place is not None:
        names = Names("row", path)
        for _, column in _columns(file, [layout.name(place)]):
            _add(names, column, layout.name(place), path)
        rows, places = names.done()
        at = places[i]
    values, text = table[i, j], f"a wide parquet table ({layout.reason})"
    cols = labelled(columns, path)
    return Triples(rows, cols, at, j, values, text, missing=table.size - values.size, width=cols.names.size)


def _columns(file: Any, names: list[str]) -> list[tuple[str, Any]]:
    table = file.read(columns=names)
    return [(name, table[name].combine_chunks()) for name in names]


def _add(names: Names, column: Any, name: str, path: Path) -> None:
    import pyarrow as pa

    if column.null_count:
        raise FileError(f"{path}: column {name!r} has lines without a name. Drop them.")
    if pa.types.is_integer(column.type) and column.type != pa.uint64():
        names.add_integers(column.to_numpy(zero_copy_only=False).astype(np.int64))
        return
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    coded = column.cast(pa.string()).dictionary_encode()
    names.add_words(coded.dictionary.to_pylist(), coded.indices.to_numpy(zero_copy_only=False))


def _numbers(column: Any, name: str, path: Path) -> Array:
    import pyarrow as pa

    try:
        values = column.cast(pa.float64()).to_numpy(zero_copy_only=False)
    except pa.ArrowInvalid:
        raise FileError(f"{path}: column {name!r} holds what is no number. Pass numbers as values.") from None
    if np.any(np.isinf(values)):
        raise FileError(f"{path}: column {name!r} holds infinite values. Leave them out, or empty.")
    return values
