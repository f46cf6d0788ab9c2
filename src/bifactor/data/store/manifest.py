"""The manifest of a block store, a JSON file that is written last: a folder without it is not finished."""

import hashlib
import json
import math
import os
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bifactor.arrays import Array
from bifactor.data.names import Names, packed_names, unpacked_names
from bifactor.data.observations import Origin
from bifactor.data.store.block_file import CODES, TYPES, Header, smallest_type
from bifactor.data.store.census_reference import LEVELS
from bifactor.data.text import reading
from bifactor.errors import FileError, InputError
from bifactor.running import files
from bifactor.validation import is_count

MANIFEST, NAMES, MARGINALS = "manifest.json", "names.safetensors", "marginals.safetensors"

FORMAT = 1

COUNT = 4
"""Least number of bytes for the number of observations of a row or column."""

_DAMAGE = (ValueError, TypeError, KeyError, AttributeError, IndexError, RecursionError)


@dataclass(frozen=True)
class Values:
    """Statistics of all values."""

    size: int
    total: float
    """Their sum."""
    squares: float
    """The sum of their squares."""
    least: float
    largest: float
    whole: bool
    """Whether all of them are integers."""
    levels: tuple[tuple[float, int], ...] | None
    """The distinct values and how often each occurs; None if there are more than 256."""


@dataclass(frozen=True)
class Manifest:
    """Everything about a store except the blocks, the names and the marginals."""

    id: str
    shape: tuple[int, int]
    flipped: bool
    dtype: str
    weighted: bool
    named: bool
    """Whether rows and columns have names other than numbers from 0."""
    values: Values
    origin: Origin
    blocks: tuple[Header, ...]
    request: dict[str, Any]
    """The arguments and the files of the source."""

    @property
    def fingerprint(self) -> str:
        """A hash of the content of all blocks."""
        told = [self.shape, self.flipped, self.dtype, [block.fingerprint for block in self.blocks]]
        if self.values.levels is not None:
            told.append([value for value, _ in self.values.levels])
        return hashlib.blake2b(json.dumps(told).encode(), digest_size=16).hexdigest()


def _is_count(value: Any, least: int = 0, most: int = 1 << 53) -> bool:
    return is_count(value, least) and value <= most


def _is_number(value: Any) -> bool:
    return isinstance(value, float) and math.isfinite(value)


def _is_sum(value: Any) -> bool:
    """A sum of finite numbers may overflow."""
    return isinstance(value, float) and value == value


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_hash(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch("[0-9a-f]{32}", value) is not None


def _is_list(test: Callable[[Any], bool], least: int, most: int) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, (list, tuple)) and least <= len(value) <= most and all(map(test, value))


