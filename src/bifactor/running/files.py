"""Files and folders that are written completely or not at all, and arrays with metadata in such a file."""

import ctypes
import errno
import gzip
import hashlib
import io
import json
import os
import platform
import re
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TextIO
from uuid import uuid4

import numpy as np
from safetensors import SafetensorError, safe_open

from bifactor.arrays import Array
from bifactor.errors import FileError, InputError

LONGEST = 255
"""The largest number of bytes in a file name."""

ASIDE = ".old"

END = 35
"""The number of bytes at the end of a temporary name: the machine, the process and twelve random digits."""


def temporary_for(target: Path) -> Path:
    """A unique hidden name next to `target`."""
    return target.with_name(f"{_start(target)}{os.getpid():010d}-{uuid4().hex[:12]}.tmp")


def aside_of(target: Path) -> Path:
    """A name for the old content of `target` while it is being replaced."""
    return temporary_for(target).with_suffix(ASIDE)


def sweep(target: Path) -> None:
    """Delete temporary files and folders for `target` of processes on this machine that no longer run.

    Old content that was moved aside is moved back if nothing has replaced it.
    """
    if os.name != "posix":  # on other systems, there is no way to see whether a process runs
        return
    pattern = re.compile(re.escape(_start(target)) + r"(\d{10})-[0-9a-f]{12}(\.tmp|\.old)")
    try:
        names = os.listdir(target.parent)
    except OSError:
        return
    for name in names:
        found = pattern.fullmatch(name)
        if found is None or _runs(int(found[1])):
            continue
        if found[2] == ASIDE and not os.path.lexists(target):
            with suppress(OSError):
                target.with_name(name).rename(target)
        else:
            discard(target.with_name(name))


def discard(path: Path) -> None:
    """Delete a temporary file or folder, if possible."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
        return
    with suppress(OSError):
        path.unlink(missing_ok=True)


def _start(target: Path) -> str:
    """The name, shortened if needed, and a short hash of this machine or container.

    On a shared disk, one cannot see whether a process of another machine still runs.
    """
    name = os.fsencode(target.name)[: LONGEST - END - 1].decode("utf-8", "ignore")
    here = platform.node()
    with suppress(OSError):  # on Linux, the set of visible processes
        here += os.readlink("/proc/self/ns/pid")
    return f".{name}.{hashlib.blake2b(here.encode(), digest_size=3).hexdigest()}-"


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):  # it belongs to another user
        return True
    return True


FORMAT = 2
"""The file format. Files of earlier formats can be read, those of later ones cannot; without a number it is the first.

