"""Files and folders that appear whole, or not at all, and replace nothing unasked."""

import gzip
import io
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO
from uuid import uuid4

from bifactor.errors import FileError, InputError
from bifactor.running.files import require_writable


def require_free(target: Path, force: bool, ours: frozenset[str] | None = None) -> None:
    """Raise `InputError`, before any work, where `target` cannot or must not be written.

    For a folder, `ours` are the files that it may hold: a folder with others in it is somebody's, and never replaced.
    """
    folder = ours is not None
    if os.path.lexists(target):
        if not force and not (folder and target.is_dir() and not any(target.iterdir())):
            raise InputError(
                f"{target} already exists. Choose another name, or replace it with --force (in Python force=True)."
            )
        if folder and not target.is_dir():
            raise InputError(f"{target} is a file, and a folder is to be written. Choose another name.")
        foreign = sorted(set(os.listdir(target)) - ours) if ours is not None else []
        if foreign:
            raise InputError(f"{target} holds {foreign[0]}, which is not part of a fit. Choose another name.")
    require_writable(_beside(target) if folder and target.is_dir() else target)


@contextmanager
def new_folder(target: Path) -> Iterator[Path]:
    """A folder to write into, which becomes `target` when all is done, and is gone after an error."""
    temporary = _beside(target)
    with _cleaned(target, temporary):
        temporary.mkdir()
        yield temporary
        old = _beside(target) if target.is_dir() else None
        if old is not None:
            target.rename(old)
        try:
            temporary.rename(target)
        except OSError:
            if old is not None:
                old.rename(target)
            raise
        if old is not None:
            shutil.rmtree(old, ignore_errors=True)


@contextmanager
def new_file(target: Path) -> Iterator[Path]:
    """A file to write, which becomes `target` when all is done, and is gone after an error."""
    temporary = _beside(target)
    with _cleaned(target, temporary):
        yield temporary
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        os.replace(temporary, target)


def opened(path: Path, target: Path) -> TextIO:
    """`path` for text, gzipped where the name of `target` says so."""
    if target.suffix == ".gz":
        return io.TextIOWrapper(gzip.open(path, "wb"), encoding="utf-8", newline="")
    return path.open("w", encoding="utf-8", newline="")


@contextmanager
def _cleaned(target: Path, temporary: Path) -> Iterator[None]:
    try:
        yield
    except BaseException as error:
        if temporary.is_dir():
            shutil.rmtree(temporary, ignore_errors=True)
        else:
            temporary.unlink(missing_ok=True)
        # A FileError is about the temporary name, which says nothing to a user; what the system said is behind it.
        cause = error.__context__ if isinstance(error, FileError) else error
        if not isinstance(cause, OSError):
            raise
        reason = cause.strerror or str(cause)
        raise FileError(f"{target} was not written: {reason}. Nothing is left behind; check the free space.") from None


def _beside(target: Path) -> Path:
    target = target.absolute()
    return target.with_name(f".{target.name}.{uuid4().hex[:12]}.tmp")