def _is_level(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and len(value) == 2 and _is_number(value[0]) and _is_count(value[1], 1)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_type(value: Any) -> bool:
    return _is_count(value, 0, len(TYPES) - 1)


def _is_integer_type(value: Any) -> bool:
    return _is_count(value, 1, CODES + 3)


def _is_side(value: Any) -> bool:
    return _is_count(value, 1, np.iinfo(np.int32).max)


MANIFEST_FIELDS: dict[str, Callable[[Any], bool]] = {
    "id": _is_hash,
    "shape": _is_list(_is_side, 2, 2),
    "flipped": _is_flag,
    "dtype": lambda value: value in ("float32", "float64"),
    "weighted": _is_flag,
    "named": _is_flag,
    "values": lambda value: isinstance(value, dict),
    "origin": lambda value: isinstance(value, dict),
    "blocks": lambda value: isinstance(value, list) and all(isinstance(block, list) for block in value),
    "request": lambda value: isinstance(value, dict),
}
VALUES_FIELDS: dict[str, Callable[[Any], bool]] = {
    "size": lambda value: _is_count(value, 1),
    "total": _is_sum,
    "squares": _is_sum,
    "least": _is_number,
    "largest": _is_number,
    "whole": _is_flag,
    "levels": lambda value: value is None or _is_list(_is_level, 1, LEVELS)(value),
}
ORIGIN_FIELDS: dict[str, Callable[[Any], bool]] = {
    "layout": _is_text,
    "header": _is_list(_is_text, 2, 3),
    "missing": _is_count,
    "wide": _is_flag,
}
HEADER_FIELDS: dict[int, Callable[[Any], bool]] = dict(
    enumerate([_is_hash, *6 * [_is_count], _is_type, _is_type, *3 * [_is_integer_type], _is_hash])
)
"""Tests of the fields of JSON objects and of headers, which come from a file that anybody may have written."""


def block_name(number: int) -> str:
    return f"block-{number:05d}.bin"


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write a file atomically."""
    files.write_atomically(
        folder / MANIFEST, with_checksum({"bifactor": "block store", "format": FORMAT, **asdict(manifest)})
    )


def with_checksum(content: dict[str, Any]) -> bytes:
    """JSON with a checksum."""
    text = json.dumps(content, default=_listed)  # in ASCII: names of files may hold what UTF-8 cannot encode
    return json.dumps({"content": text, "checksum": _checksum(text)}, indent=1).encode()


def read_checked(path: Path) -> dict[str, Any]:
    """The inverse of `with_checksum`, for a file."""
    with reading(path):
        blob = path.read_bytes()
    try:
        outside = json.loads(blob)
        if outside["checksum"] != _checksum(outside["content"]):
            raise FileError(f"{path} is damaged: its checksum does not match. Partition the data again, or restore it.")
        return dict(json.loads(outside["content"]))
    except _DAMAGE:
        raise FileError(
            f"{path} is not a file of a block store, or it is damaged. Partition the data again, or restore it."
        ) from None


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a finished store; raise `FileError` if there is none."""
    if not os.path.isdir(folder):
        raise FileError(f"There is no folder {folder}. Write a block store with bifactor partition.")
    path = folder / MANIFEST
    if not path.is_file():
        raise FileError(f"{folder} is not a block store, or is not finished. Write it with bifactor partition.")
    content = read_checked(path)
    if content.pop("bifactor", None) != "block store":
        raise FileError(f"{path} is not the manifest of a block store. Write one with bifactor partition.")
    number = content.pop("format", None)
    if number != FORMAT:
        said = str(number)[:40]
        raise FileError(f"{path} has format {said}, but this version of bifactor reads {FORMAT}. Partition again.")
    try:
        found = parse_manifest(content)
        _require_blocks(found)
        least = COUNT * sum(found.shape)
        if (folder / MARGINALS).stat().st_size < least:
            raise ValueError(f"its shape is {found.shape[0]}×{found.shape[1]}, but {MARGINALS} is smaller")
    except (ValueError, OSError) as error:
        fact = f"there is no {MARGINALS} beside it" if isinstance(error, OSError) else error
        raise FileError(f"{path} is damaged: {fact}. Partition the data again, or restore it.") from None
    return found


def parse_manifest(content: dict[str, Any]) -> Manifest:
    """From JSON, with blocks that are yet to be compared; raise `ValueError`, with part of a sentence, if not valid."""
    _require_fields(content, MANIFEST_FIELDS, "content")
    values, origin = content["values"], content["origin"]
    _require_fields(values, VALUES_FIELDS, "values")
    _require_fields(origin, ORIGIN_FIELDS, "origin")
    for block in content["blocks"]:
        _require_fields(dict(enumerate(block)), HEADER_FIELDS, "blocks")
    levels = None if values["levels"] is None else tuple((float(value), times) for value, times in values["levels"])
    found = Manifest(
        **{
            **content,
            "shape": tuple(content["shape"]),
            "values": Values(**{**values, "levels": levels}),
            "origin": Origin(**{**origin, "header": tuple(origin["header"])}),
            "blocks": tuple(Header(*block) for block in content["blocks"]),
        }
    )
    if found.flipped != (found.shape[0] < found.shape[1]):
        raise ValueError(f"flipped is {found.flipped} for {found.shape[0]}×{found.shape[1]}")
    _require_levels(found.values)
    return found


def _require_fields(content: Any, fields: dict[Any, Callable[[Any], bool]], what: str) -> None:
    if not isinstance(content, dict) or set(content) != set(fields):
        raise ValueError(f"some of its {what} is missing, or there is more than is known")
    for name, is_valid in fields.items():
        if not is_valid(content[name]):
            raise ValueError(f"{what} has {str(content[name])[:40]!r} for {name}")


def _require_levels(values: Values) -> None:
    if values.least > values.largest:
        raise ValueError(f"values run from {values.least} to {values.largest}")
    if values.levels is None:
        return
    numbers = [value for value, _ in values.levels]
    if numbers != sorted(set(numbers)) or [values.least, values.largest] != [numbers[0], numbers[-1]]:
        raise ValueError("the distinct values are not in order")
    if sum(times for _, times in values.levels) != values.size:
        raise ValueError("the distinct values do not add up to all values")


def _require_blocks(manifest: Manifest) -> None:
    """Raise `ValueError` unless the blocks divide the longer side, and hold what the manifest says."""
    longer, shorter = max(manifest.shape), min(manifest.shape)
    number = TYPES.index(np.dtype(manifest.dtype).str)
    values = number if manifest.values.levels is None else CODES
    weights, at, size = number if manifest.weighted else 0, 0, 0
    for place, block in enumerate(manifest.blocks):
        tiled = (block.n_tiles - 1) * block.width < shorter <= block.n_tiles * block.width
        types = (block.values, block.weights, block.columns) == (
            values,
            weights,
            smallest_type(max(block.width - 1, 0)),
        )
        own = block.store == manifest.id and block.n_inner == shorter
        if block.start != at or block.stop <= at or block.size < 1 or not (tiled and types and own):
            raise ValueError(f"block {place} does not belong to the others")
        at, size = block.stop, size + block.size
    if at != longer or size != manifest.values.size:
        raise ValueError(f"its blocks have {size} values in {at} ranges, not {manifest.values.size} in {longer}")


def write_sides(folder: Path, id: str, names: tuple[Names | None, Names | None], counts: tuple[Array, Array]) -> None:
    """Write the names of rows and columns, and how many observations each has."""
    if names[0] is not None and names[1] is not None:
        arrays, kinds = packed_names(names[0], names[1])
        files.write(folder / NAMES, "names", arrays, {"id": id, "types": kinds})
    small = [side.astype(np.uint32) if side.max() < 1 << 32 else side for side in counts]
    files.write(folder / MARGINALS, "marginals", {"rows": small[0], "columns": small[1]}, {"id": id})


def read_names(folder: Path, id: str, shape: tuple[int, int]) -> tuple[Names, Names]:
    """The names of rows and columns."""
    path = folder / NAMES
    arrays, metadata = files.read(path, "names")
    _require_id(path, metadata, id)
    try:
        rows, cols = (unpacked_names(arrays, side, metadata["types"][side]) for side in ("row", "column"))
    except _DAMAGE as error:
        raise FileError(f"{path} is damaged: {error}. Partition the data again.") from None
    if (len(rows), len(cols)) != shape:
        raise FileError(f"{path} has names of {len(rows)} rows and {len(cols)} columns, not {shape}. Partition again.")
    return rows, cols


def read_marginals(folder: Path, facts: Manifest) -> tuple[Array, Array]:
    """How many observations each row and each column has."""
    shape, size = facts.shape, facts.values.size
    path = folder / MARGINALS
    arrays, metadata = files.read(path, "marginals")
    _require_id(path, metadata, facts.id)
    found = arrays.get("rows", np.empty(0)), arrays.get("columns", np.empty(0))
    if (found[0].shape, found[1].shape) != ((shape[0],), (shape[1],)):
        raise FileError(f"{path} counts {found[0].size} rows, {found[1].size} columns, not {shape}. Partition again.")
    counts = [side.astype(np.int64) for side in found if side.dtype in (np.uint32, np.int64)]
    if len(counts) < 2 or any(np.any((side < 0) | (side > size)) or side.sum() != size for side in counts):
        raise FileError(f"{path} does not count {size:,} observations. Partition the data again, or restore the file.")
    return counts[0], counts[1]


def _require_id(path: Path, metadata: dict[str, Any], id: str) -> None:
    if metadata.get("id") != id:
        raise FileError(f"{path} belongs to another block store. Partition the data again, or restore the file.")


def _checksum(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _listed(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise InputError(f"{value!r} cannot be written to a manifest. Pass names and numbers.")
