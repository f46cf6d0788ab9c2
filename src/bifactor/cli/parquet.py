"""Parquet files, read and written in pieces."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

from bifactor.errors import BifactorError, FileError, InputError

PARQUET = (".parquet", ".pq")
"""Their extensions."""


def require_parquet(output: Path, safe_cells: bool) -> None:
    """Raise, before any work, if the output is parquet and cannot be written."""
    if output.name.lower().endswith(PARQUET):
        if safe_cells:
            raise InputError("--safe-cells is for csv files. Leave it out, or write csv.")
        pyarrow()


def parquet_batches(path: Path, size: int) -> Iterator[tuple[Any, int, int]]:
    """Frames of at most `size` lines, each with the number of lines so far and in all."""
    pa, parquet = pyarrow()
    try:
        with parquet.ParquetFile(path) as file:
            done, total = 0, file.metadata.num_rows
            for batch in file.iter_batches(size):
                done += batch.num_rows
                yield pa.table(batch), done, total
    except (pa.ArrowException, OSError) as error:
        said = " ".join(str(error).split())[:120]
        raise FileError(f"{path} is not a parquet file, or it is damaged ({said}). Check the file.") from None


class Frames:
    """A file to append frames to; the first one defines its columns."""

    def __init__(self, path: Path):
        self._path = path
        self._writer: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._writer is not None:
            self._writer.close()

    def put(self, columns: dict[str, Any]) -> None:
        pa, parquet = pyarrow()
        if self._writer is None:
            table = pa.table(columns)
            self._writer = parquet.ParquetWriter(self._path, table.schema)
        else:
            schema = self._writer.schema
            arrays = []
            for field in schema:
                text = field.type == pa.string()
                cells = columns[field.name]
                arrays.append(pa.array([str(one) for one in cells] if text else cells, field.type))
            table = pa.table(arrays, schema=schema)
        self._writer.write_table(table)


def pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        raise BifactorError("Parquet files need pyarrow. Install it with: pip install 'bifactor[parquet]'") from None
    return pa, parquet
