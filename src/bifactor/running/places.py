"""Files and folders that appear whole, or not at all, and replace nothing unasked.

Links are followed. What is replaced is a regular file, or a folder that bifactor wrote; devices, pipes and folders of
others are refused. What a process that was killed has left behind goes with the next write to the same place.
"""

import errno
import gzip
import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from bifactor.errors import FileError, InputError
from bifactor.running.exchange import exchange
from bifactor.running.files import rename, require_writable
from bifactor.running.temporaries import discard, sweep, temporary_for


def require_free(target: Path, force: bool, foreign: Callable[[Path], str | None] | None = None) -> None:
    """Raise `InputError`, before any work, where `target` cannot or must not be written.

    For a folder, `foreign` tells what a folder holds that bifactor did not write, in a few words, or None: a folder
    with such things is somebody's, and never replaced.
    """
    sweep(Path(os.path.realpath(target)))  # which may bring back what was there
    if os.path.lexists(target):
        is_folder = os.path.isdir(target)
        empty = foreign is not None and is_folder and not any(target.iterdir())
        if not force and not empty:
            raise InputError(
                f"{target} already exists. Choose another name, or replace it with --force (in Python force=True)."
            )
        if foreign is not None and os.path.exists(target) and not is_folder:
            raise InputError(f"{target} is a file, and a folder is to be written. Choose another name.")
        strange = foreign(target) if foreign is not None and is_folder and not empty else None
        if strange is not None:
            raise InputError(f"{target} {strange}. Choose another name.")
    require_writable(target, folder=foreign is not None)


@contextmanager
def new_folder(target: Path, force: bool) -> Iterator[Path]:
    """A folder to write into, which becomes `target` when all is done, and is gone after an error.

    Without `force` nothing but an empty folder is replaced, not even what has appeared there in the meantime.
    """
    place = Path(os.path.realpath(target))
    temporary = temporary_for(place)
    with _cleaned(target, temporary):
        temporary.mkdir()
        yield temporary
        if force and os.path.isdir(place):
            exchange(temporary, place)
            discard(temporary)
        else:
            if os.name == "nt" and place.is_dir():  # elsewhere an empty folder is replaced
                place.rmdir()
            temporary.rename(place)


@contextmanager
def new_file(target: Path, force: bool) -> Iterator[Path]:
    """A file to write, which becomes `target` when all is done, and is gone after an error.

    Without `force` nothing is replaced, not even what has appeared there in the meantime.
    """
    place = Path(os.path.realpath(target))
    temporary = temporary_for(place)
    with _cleaned(target, temporary):
        yield temporary
        with temporary.open("r+b") as file:  # Windows flushes only what may be written
            os.fsync(file.fileno())
        if not force and os.path.lexists(place):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
        rename(temporary, place)


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
        discard(temporary)
        # A FileError is about the temporary name, which says nothing to a user; what the system said is behind it.
        cause = error.__context__ if isinstance(error, FileError) else error
        if not isinstance(cause, OSError):
            raise
        reason = cause.strerror or str(cause)
        appeared = cause.errno in (errno.EEXIST, errno.ENOTEMPTY)
        advice = "choose another name" if appeared else "check the free space"
        raise FileError(f"{target} was not written: {reason}. Nothing is left behind; {advice}.") from None
