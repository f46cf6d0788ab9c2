"""Sources of observations by name: files, folders, patterns and addresses."""

import glob
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, NamedTuple

from bifactor.errors import BifactorError, FileError, InputError
from bifactor.tables.source import reading

PARQUET = (".parquet", ".pq")


class Place(NamedTuple):
    """A file, and the file system that reads it."""

    system: Any
    """A file system of pyarrow; None if the file is read by other means."""
    path: str
    name: str
    """The name in messages."""


def listed(source: Any) -> list[str]:
    """The files that a name, a folder, a pattern or a list of them stands for, in a fixed order."""
    if isinstance(source, (list, tuple)):
        if not source or not all(isinstance(part, (str, os.PathLike)) for part in source):
            raise InputError("The list of files is empty, or holds other objects. Pass names of files.")
        return [name for part in source for name in listed(part)]
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