Files have a checksum from the second format on.
"""

_COMPLEX = "complex:"

_LETTERS = {"f": "F", "i": "I", "u": "U"}
"""The letters of safetensors for kinds of numbers; the number of bits follows."""

_SPOKEN = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFLNK: "a circular link",
}
"""Names for files that are not regular files."""

_UNREADABLE = (SafetensorError, OSError, KeyError, ValueError, TypeError, AttributeError, OverflowError, RecursionError)
"""What safetensors, NumPy and json raise for damaged files."""


def write(path: str | os.PathLike[str], kind: str, arrays: dict[str, Array], metadata: dict[str, Any]) -> None:
    """Write arrays and metadata to one safetensors file, with a checksum of both."""
    # safetensors has no double complex, so complex arrays are stored as pairs of reals under a marked name.
    flat = {
        _COMPLEX + name if np.iscomplexobj(a) else name: _as_real(np.asarray(a, order="C"))
        for name, a in arrays.items()
    }
    text = json.dumps(metadata)
    header = {"bifactor": kind, "format": str(FORMAT), "json": text, "checksum": _checksum(flat, text)}
    write_atomically(Path(path), *to_parts(flat, header))


def to_parts(arrays: dict[str, Array], metadata: dict[str, str]) -> list[bytes | memoryview]:
    """The parts of a safetensors file: its header and the arrays, which are not copied.

    The library's own `save` copies all of them at once, which takes as much memory again as the run. Arrays with longer
    items come first, so that each array begins at a multiple of the length of its items.
    """
    names = sorted(arrays, key=lambda name: (-arrays[name].dtype.itemsize, name))
    header: dict[str, Any] = {"__metadata__": metadata}
    end = 0
    for name in names:
        start, end, dtype = end, end + arrays[name].nbytes, arrays[name].dtype
        kind = "BOOL" if dtype.kind == "b" else f"{_LETTERS[dtype.kind]}{8 * dtype.itemsize}"
        header[name] = {"dtype": kind, "shape": arrays[name].shape, "data_offsets": (start, end)}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    whole = (arrays[name].reshape(-1).view(np.uint8).data for name in names if arrays[name].size)
    return [len(text).to_bytes(8, "little"), text, *whole]


def write_atomically(path: Path, *parts: bytes | memoryview) -> None:
    """Write to a temporary file, flush it to disk, then rename: no crash leaves half a file. Links are followed."""
    place = Path(os.path.realpath(path))
    temporary = temporary_for(place)
    try:
        with open(temporary, "xb") as file:
            file.writelines(parts)
            file.flush()
            os.fsync(file.fileno())
        rename(temporary, place)
    except BaseException as error:
        discard(temporary)
        if not isinstance(error, OSError):
            raise
        raise FileError(
            f"Cannot write {path}: {error.strerror or error}. Check the folder and the free space."
        ) from None


def rename(temporary: Path, place: Path) -> None:
    """Rename a file; only a regular file may be replaced."""
    kind = _other_than_file(place)
    if kind is not None:
        raise OSError(f"it is {kind}, and only files are replaced")
    os.replace(temporary, place)


def require_writable(path: Path, folder: bool = False) -> None:
    """Raise `InputError` unless a file, or a folder, can be created next to `path` and renamed to it.

    Unfinished files and folders that earlier processes left there are deleted.
    """
    place = Path(os.path.realpath(path))
    if not os.path.isdir(place.parent):
        raise InputError(f"{path} is in a folder that does not exist. Create it first.")
    if len(os.fsencode(place.name)) > LONGEST:
        raise InputError(f"The name of {path} has more than {LONGEST} bytes. Choose a shorter one.")
    if os.path.isdir(place) and not folder:
        raise InputError(f"{path} is a folder. Pass the name of a file.")
    kind = _other_than_file(place)
    if kind is not None and not (folder and os.path.isdir(place)):
        raise InputError(f"{path} is {kind}, and only files are replaced. Choose another name.")
    try:
        tempfile.TemporaryFile(dir=place.parent).close()
    except OSError as error:
        raise InputError(f"No file can be written next to {path}: {error.strerror}. Choose another folder.") from None
    sweep(place)


def read(path: str | os.PathLike[str], kind: str) -> tuple[dict[str, Array], dict[str, Any]]:
    """The arrays and metadata of a file that `write` made with the same `kind`."""
    name = os.fspath(path)
    try:
        if (other := _other_than_file(Path(os.path.realpath(name)))) is not None:
            raise OSError(f"it is {other}")
        with safe_open(name, framework="np") as file:
            header = file.metadata() or {}
            flat = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        if header.get("bifactor") != kind:
            raise FileError(f"{path} is not a bifactor {kind}. It may have been written by something else.")
        number = int(header.get("format", 1))
        if number > FORMAT:
            raise FileError(f"{path} was written by a later version of bifactor. Use that version to read it.")
        if (number > 1 or "checksum" in header) and header.get("checksum") != _checksum(flat, header["json"]):
            raise FileError(f"{path} is damaged: its content does not match its checksum. Write it again.")
        metadata = json.loads(header["json"])
        if not isinstance(metadata, dict):
            raise ValueError("its metadata are not an object")
        return {name.removeprefix(_COMPLEX): _restore(name, a) for name, a in flat.items()}, metadata
    except _UNREADABLE as error:
        if isinstance(error, FileError):
            raise
        said = " ".join(str(error).split()).rstrip(".")
        raise FileError(f"Cannot read {path}: {said}. The file is missing, truncated or of another kind.") from None


def _other_than_file(place: Path) -> str | None:
    """A short description of a file that is not regular, or None. All links except circular ones have been followed."""
    try:
        kind = stat.S_IFMT(os.lstat(place).st_mode)
    except OSError:
        return None
    return None if kind == stat.S_IFREG else _SPOKEN.get(kind, "a device")


def _checksum(arrays: dict[str, Array], text: str) -> str:
    total = hashlib.blake2b(text.encode(), digest_size=16)
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        total.update(f"{name} {array.dtype.str} {array.shape}".encode())
        if array.size:
            total.update(array.reshape(-1).view(np.uint8).data)
    return total.hexdigest()


def _as_real(a: Array) -> Array:
    return a.view(a.real.dtype).reshape(*a.shape, 2) if np.iscomplexobj(a) else a


def _restore(name: str, a: Array) -> Array:
    if not name.startswith(_COMPLEX):
        return a
    if a.dtype not in (np.float32, np.float64) or a.shape[-1:] != (2,):
        raise ValueError(f"{name} is not an array of complex numbers")
    paired = np.ascontiguousarray(a)
    return paired.view(np.result_type(a.dtype, np.complex64)).reshape(a.shape[:-1])


# Exchange two folders, in one step if the system can.

HERE, EXCHANGE = -100, 2
"""AT_FDCWD and RENAME_EXCHANGE of Linux."""


def exchange(new: Path, old: Path) -> None:
    """Exchange the names of two folders.

    On systems other than Linux, and on file systems that cannot do this in one step, it takes three: a process that is
    killed between them leaves `old` under another name, and `sweep` restores it.
    """
    if _exchanged(new, old):
        return
    aside = aside_of(old)
    try:
        old.rename(aside)
        new.rename(old)
    except BaseException:
        if aside.exists() and not old.exists():
            aside.rename(old)
        raise
    aside.rename(new)


def _exchanged(new: Path, old: Path) -> bool:
    """Try it in one step, and return whether the system has done it."""
    if not sys.platform.startswith("linux"):
        return False
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is None:  # a C library from before 2018
        return False
    return rename(HERE, os.fsencode(new), HERE, os.fsencode(old), ctypes.c_uint(EXCHANGE)) == 0


# Files and folders that are written completely or not at all, and replace others only with `force`.
#
# Links are followed. Only regular files and folders that bifactor wrote are replaced; devices, pipes and other folders
# raise an error. What a killed process left behind is deleted by the next write to the same place.


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
