"""Damaged files: bytes, numbers and fields changed at random."""

import gzip
import io
import re
import tokenize
import zipfile
import zlib

import numpy as np

NASTY = (
    b"nan", b"inf", b"-inf", b"-1", b"0", b"-0", b"1e309", b"1e-400", b"99999999999999999999", b"-9223372036854775808",
    b"2147483648", b"4294967296", b"1_0", b"0x10", b"", b" ", b"\xff", b"\xed\xa0\x80", b"\xc2\xa0", b'"', b'""',
    b"null", b"true", b"[]", b"{}", b"1" * 400, b"\0", b"\r", b"\n", b",", b"\xe2\x80\xa8", b"\xc2\xb2", b"[" * 3000,
)  # fmt: skip

NUMBER = re.compile(rb"-?\d+(?:\.\d+)?(?:[eE]-?\d+)?")
FIELD = re.compile(rb"[^,;\t \n:{}\[\]]+[,;\t \n:{}\[\]]?")

VALUES = (0, 1, -1, 2, 5, 127, 255, 2**31 - 1, -(2**31), 2**31, 10**9, 2**63 - 1, -(2**63), 10**18)
TYPES = (
    "?",
    "i1",
    "u1",
    "i4",
    "<i8",
    ">i8",
    "u8",
    "f2",
    "f4",
    ">f8",
    "f8",
    "g",
    "c8",
    "c16",
    "S3",
    "U3",
    "M8[s]",
    "V4",
)


UNREADABLE = (ValueError, EOFError, OSError, OverflowError, MemoryError, SyntaxError, SystemError, tokenize.TokenError)
"""Exceptions that NumPy raises for damaged arrays."""


def changed(rng: np.random.Generator, content: bytes) -> bytes:
    """Bytes with up to three changes."""
    for _ in range(int(rng.integers(1, 4))):
        content = CHANGES[int(rng.integers(len(CHANGES)))](rng, content)
    return content


def _place(rng: np.random.Generator, content: bytes) -> int:
    return int(rng.integers(len(content) + 1))


def flip(rng: np.random.Generator, content: bytes) -> bytes:
    if not content:
        return content
    at = int(rng.integers(len(content)))
    return content[:at] + bytes([int(rng.integers(256))]) + content[at + 1 :]


def flip_bit(rng: np.random.Generator, content: bytes) -> bytes:
    if not content:
        return content
    at = int(rng.integers(len(content)))
    return content[:at] + bytes([content[at] ^ (1 << int(rng.integers(8)))]) + content[at + 1 :]


def cut(rng: np.random.Generator, content: bytes) -> bytes:
    return content[: _place(rng, content)]


def duplicate(rng: np.random.Generator, content: bytes) -> bytes:
    a, b = sorted((_place(rng, content), _place(rng, content)))
    return content[:b] + content[a:b] + content[b:]


def remove(rng: np.random.Generator, content: bytes) -> bytes:
    a = _place(rng, content)
    return content[:a] + content[a + int(rng.integers(1, 9)) :]


def insert(rng: np.random.Generator, content: bytes) -> bytes:
    at = _place(rng, content)
    return content[:at] + NASTY[int(rng.integers(len(NASTY)))] + content[at:]


def swap_number(rng: np.random.Generator, content: bytes) -> bytes:
    return _swapped(rng, content, NUMBER, NASTY[int(rng.integers(len(NASTY)))])


def drop_field(rng: np.random.Generator, content: bytes) -> bytes:
    return _swapped(rng, content, FIELD, b"")


def _swapped(rng: np.random.Generator, content: bytes, pattern: re.Pattern[bytes], new: bytes) -> bytes:
    found = list(pattern.finditer(content))
    if not found:
        return content
    one = found[int(rng.integers(len(found)))]
    return content[: one.start()] + new + content[one.end() :]


CHANGES = (flip, flip_bit, cut, duplicate, remove, insert, swap_number, swap_number, drop_field)


def changed_array(rng: np.random.Generator, array: np.ndarray) -> np.ndarray:
    """An array with other numbers, another type or another shape."""
    way = int(rng.integers(6))
    with np.errstate(all="ignore"):
        try:
            if way == 0:
                return array.astype(TYPES[int(rng.integers(len(TYPES)))])
            if way == 1:
                return array[: int(rng.integers(array.shape[0] + 1))] if array.ndim else array[None]
            if way == 2:
                return np.concatenate([array, array]) if array.ndim else array[None]
            if way == 3:
                return array.reshape(-1, 1) if array.ndim == 1 else array.reshape(-1)
            copy = array.copy().reshape(-1)
            some = rng.integers(copy.size, size=int(rng.integers(1, 4)))
            if copy.dtype.kind == "f":
                copy[some] = rng.choice([np.nan, np.inf, -np.inf, 1e300, -1.0, 0.0])
            elif copy.dtype.kind in "iu":
                info = np.iinfo(copy.dtype)
                copy[some] = min(max(VALUES[int(rng.integers(len(VALUES)))], info.min), info.max)
            else:
                copy.view(np.uint8)[int(rng.integers(copy.nbytes))] = int(rng.integers(256))
            return copy.reshape(array.shape)
        except (ValueError, TypeError, IndexError, RuntimeError, SystemError):
            return array


def changed_npz(rng: np.random.Generator, content: bytes) -> bytes:
    """An archive with other arrays and right checksums; or with other bytes."""
    if rng.random() < 0.2:
        return changed(rng, content)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {entry.filename: archive.read(entry) for entry in archive.infolist()}
    for _ in range(int(rng.integers(1, 3))):
        name = list(members)[int(rng.integers(len(members)))]
        way = rng.random()
        if way < 0.1:
            members.pop(name)
            if not members:
                break
        elif way < 0.3:
            members[name] = changed(rng, members[name])
        else:
            members[name] = _changed_npy(rng, members[name])
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED if rng.random() < 0.5 else zipfile.ZIP_STORED) as archive:
        for name, member in members.items():
            archive.writestr(name, member)
    return out.getvalue()


def _changed_npy(rng: np.random.Generator, member: bytes) -> bytes:
    try:
        array = np.load(io.BytesIO(member))
    except UNREADABLE:  # it was changed before
        return changed(rng, member)
    out = io.BytesIO()
    np.save(out, changed_array(rng, array))
    return out.getvalue()


def changed_gzip(rng: np.random.Generator, content: bytes) -> bytes:
    """A file with other content and a right checksum; or with other bytes."""
    if rng.random() < 0.5:
        return changed(rng, content)
    try:
        return gzip.compress(changed(rng, gzip.decompress(content)), 1)
    except (OSError, EOFError, zlib.error):
        return content
