"""Positives, such as clicks, plays and purchases: (user, item) pairs as sparse matrices."""

from typing import Any

import numpy as np
from scipy import sparse

from bifactor.arrays import Array
from bifactor.arrays.sparse import coordinates, require_sound
from bifactor.errors import InputError
from bifactor.validation import indices, require_finite

LARGEST = 2**62
"""Largest users × items: the position of a pair in the whole matrix has to fit into an integer."""

UNKNOWN = 2**31
"""Largest number of users or items if no shape is given."""


def coordinates_of(data: Any, name: str, shape: tuple[int, int] | None = None) -> Any:
    """Positives as given, as a coo_array; `data` is a sparse matrix, or a pair of vectors (rows, cols).

    A pair without a shape gives the smallest matrix that contains it. Values must be ≥ 0; they are 1 for a pair.
    """
    if sparse.issparse(data):
        found = coordinates(data, name)
    elif isinstance(data, tuple) and len(data) == 2:
        found = _from_pair(*data, name, shape)
    else:
        raise InputError(
            f"{name} has type {type(data).__name__}. Pass a sparse matrix of users × items or a tuple (rows, cols)."
        )
    if shape is not None and found.shape != shape:
        raise InputError(f"{name} has shape {found.shape}, not {shape}. Pass matrices of the same users and items.")
    if found.shape[0] * found.shape[1] > LARGEST:
        raise InputError(f"{name} has shape {found.shape}, which is too large. Number users and items from 0.")
    if found.dtype.kind not in "biuf":
        raise InputError(f"{name} has values of type {found.dtype}. Pass numbers, such as 1 for each positive.")
    require_finite(found.data, name, "Pass positives only, with finite values.")
    if np.any(found.data < 0):
        raise InputError(f"{name} contains {found.data.min():g}, a negative value. Pass positives only.")
    return found


def _from_pair(rows: Any, cols: Any, name: str, shape: tuple[int, int] | None) -> Any:
    m, n = (UNKNOWN, UNKNOWN) if shape is None else shape
    i, j = indices(rows, f"{name}: rows", m), indices(cols, f"{name}: cols", n)
    if i.size != j.size:
        raise InputError(f"{name} has {i.size} rows and {j.size} columns. Pass one of each for every positive.")
    smallest = int(i.max(initial=-1)) + 1, int(j.max(initial=-1)) + 1
    return sparse.coo_array((np.ones(i.size), (i, j)), shape=smallest if shape is None else shape)


def positives(data: Any, name: str, shape: tuple[int, int] | None = None) -> Any:
    """The positives as a csr_array: sorted, without stored zeros, values of repeated pairs added."""
    if isinstance(data, sparse.csr_array) and shape in (None, data.shape):
        require_sound(data, name)
        if data.has_canonical_format and data.dtype.kind in "iuf" and np.all((data.data > 0) & np.isfinite(data.data)):
            return data  # as splits make them
    matrix = sparse.csr_array(coordinates_of(data, name, shape))
    if matrix.data.dtype.kind == "b":
        matrix = matrix.astype(np.float64)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    return matrix


def require_some(matrix: Any, name: str) -> None:
    if matrix.nnz == 0:
        raise InputError(f"{name} contains no positives. Pass at least one pair of a user and an item.")


def member(matrix: Any, ids: Array) -> Array:
    """Mask of the ids[i, k] that are stored in row i of a sorted csr_array; -1 never is."""
    items, counts = matrix.shape[1], np.diff(matrix.indptr)
    keys = np.repeat(np.arange(matrix.shape[0], dtype=np.int64), counts) * items + matrix.indices
    wanted = np.arange(matrix.shape[0], dtype=np.int64)[:, None] * items + ids
    if keys.size == 0:
        return np.zeros(ids.shape, bool)
    places = np.minimum(np.searchsorted(keys, wanted.ravel()), keys.size - 1)
    # The key of -1 equals that of the last item of the row above.
    return (keys[places].reshape(ids.shape) == wanted) & (ids >= 0)


def without(matrix: Any, other: Any) -> Any:
    """The pairs of one matrix that are not in the other."""
    rest = matrix - matrix.multiply(other != 0)
    rest.eliminate_zeros()
    return sorted_rows(rest)


def sorted_rows(matrix: Any) -> Any:
    matrix = sparse.csr_array(matrix)
    matrix.sort_indices()
    return matrix
