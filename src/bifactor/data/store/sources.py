"""Sources of observations, which can be read in pieces and several times: by name, as arrays, or as files."""

import glob
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bifactor.arrays import Array, floating
from bifactor.data.delimited import Words, long_origin, names_in
from bifactor.data.layout import FileLayout, ReadOptions, infer_layout
from bifactor.data.names import Names
from bifactor.data.observations import LARGEST_SIDE, SPARSEST, Observations, Origin
from bifactor.data.store.names import Column
from bifactor.data.text import decimals, head, line_blocks, reading, records
from bifactor.errors import BifactorError, FileError, InputError

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


class MemorySource(Source):
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

    def __init__(self, paths: list[Path], asked: ReadOptions):
        self.paths = paths
        self.layouts = [infer_layout(head(path), asked, path) for path in paths]
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

    def _piece(self, block: Any, layout: FileLayout, path: Path, text: Text) -> Piece:
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


def with_missing_count(origin: Origin, missing: int) -> Origin:
    """With the number of lines that had no value."""
    return replace(origin, missing=origin.missing + missing)


# Sources of observations by name: files, folders, patterns and addresses.

PARQUET = (".parquet", ".pq")


class Place(NamedTuple):
    """A file, and the file system that reads it."""

    system: Any
    """A file system of pyarrow; None if the file is read by other means."""
    path: str
    name: str
    """The name in messages."""


def list_files(source: Any) -> list[str]:
    """The files that a name, a folder, a pattern or a list of them stands for, in a fixed order."""
    if isinstance(source, (list, tuple)):
        if not source or not all(isinstance(part, (str, os.PathLike)) for part in source):
            raise InputError("The list of files is empty, or holds other objects. Pass names of files.")
        return [name for part in source for name in list_files(part)]
    name = os.fspath(source)
    if "://" in name:
        return _listed_there(name)
    if os.path.isdir(name):
        if os.path.exists(os.path.join(name, "manifest.json")):
            raise InputError(f"{name} is already a block store. Pass the data that it was written from.")
        found = sorted(str(path) for path in Path(name).rglob("*") if _is_data(path.relative_to(name).as_posix()))
        if not found:
            raise FileError(f"{name} holds no parquet file. Pass a folder with some.")
        return found
    if not os.path.exists(name) and glob.has_magic(name):
        found = sorted(path for path in glob.glob(name, recursive=True) if os.path.isfile(path))
        if not found:
            raise FileError(f"No file matches {name}. Check the pattern.")
        return found
    return [name]


def is_parquet(name: str) -> bool:
    return name.lower().endswith(PARQUET)


def _is_data(name: str) -> bool:
    """Whether a file in a folder holds data; hidden files and the status files of Spark do not."""
    return is_parquet(name) and not any(part.startswith((".", "_")) for part in name.split("/"))


def places(names: Sequence[str]) -> list[Place]:
    """Parquet files, with the file systems that read them."""
    require_pyarrow()
    from pyarrow import fs

    local = fs.LocalFileSystem()
    return [Place(*_system(name), name) if "://" in name else Place(local, name, name) for name in names]


def identity(names: Sequence[str]) -> list[list[Any]]:
    """The names, sizes and times of files, by which unchanged files are recognised."""
    found: list[list[Any]] = []
    for name in names:
        if "://" in name:
            system, path = _system(name)
            with asking(name):
                info = system.get_file_info(path)
            found.append([name, info.size, info.mtime_ns])
        else:
            with reading(Path(name)):
                status = os.stat(name)
            found.append([os.path.abspath(name), status.st_size, status.st_mtime_ns])
    return found


@contextmanager
def asking(name: str) -> Iterator[None]:
    """Turn errors of remote file systems into `FileError`."""
    import pyarrow as pa

    try:
        yield
    except BifactorError:
        raise
    except (OSError, ValueError, pa.ArrowException) as error:
        said = " ".join(str(error).split())[:200]
        raise FileError(f"{name} cannot be read: {said}. Check the address and the permissions.") from None


def require_pyarrow() -> None:
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise BifactorError("Parquet files need pyarrow. Install it with: pip install 'bifactor[parquet]'") from None


