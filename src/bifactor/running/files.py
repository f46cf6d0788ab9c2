"""Files that are written whole or not at all, and arrays with a little metadata in one of them."""

import json
import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as to_bytes

from bifactor.arrays import Array
from bifactor.errors import FileError, InputError

FORMAT = 1
"""Of files. Those of earlier formats can be read, later ones are refused; one that names none is of the first."""

_COMPLEX = "complex:"


def write(path: str | os.PathLike[str], kind: str, arrays: dict[str, Array], metadata: dict[str, Any]) -> None:
    """Write arrays and metadata to one safetensors file."""
    # safetensors has no double complex, so complex arrays travel as pairs of reals under a marked name.
    flat = {
        _COMPLEX + name if np.iscomplexobj(a) else name: _as_real(np.asarray(a, order="C"))
        for name, a in arrays.items()
    }
    blob = to_bytes(flat, metadata={"bifactor": kind, "format": str(FORMAT), "json": json.dumps(metadata)})
    put(Path(path), blob)


def put(path: Path, blob: bytes) -> None:
    """Write to a temporary file beside `path`, flush it to disk, then rename: no crash leaves half a file."""
    temporary = path.with_name(f".{path.name}.{uuid4().hex}.tmp")
    try:
        with open(temporary, "xb") as file:
            file.write(blob)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException as error:
        with suppress(OSError):  # the folder may be gone with it
            temporary.unlink(missing_ok=True)
        if not isinstance(error, OSError):
            raise
        raise FileError(
            f"Cannot write {path}: {error.strerror or error}. Check the folder and the free space."
        ) from None


def require_writable(path: Path) -> None:
    """Raise `InputError` unless a file can be made beside `path` and renamed to it."""
    folder = path.absolute().parent
    if not folder.is_dir():
        raise InputError(f"{path} is in a folder that does not exist. Create it first.")
    if path.is_dir():
        raise InputError(f"{path} is a folder. Pass the name of a file.")
    try:
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise InputError(f"No file can be written beside {path}: {error.strerror}. Choose another folder.") from None


def read(path: str | os.PathLike[str], kind: str) -> tuple[dict[str, Array], dict[str, Any]]:
    """The arrays and metadata of a file that `write` made with the same `kind`."""
    try:
        with safe_open(os.fspath(path), framework="np") as file:
            header = file.metadata() or {}
            flat = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        if header.get("bifactor") != kind:
            raise FileError(f"{path} is not a bifactor {kind}. It may have been written by something else.")
        if int(header.get("format", 1)) > FORMAT:
            raise FileError(f"{path} was written by a later version of bifactor. Use that version to read it.")
        metadata = json.loads(header["json"])
    except (SafetensorError, OSError, KeyError, ValueError) as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"Cannot read {path}: {error}. The file is missing, truncated or of another kind.") from None
    return {name.removeprefix(_COMPLEX): _restore(name, a) for name, a in flat.items()}, metadata


def _as_real(a: Array) -> Array:
    return a.view(a.real.dtype).reshape(*a.shape, 2) if np.iscomplexobj(a) else a


def _restore(name: str, a: Array) -> Array:
    if not name.startswith(_COMPLEX):
        return a
    paired = np.ascontiguousarray(a)
    return paired.view(np.result_type(a.dtype, np.complex64)).reshape(a.shape[:-1])
