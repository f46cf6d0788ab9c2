"""Names of rows and columns as arrays for a file: numbers as they are, text as bytes."""

from typing import Any

import numpy as np

from bifactor.arrays import Array
from bifactor.errors import InputError
from bifactor.tables.names import Names

WHOLE = "iumMb"
"""Kinds of names that are stored as 64-bit integers."""


def packed_names(rows: Names, cols: Names) -> tuple[dict[str, Array], dict[str, str]]:
    """The names of both sides as arrays, and the type of each."""
    sides = (("row", rows), ("column", cols))
    arrays = {key: array for side, names in sides for key, array in _packed(names, side).items()}
    return arrays, {side: names.values.dtype.str for side, names in sides}


def _packed(names: Names, side: str) -> dict[str, Array]:
    """Text is stored as one sequence of bytes, with the end of each name."""
    kind = names.values.dtype.kind
    if kind in WHOLE:
        return {f"{side}:integers": names.values.astype(np.int64)}
    if kind == "f":
        return {f"{side}:numbers": names.values.astype(np.float64)}
    strange = next((name for name in names if not isinstance(name, str)), None)
    if strange is not None:
        raise InputError(
            f"The {side} name {strange!r} has type {type(strange).__name__}, which is not saved. Use text or numbers."
        )
    try:
        words = [name.encode() for name in names]
    except UnicodeEncodeError as error:
        raise InputError(f"The {side} name {error.object!r} is not Unicode text. Rename it.") from None
    ends = np.cumsum([len(word) for word in words], dtype=np.int64)
    return {f"{side}:utf8": np.frombuffer(b"".join(words), np.uint8), f"{side}:ends": ends}


def unpacked_names(arrays: dict[str, Array], side: str, kind: Any) -> Names:
    """The names of one side; raise `ValueError`, with part of a sentence, if the arrays are invalid."""
    if f"{side}:integers" in arrays:
        values = _integers(arrays[f"{side}:integers"], side, kind)
    elif f"{side}:numbers" in arrays:
        values = arrays[f"{side}:numbers"]
        if values.dtype != np.float64 or values.ndim != 1:
            raise ValueError(f"the {side} names are {values.dtype} of shape {values.shape}")
    else:
        values = _words(arrays, side)
    missing = values.dtype.kind in "fmM" and bool(np.any(values != values))
    if missing or not _are_distinct(values):
        raise ValueError(f"a {side} name is missing or repeated")
    return Names(values)


def _are_distinct(values: Array) -> bool:
    if values.dtype.kind == "O":
        return len(set(values.tolist())) == values.size
    # Numbers are mostly sorted, which is checked much faster.
    return bool(np.all(values[1:] > values[:-1])) or np.unique(values).size == values.size


def _integers(values: Array, side: str, kind: Any) -> Array:
    if values.dtype != np.int64 or values.ndim != 1:
        raise ValueError(f"the {side} names are {values.dtype} of shape {values.shape}")
    if kind is None:  # files of the first format
        return values
    try:
        dtype = np.dtype(kind)
    except (TypeError, ValueError):
        raise ValueError(f"the {side} names have the unknown type {str(kind)[:40]!r}") from None
    if dtype.kind not in WHOLE or not isinstance(kind, str):
        raise ValueError(f"the {side} names are integers but declared as {str(dtype)[:40]}")
    cast = values.astype(dtype)
    if not np.array_equal(cast.astype(np.int64), values):
        raise ValueError(f"the {side} names do not fit into {dtype}")
    return cast


def _words(arrays: dict[str, Array], side: str) -> Array:
    if f"{side}:utf8" not in arrays or f"{side}:ends" not in arrays:
        raise ValueError(f"the {side} names are missing")
    text, ends = arrays[f"{side}:utf8"], arrays[f"{side}:ends"]
    if text.dtype != np.uint8 or ends.dtype != np.int64 or text.ndim != 1 or ends.ndim != 1:
        raise ValueError(f"the {side} names are {text.dtype} and {ends.dtype}")
    starts = np.concatenate([[0], ends[:-1]]) if ends.size else ends
    if np.any(ends < starts) or (ends[-1] if ends.size else 0) != text.size:
        raise ValueError(f"the ends of the {side} names are not in order")
    content, names = text.tobytes(), np.empty(ends.size, object)
    try:
        names[:] = [content[a:b].decode() for a, b in zip(starts.tolist(), ends.tolist(), strict=True)]
    except UnicodeDecodeError:
        raise ValueError(f"a {side} name is not UTF-8") from None
    return names