def _system(name: str) -> tuple[Any, str]:
    """The file system for an address and the path in it: of pyarrow if possible, else of fsspec."""
    require_pyarrow()
    import pyarrow as pa
    from pyarrow import fs

    scheme = name.split("://")[0]
    try:
        system, path = fs.FileSystem.from_uri(name)
        return system, str(path)
    except pa.ArrowException:  # a scheme that pyarrow does not support
        pass
    except OSError as error:
        raise FileError(f"{name} cannot be read: {' '.join(str(error).split())[:200]}. Check the address.") from None
    try:
        import fsspec
    except ImportError:
        raise BifactorError(
            f"Addresses that begin with {scheme}:// need fsspec. Install it with: pip install fsspec"
        ) from None
    try:
        remote, path = fsspec.core.url_to_fs(name)
    except (ImportError, ValueError) as error:
        raise FileError(f"{name} cannot be read: {error}. Check the address.") from None
    return fs.PyFileSystem(fs.FSSpecHandler(remote)), path


def _listed_there(name: str) -> list[str]:
    """The files at an address, which may be a folder or end in a pattern."""
    require_pyarrow()
    from pyarrow import fs

    folder, _, last = name.rpartition("/")
    pattern = last if glob.has_magic(last) else ""
    system, path = _system(folder if pattern else name)
    with asking(name):
        if not pattern and system.get_file_info(path).type == fs.FileType.File:
            return [name]
        found = system.get_file_info(fs.FileSelector(path, recursive=not pattern, allow_not_found=True))
    base = folder if pattern else name.rstrip("/")
    start = len(path.rstrip("/")) + 1
    inside = sorted(info.path[start:] for info in found if info.type == fs.FileType.File)
    names = [f"{base}/{part}" for part in inside if (fnmatch(part, pattern) if pattern else _is_data(part))]
    if not names:
        raise FileError(f"There is no file {name}, nor a folder with parquet files. Check the address.")
    return names


# Rows, columns and values as arrays, which may be memory-mapped files: no whole array is copied.

CHECKED = 1 << 20
"""Numbers per piece that is checked."""


class Triples(Source):
    """Integers from 0, values, and perhaps weights."""

    lines = True

    def __init__(self, arrays: tuple[Any, ...]):
        self.arrays = [np.asanyarray(part) for part in arrays]
        if len(arrays) not in (3, 4) or any(part.ndim != 1 for part in self.arrays):
            raise InputError("The tuple is not three or four vectors. Pass rows, columns, values and perhaps weights.")
        self.total, self.weighted = int(self.arrays[2].size), len(arrays) == 4
        if self.total == 0:
            raise InputError("There are no observations. Pass at least one triple.")
        if any(part.size != self.total for part in self.arrays):
            sizes = ", ".join(str(part.size) for part in self.arrays)
            raise InputError(f"The arrays have {sizes} numbers. Pass equally many of each.")
        for part, what in zip(self.arrays[2:], ("values", "weights"), strict=False):
            require_real(part, what)
        self.origin, self.names = Origin("arrays, numbered from 0"), (None, None)
        self.shape = self._side(self.arrays[0], "rows"), self._side(self.arrays[1], "cols")
        for part in self._parts(CHECKED):
            if not np.all(np.isfinite(floating(self.arrays[2][part], "values"))):
                raise InputError("values contains NaN or infinity. Leave missing entries out of the triples.")
            if self.weighted:
                w = floating(self.arrays[3][part], "weights")
                if not np.all(w >= 0) or not np.all(np.isfinite(w)):
                    raise InputError(
                        "Some weights are negative, NaN or infinite. Pass numbers ≥ 0; 0 leaves an entry out."
                    )

    def pieces(self, text: Text) -> Iterator[Piece]:
        for part in self._parts(self.piece):
            rows, cols, values, *weights = (array[part] for array in self.arrays)
            places = [rows.astype(np.int64, copy=False)], [cols.astype(np.int64, copy=False)]
            w = floating(weights[0], "weights") if weights else None
            yield Piece(*places, floating(values, "values"), w, done=min(part.stop, self.total))

    def _parts(self, size: int) -> Iterator[slice]:
        return (slice(start, start + size) for start in range(0, self.total, size))

    def _side(self, side: Array, what: str) -> int:
        """The length of a side: one more than its largest index."""
        if side.dtype.kind not in "iu":
            raise InputError(f"{what} has dtype {side.dtype}, not integers. Pass integers from 0.")
        least, largest = int(side.min()), int(side.max())
        if least < 0:
            raise InputError(f"{what} holds {least}. Count from 0.")
        if largest >= max(LARGEST_SIDE, SPARSEST * self.total):
            raise InputError(
                f"{what} goes up to {largest}, but there are {self.total} triples. Pass a data frame if ids are not "
                "indices."
            )
        return largest + 1


# Opens what a user passes as a source of observations in pieces.
