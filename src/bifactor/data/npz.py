"""NumPy's npz files: triples, a matrix with NaN, or a sparse matrix of SciPy."""

import io
import lzma
import math
import struct
import tokenize
import zipfile
import zlib
from contextlib import suppress
from pathlib import Path
from typing import IO

import numpy as np
from scipy import sparse

from bifactor.arrays import Array
from bifactor.arrays.sparse import COMPRESSED, coordinates, require_compressed, require_diagonals, require_places
from bifactor.data.layout import USUAL, ReadOptions, plain, with_hints
from bifactor.data.names import Names
from bifactor.data.observations import Observations, Origin, observations_from_names
from bifactor.data.text import Progress, reading
from bifactor.errors import FileError, InputError

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


LARGEST_SIDE = np.iinfo(np.int64).max

LAST, SURROGATES = 0x10FFFF, (0xD800, 0xDFFF)
"""The last code point of Unicode, and the range of surrogates, which are not characters."""


def read_npz(path: Path, asked: ReadOptions, progress: Progress) -> Observations:
    """Read arrays for the row, the column and the value, or one matrix in which NaN is missing."""
    arrays = stored_arrays(path)
    progress(1, 1)
    if {"format", "shape", "data"} <= set(arrays):
        return _sparse(arrays, path)
    asked = with_hints(asked, tuple(arrays)) if asked.values is None else asked
    tables = [name for name, array in arrays.items() if array.ndim == 2 and array.dtype.kind in "biuf"]
    chosen = [asked.row, asked.col, asked.value][: 3 if asked.values else 2]
    if chosen == [None] * len(chosen) or asked.wide:
        usual = [_usual(arrays, words) for words in USUAL[: len(chosen)]]
        if asked.wide or None in usual:
            wanted = [name for name in tables if asked.value in (None, name)]
            if len(wanted) == 1:
                return _table(wanted[0], arrays[wanted[0]], path)
        chosen = usual
    names = [_name(choice, arrays, side, path) for choice, side in zip(chosen, ("row", "col", "value"), strict=False)]
    weights = None if asked.weight is None else arrays[_name(asked.weight, arrays, "weight", path)]
    return _triples([arrays[name] for name in names], names, path, weights)


def _sparse(arrays: dict[str, Array], path: Path) -> Observations:
    """Read a file of `scipy.sparse.save_npz`, checked before compiled code follows its pointers."""
    try:
        coo = coordinates(_matrix(arrays, _words(arrays["format"], "format", path)), str(path))
    except InputError as error:
        raise FileError(str(error)) from None
    except (ValueError, TypeError, KeyError, IndexError, OverflowError) as error:
        said = f"it lacks {error}" if isinstance(error, KeyError) else str(error).rstrip(".")
        raise FileError(
            f"{path} is not a sparse matrix of SciPy: {said}. Save it with scipy.sparse.save_npz."
        ) from None
    m, n = coo.shape
    values = _floats(coo.data, "data", path)
    text = f"a sparse matrix of {m}×{n}, numbered from 0"
    return _from_numbers(np.asarray(coo.row), np.asarray(coo.col), values, text, ("row", "column", "value"), path)


def _matrix(arrays: dict[str, Array], form: Array) -> sparse.sparray:
    kind, data = str(form.item()), arrays["data"]
    sizes = arrays["shape"]
    shape = tuple(sizes.tolist()) if sizes.shape == (2,) and sizes.dtype.kind in "iu" else ()
    if not shape or not all(0 <= side <= LARGEST_SIDE for side in shape):
        raise ValueError(f"its shape is {shape or sizes.dtype}, not two sizes")
    if data.dtype.kind not in "biuf":
        raise ValueError(f"its data are {data.dtype}, not real numbers")
    if kind in COMPRESSED:
        require_compressed(kind, data, arrays["indices"], arrays["indptr"], shape)
        return getattr(sparse, f"{kind}_array")((data, arrays["indices"], arrays["indptr"]), shape=shape)
    if kind == "dia":
        require_diagonals(data, arrays["offsets"], shape)
        return sparse.dia_array((data, arrays["offsets"]), shape=shape)
    if kind == "coo":
        rows, cols = arrays["coords"] if "coords" in arrays else (arrays["row"], arrays["col"])
        require_places(data, rows, cols, shape)
        return sparse.coo_array((data, (rows, cols)), shape=shape)
    raise ValueError(f"its format is {kind[:20]!r}, not one of {', '.join(COMPRESSED)}, dia and coo")


