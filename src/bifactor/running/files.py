"""Files that are written completely or not at all, and arrays with metadata in such a file."""

import hashlib
import json
import os
import stat
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open

from bifactor.arrays import Array
from bifactor.errors import FileError, InputError
from bifactor.running.temporaries import LONGEST, discard, sweep, temporary_for

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
    put(Path(path), *to_parts(flat, header))


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


def put(path: Path, *parts: bytes | memoryview) -> None:
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
