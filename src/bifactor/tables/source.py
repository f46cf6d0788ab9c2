"""Files as streams of bytes, plain or gzipped; what goes wrong is said in one sentence."""

import gzip
import hashlib
import stat
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bifactor.errors import FileError

BLOCK = 1 << 22
"""Bytes that are read at a time."""

LONGEST = 1 << 28
"""Bytes of a line; no table has longer ones."""

Progress = Callable[[int, int], None]
"""Called with the bytes of the file that were read, and with all of them."""


def silent(done: int, total: int) -> None:
    """Shows nothing."""


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turns the errors of reading `path` into `FileError`."""
    try:
        yield
    except FileError:
        raise
    except FileNotFoundError:
        raise FileError(f"There is no file {path}. Check its name.") from None
    except PermissionError:
        raise FileError(f"{path} may not be read. Check its permissions.") from None
    except (EOFError, gzip.BadGzipFile, zlib.error):
        raise FileError(f"{path} is a gzip file that is damaged or cut short. Fetch or compress it again.") from None
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror or error}. Check the file.") from None


def require_file(path: Path) -> None:
    """Raise `FileError` unless `path` is a file with something in it."""
    with reading(path):
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            raise FileError(f"{path} is a folder. Pass the name of a file.")
        if not stat.S_ISREG(status.st_mode):
            raise FileError(f"{path} is no regular file, and it has to be read twice. Save it to a file first.")
        if status.st_size == 0:
            raise FileError(f"{path} is empty. Pass a file with at least one entry.")
        path.open("rb").close()


def checksum(path: Path) -> str:
    """The SHA-256 of a file as it is on disk, as `sha256sum` prints it."""
    with reading(path), path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def chunks(path: Path, progress: Progress = silent, size: int | None = None) -> Iterator[bytes]:
    """The content of a file, uncompressed where it is gzipped, without a byte order mark."""
    with reading(path), path.open("rb") as raw:
        total = path.stat().st_size
        gzipped = raw.read(2) == b"\x1f\x8b"
        raw.seek(0)
        stream = gzip.GzipFile(fileobj=raw) if gzipped else raw
        first = True
        while chunk := stream.read(BLOCK if size is None else size):
            yield chunk.removeprefix(b"\xef\xbb\xbf") if first else chunk
            first = False
            progress(raw.tell(), total)


def line_blocks(path: Path, progress: Progress = silent) -> Iterator[bytes]:
    """The content of a file in blocks that end where a line ends."""
    rest = b""
    for chunk in chunks(path, progress):
        cut = chunk.rfind(b"\n") + 1
        if cut:
            yield rest + chunk[:cut]
            rest = chunk[cut:]
        else:
            rest += chunk
        if len(rest) > LONGEST:
            raise FileError(f"{path} has a line of more than {LONGEST} bytes, so it is no table. Check the file.")
    if rest:
        yield rest + b"\n"


def head(path: Path, size: int = 1 << 16, advice: str = "Pass csv, or parquet, npz or mtx by its name.") -> list[str]:
    """The first lines of a text file, for a look at what it is; `advice` is for what is not text."""
    start = next(chunks(path, size=size), b"")
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise FileError(f"{path} is text in UTF-16. Save it as UTF-8.")
    if b"\0" in start:
        raise FileError(f"{path} is not text. {advice}")
    complete = start[: start.rfind(b"\n") + 1] if len(start) == size and b"\n" in start else start
    lines = complete.decode("utf-8", errors="replace").splitlines()
    if not any(line.strip() for line in lines):
        raise FileError(f"{path} holds nothing but blank lines. Pass a file with at least one entry.")
    return lines
