"""A block as a file: a header, and columns in the smallest types that hold them, little-endian.

After the header come, each at a multiple of 64 bytes: values (codes of one byte, or floating-point numbers), weights if
there are any, the column of each entry within its tile, the number of entries of each run (tile by tile, row by row),
and the number of entries of each column.
"""

import hashlib
import os
import struct
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bifactor.arrays import Array
from bifactor.data.store.census_reference import ERROR, LEAST, MOST
from bifactor.data.text import reading
from bifactor.errors import FileError, InputError
from bifactor.executors import Workspace

MAGIC, VERSION = b"bfblock\0", 1

ALIGNED = 64

TYPES = ("", "<u1", "<u2", "<u4", "<u8", "<f4", "<f8")
"""Types of columns, by their number in the header; 0 means that there is no such column."""

CODES = TYPES.index("<u1")
"""The type of values that are stored as codes."""

_FIXED = struct.Struct("<8sI16sQQQQQQ5B16s")
HEADER = -(-_FIXED.size // ALIGNED) * ALIGNED


class Header(NamedTuple):
    """The header of a block."""

    store: str
    """The id of the store that it belongs to."""
    start: int
    stop: int
    """Its range on the longer side."""
    size: int
    n_inner: int
    n_tiles: int
    width: int
    values: int
    weights: int
    columns: int
    runs: int
    marginals: int
    """The types of columns, as in `TYPES`."""
    fingerprint: str
    """A hash of the content."""

    def pack(self) -> bytes:
        numbers = self[1:7]
        fixed = _FIXED.pack(
            MAGIC, VERSION, bytes.fromhex(self.store), *numbers, *self[7:12], bytes.fromhex(self.fingerprint)
        )
        return fixed.ljust(HEADER, b"\0")

    @property
    def sections(self) -> dict[str, tuple[int, int, np.dtype[Any]]]:
        """The start, length and type of each column."""
        rows = self.stop - self.start
        lengths = (self.size, self.size, self.size, self.n_tiles * rows, self.n_inner)
        found, at = {}, HEADER
        names = ("values", "weights", "columns", "runs", "marginals")
        for name, kind, length in zip(names, self[7:12], lengths, strict=True):
            if kind:
                dtype = np.dtype(TYPES[kind])
                found[name] = (at, length, dtype)
                at += -(-length * dtype.itemsize // ALIGNED) * ALIGNED
        return found

    @property
    def bytes(self) -> int:
        """The size of the whole file."""
        at, length, dtype = self.sections["marginals"]
        return at + -(-length * dtype.itemsize // ALIGNED) * ALIGNED


def parse_header(blob: bytes) -> Header | None:
    """The header at the beginning of a file; None if there is none."""
    if len(blob) < HEADER or not blob.startswith(MAGIC):
        return None
    _, version, store, *numbers, fingerprint = _FIXED.unpack(blob[: _FIXED.size])
    return Header._make([store.hex(), *numbers, fingerprint.hex()]) if version == VERSION else None


def smallest_type(largest: int) -> int:
    """The number of the smallest type for integers up to `largest`."""
    return 1 + next(k for k, bits in enumerate((8, 16, 32, 64)) if largest < 1 << bits)


def encode_columns(columns: dict[str, Array]) -> list[bytes]:
    """Columns as bytes, as they follow the header in a file."""
    parts = []
    for column in columns.values():
        blob = np.ascontiguousarray(column).tobytes()
        parts += [blob, b"\0" * (-len(blob) % ALIGNED)]
    return parts


def digest(header: Header, parts: "list[bytes] | list[memoryview]") -> str:
    """A hash of the content of a block, which does not depend on its store."""
    plain = header._replace(store="0" * 32, fingerprint="0" * 32)
    total = hashlib.blake2b(plain.pack(), digest_size=16)
    for part in parts:
        total.update(part)
    return total.hexdigest()


def read_block(path: Path, header: Header, space: Workspace) -> tuple[Array, int]:
    """The content of the whole file, in the workspace; raise `FileError` if it does not match the header.

    Also returns the time of the last change of the file.
    """
    if path.exists() and not path.is_file():  # reading a pipe would wait for ever
        raise FileError(f"{path} is not a file. {ADVICE}")
    with reading(path), open(path, "rb", buffering=0) as file:
        status, at = os.fstat(file.fileno()), 0
        if status.st_size != header.bytes:  # before there is memory for so many
            _require_header(path, file.read(HEADER), header)
            raise FileError(f"{path} has {status.st_size} bytes, but should have {header.bytes}. {ADVICE}")
        buffer = space.take("file", header.bytes, np.uint8)
        while at < header.bytes:
            count = file.readinto(buffer.data[at:])
            if not count:
                raise FileError(f"{path} was truncated while it was read. {ADVICE}")
            at += count
    _require_header(path, buffer[:HEADER].tobytes(), header)
    return buffer, status.st_mtime_ns


ADVICE = "Partition the data again, or restore the file."


def _require_header(path: Path, found: bytes, header: Header) -> None:
    if found == header.pack():
        return
    if not found.startswith(MAGIC):
        raise FileError(f"{path} is not a block of bifactor. {ADVICE}")
    version = int.from_bytes(found[8:12], "little")
    if version != VERSION:
        raise FileError(f"{path} has format {version}, but this version of bifactor reads {VERSION}. {ADVICE}")
    if found[12:28].hex() != header.store:
        raise FileError(f"{path} belongs to another block store. {ADVICE}")
    raise FileError(f"{path} is not the block in the manifest: its header differs. {ADVICE}")


# Writes the bucket of a block as a file.


# The type of values in a block store.

PRECISE = 1e-6
"""Largest rounding error in single precision, as a share of the range of values."""

SMALLEST, LARGEST = 1e-2, 1e9
"""Least range and largest magnitude of values in single precision: beyond them, precisions of a fit overflow."""


def dtype_name(dtype: Any) -> str | None:
    """The name of a type that a user asks for; raise `InputError` if it is not possible."""
    try:
        name = None if dtype is None else np.dtype(dtype).name
    except (TypeError, ValueError):
        name = ""
    if name not in (None, "float32", "float64"):
        raise InputError(f"dtype={dtype!r} is not possible. Choose float32 or float64.")
    return name


def precision(about: Array) -> str:
    """Single precision, unless its rounding error is too large a share of the range of values, or its range is."""
    spread = about[MOST] - about[LEAST]
    exact = about[ERROR] <= PRECISE * spread or (spread == 0 and np.isfinite(about[ERROR]))
    usual = spread == 0 or (spread >= SMALLEST and max(about[MOST], -about[LEAST]) <= LARGEST)
    return "float32" if exact and usual else "float64"
