"""Arrays with holes, sparse matrices and triples as observations."""

from typing import Any

import numpy as np
import scipy

from bifactor.arrays import Array, floating
from bifactor.arrays.sparse import coordinates, require_sound
from bifactor.errors import InputError
from bifactor.operators.entries import places
from bifactor.tables.observations import Observations
from bifactor.validation import require_finite

LARGEST_SIDE, SPARSEST = 10_000_000, 100
"""Triples hold names rather than indices if their largest is above the first and above this many times their number."""


def is_triples(X: Any) -> bool:
    """Whether X is (rows, cols, values), a tuple of three vectors."""
    return isinstance(X, tuple) and len(X) == 3 and all(np.ndim(part) == 1 for part in X)


def unmasked(X: Any) -> Any:
    """Replace masked entries of a masked array by NaN; return anything else as it is."""
    return np.ma.filled(X.astype(np.result_type(X.dtype, np.float32)), np.nan) if np.ma.isMaskedArray(X) else X


def from_matrix(table: Any, weights: Any = None) -> Observations:
    """The known entries of a floating-point matrix: those that are not NaN or, in a sparse matrix, that are stored.

    `weights` has one number per row, or is a matrix of the same kind; entries of weight 0 count as missing.
    """
    shape = (int(table.shape[0]), int(table.shape[1]))
    if scipy.sparse.issparse(table):
        coo = coordinates(table, "X")
        coo.sum_duplicates()
        seen = ~np.isnan(coo.data)
        rows, cols, values = coo.row[seen].astype(np.int64), coo.col[seen].astype(np.int64), coo.data[seen]
    else:
        rows, cols = np.nonzero(~np.isnan(table))
        values = table[rows, cols]
    return Observations(rows, cols, values, shape, _weights(weights, rows, cols, shape)).weighed()


def from_triples(X: Any, weights: Any = None, columns: int | None = None) -> Observations:
    """Triples with indices from 0, of a matrix with so many columns if that is known."""
    values = floating(X[2], "values")
    require_finite(values, "values", "Leave missing entries out of the triples.")
    if columns is None and values.size == 0:
        raise InputError("There are no observed entries. Pass at least one triple.")
    sides = [np.asarray(part) for part in X[:2]]
    largest = [_largest(side, values.size, what) for side, what in zip(sides, ("rows", "cols"), strict=True)]
    shape = (largest[0], largest[1] if columns is None else columns)
    if columns is not None and largest[1] > columns:
        raise InputError(
            f"There is a column {largest[1] - 1}, but the fit has {columns} columns. Use partial_fit for new ones."
        )
    if values.size:
        i, _ = places(sides[0], sides[1], shape)
        if i.size != values.size:
            raise InputError(f"There are {i.size} coordinates and {values.size} values. Pass equally many.")
    w = None if weights is None else floating(weights, "weights")
    if w is not None and w.shape != values.shape:
        raise InputError(f"There are {values.size} values and {w.size} weights. Pass one per triple.")
    return Observations(sides[0].astype(np.int64), sides[1].astype(np.int64), values, shape, w).weighed()


def _largest(side: Array, size: int, what: str) -> int:
    """The length of a side: one more than its largest index."""
    if side.dtype.kind not in "iu":  # empty, or an error is raised with the other coordinates
        return 1
    count = int(side.max(initial=0)) + 1
    if count > max(LARGEST_SIDE, SPARSEST * size):
        raise InputError(
            f"{what} goes up to {count - 1}, but there are {size} triples. Use fit_long for ids that are not indices."
        )
    return count


def _weights(weights: Any, rows: Array, cols: Array, shape: tuple[int, int]) -> Array | None:
    if weights is None:
        return None
    if scipy.sparse.issparse(weights) and weights.shape == shape:
        require_sound(weights, "weights")
        return floating(weights.tocsr()[rows, cols], "weights").ravel()
    w = floating(weights, "weights")
    if w.shape == shape[:1]:
        return w[rows]
    if w.shape == shape:
        return w[rows, cols]
    raise InputError(
        f"weights has shape {w.shape}, but X has {shape}. Pass one weight per row, or a matrix of that shape; for "
        "triples, one weight each."
    )