def _floats(array: Array, name: str, path: Path) -> Array:
    """Numbers in double precision, with NaN for missing ones."""
    if array.dtype.kind not in "biuf":
        raise FileError(f"{path}: {name} has dtype {array.dtype}, not numbers. Pass numbers as values.")
    with np.errstate(over="ignore"):
        values = array.astype(np.float64)
    if np.any(np.isinf(values)):
        raise FileError(f"{path}: {name} holds infinite values. Leave them out, or pass NaN.")
    return values


def _table(name: str, array: Array, path: Path) -> Observations:
    table = _floats(array, name, path)
    i, j = np.nonzero(~np.isnan(table))
    m, n = table.shape
    if table.size == 0:  # before its rows are numbered: an empty file may declare any number of them
        raise FileError(f"{path}: {name} is a matrix of {m}×{n} without any cell. Pass one with rows and columns.")
    text = f"the {m}×{n} matrix {name!r}, numbered from 0"
    values = table[i, j]
    origin = Origin(text, missing=table.size - values.size, wide=True)
    return observations_from_names((Names.numbered(m), i), (Names.numbered(n), j), values, origin)


def _triples(arrays: list[Array], names: list[str], path: Path, weights: Array | None = None) -> Observations:
    every = [*arrays, weights] if weights is not None else arrays
    if any(array.ndim != 1 for array in every) or len({array.size for array in every}) > 1:
        called = [*names, "the weights"]
        shapes = ", ".join(f"{name} {array.shape}" for name, array in zip(called, every, strict=False))
        raise FileError(f"{path} has triples of different lengths: {shapes}. Pass vectors of one length.")
    values = _floats(arrays[2], names[2], path) if len(arrays) > 2 else np.empty(0)
    w = None if weights is None else _floats(weights, "the weight", path)
    text = f"the arrays {', '.join(names)}"
    return _from_numbers(arrays[0], arrays[1], values, text, tuple(names), path, w).weighed()


def _from_numbers(
    i: Array,
    j: Array,
    values: Array,
    text: str,
    header: tuple[str, ...],
    path: Path,
    weights: Array | None = None,
) -> Observations:
    sides = []
    for side, what in ((i, "row"), (j, "column")):
        if side.dtype.kind in "SU":
            side = _words(side, what, path)
        if side.dtype == np.uint64 and side.size and side.max() > np.iinfo(np.int64).max:
            side = side.astype(str)
        if side.dtype.kind not in "iuU":
            raise FileError(f"{path}: the {what} has dtype {side.dtype}, not integers or text. Convert it.")
        sides.append(Names.of(side, what))
    return observations_from_names(sides[0], sides[1], values, Origin(text, header), weights).known()


def _words(side: Array, what: str, path: Path) -> Array:
    """Text as an array of strings; raise `FileError` if it is not valid."""
    if side.dtype.kind == "S":
        with suppress(UnicodeDecodeError):
            return np.char.decode(side, "utf-8")
    elif side.dtype.kind == "U":
        letters = np.ascontiguousarray(side).reshape(-1).view(np.dtype("u4").newbyteorder(side.dtype.byteorder))
        if not np.any((letters > LAST) | ((letters >= SURROGATES[0]) & (letters <= SURROGATES[1]))):
            return side
    raise FileError(f"{path}: the {what} is not Unicode text. Encode it in UTF-8.")


def _usual(arrays: dict[str, Array], words: frozenset[str]) -> str | None:
    found = [name for name in arrays if plain(name) in words or plain(name).removesuffix("s") in words]
    return found[0] if len(found) == 1 else None


def _name(choice: str | None, arrays: dict[str, Array], side: str, path: Path) -> str:
    if choice is None or choice not in arrays:
        raise InputError(
            f"{path} holds {', '.join(arrays) or 'nothing'}, and it is not clear which is the {side}. "
            f"Pass its name as {side}, or save one matrix with NaN."
        )
    return choice
