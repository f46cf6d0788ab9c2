"""NumPy's npz files: triples, a table with NaN, or a sparse matrix of SciPy."""

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from bifactor.arrays import Array, floating
from bifactor.errors import FileError, InputError
from bifactor.tables.layout import USUAL, Asked, plain
from bifactor.tables.names import Names
from bifactor.tables.observations import Observations, Origin, named
from bifactor.tables.source import Progress, reading

LARGEST = 1 << 36
"""Bytes of an array."""


def read_npz(path: Path, asked: Asked, progress: Progress) -> Observations:
    """Arrays for the row, the column and the value, or one matrix of which NaN is missing."""
    arrays = _arrays(path)
    progress(1, 1)
    if {"format", "shape", "data"} <= set(arrays):
        return _sparse(path)
    tables = [name for name, array in arrays.items() if array.ndim == 2 and array.dtype.kind in "biuf"]
    chosen = [asked.row, asked.col, asked.value][: 3 if asked.values else 2]
    if chosen == [None] * len(chosen) or asked.wide:
        usual = [_usual(arrays, words) for words in USUAL[: len(chosen)]]
        if asked.wide or None in usual:
            wanted = [name for name in tables if asked.value in (None, name)]
            if len(wanted) == 1:
                return _table(wanted[0], arrays[wanted[0]])
        chosen = usual
    names = [_name(choice, arrays, side, path) for choice, side in zip(chosen, ("row", "col", "value"), strict=False)]
    weights = None if asked.weight is None else arrays[_name(asked.weight, arrays, "weight", path)]
    return _triples([arrays[name] for name in names], names, path, weights)


def _arrays(path: Path) -> dict[str, Array]:
    """The arrays of a file, none of them larger than it can be."""
    with reading(path):
        try:
            with zipfile.ZipFile(path) as archive:
                for entry in archive.infolist():
                    with archive.open(entry) as file:
                        _require_size(file, entry.file_size, path)
            with np.load(path, allow_pickle=False) as stored:
                return {name: stored[name] for name in stored.files}
        except (zipfile.BadZipFile, ValueError, EOFError):
            raise FileError(
                f"{path} is not an npz file of plain arrays: it is damaged, cut short, or holds Python objects. "
                "Save it again with numpy.savez."
            ) from None


def _require_size(file: Any, size: int, path: Path) -> None:
    """Raise `FileError` where the header of an array promises more than there is, before memory is taken for it."""
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(file)
    if int(np.prod([int(k) for k in shape], dtype=object)) * dtype.itemsize > min(size, LARGEST):
        raise FileError(f"{path} says that it holds an array of {shape}, and it does not. Save it again.")


def _sparse(path: Path) -> Observations:
    try:
        matrix = sparse.load_npz(path)
    except (ValueError, KeyError, TypeError) as error:
        raise FileError(
            f"{path} is not a sparse matrix of SciPy ({error}). Save it with scipy.sparse.save_npz."
        ) from None
    coo = matrix.tocoo()
    text = f"a sparse matrix of {matrix.shape[0]}×{matrix.shape[1]}, numbered from 0"
    values = floating(coo.data, "the matrix").astype(np.float64)
    return _from_numbers(np.asarray(coo.row), np.asarray(coo.col), values, text, ("row", "column", "value"), path)


def _table(name: str, table: Array) -> Observations:
    table = floating(table, name)
    if np.any(np.isinf(table)):
        raise FileError(f"The matrix {name} holds infinite values. Replace them by NaN where nothing is known.")
    i, j = np.nonzero(~np.isnan(table))
    m, n = table.shape
    text = f"the {m}×{n} matrix {name!r}, numbered from 0"
    values = table[i, j].astype(np.float64)
    origin = Origin(text, missing=table.size - values.size, wide=True)
    return named((Names.numbered(m), i), (Names.numbered(n), j), values, origin)


def _triples(arrays: list[Array], names: list[str], path: Path, weights: Array | None = None) -> Observations:
    if any(array.ndim != 1 for array in arrays) or len({array.size for array in arrays}) > 1:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in zip(names, arrays, strict=True))
        raise FileError(f"{path} has triples of different lengths: {shapes}. Pass vectors of one length.")
    values = np.empty(0)
    if len(arrays) > 2:
        if arrays[2].dtype.kind not in "biuf":
            raise FileError(f"{path}: {names[2]} is of {arrays[2].dtype}, not numbers. Pass numbers as values.")
        values = floating(arrays[2], names[2]).astype(np.float64)
        if np.any(np.isinf(values)):
            raise FileError(f"{path}: {names[2]} holds infinite values. Leave them out, or NaN.")
    return _from_numbers(arrays[0], arrays[1], values, f"the arrays {', '.join(names)}", tuple(names), path, weights)


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
        if side.dtype.kind == "S":
            side = np.char.decode(side, "utf-8")
        if side.dtype == np.uint64 and side.size and side.max() > np.iinfo(np.int64).max:
            side = side.astype(str)
        if side.dtype.kind not in "iuU":
            raise FileError(f"{path}: the {what} is of {side.dtype}, not integers or text. Convert it.")
        sides.append(Names.of(side, what))
    return named(sides[0], sides[1], values, Origin(text, header), weights).known()


def _usual(arrays: dict[str, Array], words: frozenset[str]) -> str | None:
    found = [name for name in arrays if plain(name) in words or plain(name).removesuffix("s") in words]
    return found[0] if len(found) == 1 else None


def _name(choice: str | None, arrays: dict[str, Array], side: str, path: Path) -> str:
    if choice is None or choice not in arrays:
        raise InputError(
            f"{path} holds {', '.join(arrays) or 'nothing'}, and it is not clear which is the {side}. "
            f"Name it: {side}. Or save one matrix with NaN."
        )
    return choice
