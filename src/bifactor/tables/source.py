"""Files as streams of bytes, plain or gzipped, with errors as one sentence."""

import gzip
import hashlib
import stat
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bifactor.errors import FileError

BLOCK = 1 << 22
"""Bytes per chunk that is read."""

LONGEST = 1 << 28
"""Most bytes of a line; tables have shorter ones."""

LARGEST = 1 << 30
"""Most bytes of a file that is read as a whole."""

LOOK, LINES = 1 << 16, 5
"""Fewest bytes and lines from which the layout of a file is inferred."""

Progress = Callable[[int, int], None]
"""Called with the number of bytes read so far, and with the size of the file."""


def silent(done: int, total: int) -> None:
    """Show nothing."""


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn errors in reading `path` into `FileError`."""
    try:
        yield
    except FileError:
        raise
    except FileNotFoundError:
        raise FileError(f"There is no file {path}. Check its name.") from None
    except PermissionError:
        raise FileError(f"{path} cannot be read: permission denied. Check its permissions.") from None
    except (EOFError, gzip.BadGzipFile, zlib.error):
        raise FileError(f"{path} is a damaged or truncated gzip file. Download or compress it again.") from None
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror or error}. Check the file.") from None


def require_file(path: Path) -> None:
    """Raise `FileError` unless `path` is a regular file that is not empty."""
    with reading(path):
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            raise FileError(f"{path} is a folder. Pass the name of a file.")
        if not stat.S_ISREG(status.st_mode):
            raise FileError(f"{path} is not a regular file, but it has to be read twice. Save it to a file first.")
        if status.st_size == 0:
            raise FileError(f"{path} is empty. Pass a file with data.")
        path.open("rb").close()


def checksum(path: Path) -> str:
    """The SHA-256 of a file on disk, as `sha256sum` prints it."""
    with reading(path), path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def chunks(path: Path, progress: Progress = silent, size: int | None = None) -> Iterator[bytes]:
    """The content of a file, decompressed if it is gzipped, without a byte order mark.

    If lines end in carriage returns alone, as on old Macs, these become line feeds.
    """
    with reading(path), path.open("rb") as raw:
        total = path.stat().st_size
        gzipped = raw.read(2) == b"\x1f\x8b"
        raw.seek(0)
        stream = gzip.GzipFile(fileobj=raw) if gzipped else raw
        old_mac: bool | None = None
        while chunk := stream.read(BLOCK if size is None else size):
            if old_mac is None:
                chunk = chunk.removeprefix(b"\xef\xbb\xbf")
                old_mac = b"\r" in chunk[:LOOK] and b"\n" not in chunk[:LOOK]
            yield chunk.replace(b"\r", b"\n") if old_mac else chunk
            progress(raw.tell(), total)


def line_blocks(path: Path, progress: Progress = silent) -> Iterator[bytes]:
    """The content of a file in blocks of whole lines."""
    rest = b""
    for chunk in chunks(path, progress):
        cut = chunk.rfind(b"\n") + 1
        if cut:
            yield rest + chunk[:cut]
            rest = chunk[cut:]
        else:
            rest += chunk
        if len(rest) > LONGEST:
            raise FileError(f"{path} has a line of more than {LONGEST} bytes, so it is not a table. Check the file.")
    if rest:
        yield rest + b"\n"


def head(path: Path, advice: str = "Pass csv, or parquet, npz or mtx by its name.") -> list[str]:
    """The first lines of a text file; `advice` ends the message for files that are not text.

    Bytes that are not UTF-8 become surrogates.
    """
    start, whole = _start(path)
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise FileError(f"{path} is text in UTF-16. Save it as UTF-8.")
    if b"\0" in start:
        raise FileError(f"{path} is not text. {advice}")
    lines = start.decode("utf-8", errors="surrogateescape").split("\n")
    if not any(line.strip() for line in lines):
        raise FileError(f"{path} holds only blank lines. Pass a file with at least one entry.")
    return lines if whole else lines[:-1]


def _start(path: Path) -> tuple[bytes, bool]:
    """The beginning of a file with at least a few lines, and whether that is all of it."""
    parts, size, lines = [], 0, 0
    for chunk in chunks(path, size=LOOK):
        parts.append(chunk)
        size += len(chunk)
        lines += sum(1 for line in chunk.split(b"\n")[:-1] if line.strip())
        if size >= LOOK and lines >= LINES:
            return b"".join(parts), False
        if size > LONGEST:
            raise FileError(f"{path} has {lines} lines in {size} bytes, so it is not a table. Check the file.")
    return b"".join(parts), True


def content(path: Path, progress: Progress = silent) -> bytes:
    """The whole content of a file; raise `FileError` if it is too large for a table of text."""
    parts, size = [], 0
    for chunk in chunks(path, progress):
        parts.append(chunk)
        size += len(chunk)
        if size > LARGEST:
            raise FileError(f"{path} holds more than {LARGEST >> 20} MiB of text. Pass a smaller file.")
    return b"".join(parts)
