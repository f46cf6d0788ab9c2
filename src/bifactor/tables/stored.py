"""NumPy's files, npy and npz, checked before memory is allocated for their arrays."""

import io
import lzma
import math
import struct
import tokenize
import zipfile
import zlib
from pathlib import Path
from typing import IO

import numpy as np

from bifactor.arrays import Array
from bifactor.errors import FileError
from bifactor.tables.source import reading

RATIO = 1100
"""Largest compression ratio of deflate."""

HEADER = 1 << 16
"""Most bytes of the header of an array."""

PACKED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""Compression methods that NumPy uses."""

DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    tokenize.TokenError,
    ValueError,
    EOFError,
    RuntimeError,  # an archive with a password, or of a kind that Python does not support
    SyntaxError,
    TypeError,
    KeyError,
    OverflowError,
)
"""Exceptions that zipfile and NumPy raise for damaged files."""


def stored_arrays(path: Path) -> dict[str, Array]:
    """The arrays of an npz file by name, or the array of an npy file."""
    with reading(path):
        try:
            with path.open("rb") as file:
                if not zipfile.is_zipfile(file):
                    file.seek(0)
                    return {"array": _array(file, path.stat().st_size, path)}
            with zipfile.ZipFile(path) as archive:
                entries = archive.infolist()
                return {entry.filename.removesuffix(".npy"): _member(archive, entry, path) for entry in entries}
        except FileError:
            raise
        except DAMAGE:
            raise FileError(
                f"{path} is not an npz file of plain arrays: it is damaged, truncated, or holds Python objects. "
                "Save it again with numpy.savez."
            ) from None


def _member(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, path: Path) -> Array:
    if entry.compress_type not in PACKED:
        raise ValueError("not a compression method of NumPy")
    ratio = 1 if entry.compress_type == zipfile.ZIP_STORED else RATIO
    with archive.open(entry) as file:
        return _array(file, min(entry.file_size, ratio * path.stat().st_size), path)


def _array(file: IO[bytes], size: int, path: Path) -> Array:
    """Read an array of at most `size` bytes."""
    start = io.BytesIO(file.read(HEADER))  # bounds the length that a damaged header can ask for
    version = np.lib.format.read_magic(start)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(start)
    if not all(type(k) is int and k >= 0 for k in shape) or math.prod(shape) * max(dtype.itemsize, 1) > size:
        raise FileError(f"{path} declares an array of shape {shape}, but is too small for it. Save it again.")
    file.seek(0)
    return np.lib.format.read_array(file, allow_pickle=False)
