"""The manifest of a block store, a JSON file that is written last: a folder without it is not finished."""

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bifactor.arrays import Array
from bifactor.errors import FileError, InputError
from bifactor.running import files
from bifactor.tables.names import Names
from bifactor.tables.names_file import packed_names, unpacked_names
from bifactor.tables.observations import Origin
from bifactor.tables.source import reading
from bifactor.tables.store.block_file import Header

MANIFEST, NAMES, MARGINALS = "manifest.json", "names.safetensors", "marginals.safetensors"

FORMAT = 1

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


def block_name(number: int) -> str:
    return f"block-{number:05d}.bin"


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write a file atomically."""
    files.put(folder / MANIFEST, signed({"bifactor": "block store", "format": FORMAT, **asdict(manifest)}))


def signed(content: dict[str, Any]) -> bytes:
    """JSON with a checksum."""
    text = json.dumps(content, ensure_ascii=False, default=_listed)
    return json.dumps({"content": text, "checksum": _checksum(text)}, indent=1).encode()


def unsigned(path: Path) -> dict[str, Any]:
    """The inverse of `signed`, for a file."""
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
    if not folder.is_dir():
        raise FileError(f"There is no folder {folder}. Write a block store with bifactor partition.")
    path = folder / MANIFEST
    if not path.is_file():
        raise FileError(f"{folder} is not a block store, or is not finished. Write it with bifactor partition.")
    content = unsigned(path)
    if content.pop("bifactor", None) != "block store":
        raise FileError(f"{path} is not the manifest of a block store. Write one with bifactor partition.")
    number = content.pop("format", None)
    if number != FORMAT:
        raise FileError(f"{path} has format {number}, but this version of bifactor reads {FORMAT}. Partition again.")
    try:
        return restored(content)
    except _DAMAGE:
        raise FileError(f"{path} is damaged: some of its content is missing. Partition the data again.") from None


def restored(content: dict[str, Any]) -> Manifest:
    """From JSON."""
    values, origin = dict(content["values"]), dict(content["origin"])
    if values["levels"] is not None:
        values["levels"] = tuple((float(value), int(times)) for value, times in values["levels"])
    origin["header"] = tuple(origin["header"])
    return Manifest(
        **{
            **content,
            "shape": tuple(content["shape"]),
            "values": Values(**values),
            "origin": Origin(**origin),
            "blocks": tuple(Header(*block) for block in content["blocks"]),
        }
    )


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


def read_marginals(folder: Path, id: str, shape: tuple[int, int]) -> tuple[Array, Array]:
    """How many observations each row and each column has."""
    path = folder / MARGINALS
    arrays, metadata = files.read(path, "marginals")
    _require_id(path, metadata, id)
    found = arrays.get("rows", np.empty(0)), arrays.get("columns", np.empty(0))
    if (found[0].size, found[1].size) != shape:
        raise FileError(f"{path} counts {found[0].size} rows, {found[1].size} columns, not {shape}. Partition again.")
    return found[0].astype(np.int64), found[1].astype(np.int64)


def _require_id(path: Path, metadata: dict[str, Any], id: str) -> None:
    if metadata.get("id") != id:
        raise FileError(f"{path} belongs to another block store. Partition the data again, or restore the file.")


def _checksum(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _listed(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise InputError(f"{value!r} cannot be written to a manifest. Pass names and numbers.")
