"""Checks of SciPy sparse matrices: compiled code does not check indices, and wrong ones would crash it."""

from typing import Any

import numpy as np
from scipy import sparse

from bifactor.arrays import Array
from bifactor.errors import InputError

COMPRESSED = {"csr": 1, "csc": 1, "bsr": 3}
"""Formats with pointers into their indices, and the number of dimensions of their data."""


def coordinates(matrix: Any, what: str) -> Any:
    """A copy as a SciPy coo_array; `InputError` if the arrays of a matrix are inconsistent."""
    require_sound(matrix, what)
    coo = _from_diagonals(matrix) if matrix.format == "dia" else matrix.tocoo(copy=True)
    require_sound(coo, what)  # lists of indices were not checked above
    return coo


def _from_diagonals(matrix: Any) -> Any:
    """Convert it in memory proportional to the data; SciPy takes memory proportional to the rows."""
    cols = np.arange(matrix.data.shape[1], dtype=np.int64)
    rows = cols - matrix.offsets.astype(np.int64)[:, None]
    there = (rows >= 0) & (rows < matrix.shape[0]) & (cols < matrix.shape[1]) & (matrix.data != 0)
    places = rows[there], np.broadcast_to(cols, there.shape)[there]
    return sparse.coo_array((matrix.data[there], places), shape=matrix.shape)


def require_sound(matrix: Any, what: str) -> None:
    """Raise `InputError` if the arrays of a sparse matrix are inconsistent."""
    try:
        if matrix.ndim != 2:
            raise ValueError(f"it has {matrix.ndim} dimensions, not 2")
        if matrix.format in COMPRESSED:
            require_compressed(matrix.format, matrix.data, matrix.indices, matrix.indptr, matrix.shape)
        elif matrix.format == "coo":
            require_places(matrix.data, matrix.row, matrix.col, matrix.shape)
        elif matrix.format == "dia":
            require_diagonals(matrix.data, matrix.offsets, matrix.shape)
        elif matrix.format == "lil":
            _require_lists(matrix)
    except ValueError as error:
        raise InputError(f"{what} is a damaged sparse matrix: {error}. Create it again.") from None


def require_compressed(kind: str, data: Array, indices: Array, indptr: Array, shape: tuple[int, int]) -> None:
    """Raise `ValueError`, with part of a sentence, if arrays are not a matrix in CSR, CSC or BSR format."""
    blocks = data.shape[1:] if kind == "bsr" else (1, 1)
    if data.ndim != COMPRESSED[kind] or 0 in blocks or any(n % k for n, k in zip(shape, blocks, strict=True)):
        raise ValueError(f"its data have shape {data.shape} for {shape[0]}×{shape[1]}")
    m, n = (side // k for side, k in zip(shape, blocks, strict=True))
    lines, width = (n, m) if kind == "csc" else (m, n)
    for name, array in (("indices", indices), ("indptr", indptr)):
        if array.ndim != 1 or array.dtype.kind not in "iu":
            raise ValueError(f"its {name} is {array.dtype} of shape {array.shape}, not a vector of integers")
    if indptr.size != lines + 1 or indices.size != data.shape[0]:
        counts = f"{indptr.size} pointers, {indices.size} indices and {data.shape[0]} entries"
        raise ValueError(f"it has {counts} for {shape[0]}×{shape[1]}")
    if indptr[0] != 0 or indptr[-1] != indices.size or np.any(indptr[1:] < indptr[:-1]):
        raise ValueError(f"its indptr does not increase from 0 to {indices.size}")
    _require_range(indices, width)


def require_places(data: Array, rows: Array, cols: Array, shape: tuple[int, int]) -> None:
    """The same for coordinates."""
    for side, size in ((rows, shape[0]), (cols, shape[1])):
        if side.ndim != 1 or side.dtype.kind not in "iu" or side.shape != data.shape:
            raise ValueError(f"it has {side.shape} indices of {side.dtype} for data of shape {data.shape}")
        _require_range(side, size)


def require_diagonals(data: Array, offsets: Array, shape: tuple[int, int]) -> None:
    """The same for diagonals."""
    if data.ndim != 2 or offsets.dtype.kind not in "iu" or offsets.shape != data.shape[:1]:
        raise ValueError(f"it has {offsets.shape} offsets and data of shape {data.shape}")
    if np.unique(offsets).size < offsets.size:
        raise ValueError("it has a repeated diagonal")
    if offsets.size and (offsets.min() < -shape[0] or offsets.max() > shape[1]):
        raise ValueError(f"it has diagonals from {offsets.min()} to {offsets.max()} for {shape[0]}×{shape[1]}")


def _require_lists(matrix: Any) -> None:
    if matrix.rows.shape != matrix.data.shape or matrix.rows.shape != matrix.shape[:1]:
        raise ValueError(f"it has {matrix.rows.size} lists for {matrix.shape[0]} rows")
    if any(len(places) != len(values) for places, values in zip(matrix.rows, matrix.data, strict=True)):
        raise ValueError("it has a row with different numbers of indices and entries")


def _require_range(indices: Array, size: int) -> None:
    if indices.size and (indices.min() < 0 or indices.max() >= size):
        raise ValueError(f"it has indices from {indices.min()} to {indices.max()} on a side of length {size}")
