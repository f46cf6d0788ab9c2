"""Files and folders that are written completely or not at all, and replace others only with `force`.

Links are followed. Only regular files and folders that bifactor wrote are replaced; devices, pipes and other folders
raise an error. What a killed process left behind is deleted by the next write to the same place.
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
    """Raise `InputError`, before any work, if `target` cannot or must not be written.

    For a folder, `foreign` returns a short description of content that bifactor did not write, or None: a folder with
    such content is never replaced.
    """
    sweep(Path(os.path.realpath(target)))  # which may restore what was there
    if os.path.lexists(target):
        is_folder = os.path.isdir(target)
        empty = foreign is not None and is_folder and not any(target.iterdir())
        if not force and not empty:
            raise InputError(
                f"{target} already exists. Choose another name, or replace it with --force (in Python force=True)."
            )
        if foreign is not None and os.path.exists(target) and not is_folder:
            raise InputError(f"{target} is a file, but the output is a folder. Choose another name.")
        strange = foreign(target) if foreign is not None and is_folder and not empty else None
        if strange is not None:
            raise InputError(f"{target} {strange}. Choose another name.")
    require_writable(target, folder=foreign is not None)


@contextmanager
def new_folder(target: Path, force: bool) -> Iterator[Path]:
    """A temporary folder to write into; it becomes `target` at the end, and is deleted after an error.

    Without `force` only an empty folder is replaced, even if `target` was created in the meantime.
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
            if os.name == "nt" and place.is_dir():  # other systems replace an empty folder
                place.rmdir()
            temporary.rename(place)


@contextmanager
def new_file(target: Path, force: bool) -> Iterator[Path]:
    """The name of a temporary file to write; it becomes `target` at the end, and is deleted after an error.

    Without `force` nothing is replaced, not even a file that was created in the meantime.
    """
    place = Path(os.path.realpath(target))
    temporary = temporary_for(place)
    with _cleaned(target, temporary):
        yield temporary
        with temporary.open("r+b") as file:  # Windows flushes only files that are open for writing
            os.fsync(file.fileno())
        if not force and os.path.lexists(place):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
        rename(temporary, place)


def opened(path: Path, target: Path) -> TextIO:
    """`path`, opened to write text, compressed if the name of `target` ends in .gz."""
    if target.suffix == ".gz":
        return io.TextIOWrapper(gzip.open(path, "wb"), encoding="utf-8", newline="")
    return path.open("w", encoding="utf-8", newline="")


@contextmanager
def _cleaned(target: Path, temporary: Path) -> Iterator[None]:
    try:
        yield
    except BaseException as error:
        discard(temporary)
        # A FileError has the temporary name, which means nothing to a user; its context is the error of the system.
        cause = error.__context__ if isinstance(error, FileError) else error
        if not isinstance(cause, OSError):
            raise
        reason = cause.strerror or str(cause)
        appeared = cause.errno in (errno.EEXIST, errno.ENOTEMPTY)
        advice = "choose another name" if appeared else "check the free space"
        raise FileError(f"{target} was not written: {reason}. Nothing is left behind; {advice}.") from None
