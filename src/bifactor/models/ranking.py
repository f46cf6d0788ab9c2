"""The best columns of each row."""

from collections.abc import Callable

import numpy as np

from bifactor.arrays import Array
from bifactor.kernels.blas import matmul
from bifactor.tables.names import WHOLE

BLOCK = 2_000_000
"""Largest number of scores in memory at a time; blocks ten times as large took 1.1 to 1.5 times as long."""

SCORE = 32
"""Bytes for each of these scores: the scores, a copy, an index to sort them by, and the scores of the last block."""

Seen = Callable[[int], Array]
"""Maps the number of a row to the columns that are left out."""


def best_columns(
    U: Array,
    V: Array,
    count: int,
    seen: Seen | None = None,
    allowed: Array | None = None,
    margin: Callable[[slice], Array] | None = None,
) -> tuple[Array, Array]:
    """For each row of U, the `count` columns with the largest u·v, best first, and these numbers.

    `margin` returns numbers to subtract from u·v, for some rows and all columns. `count` must not exceed the number of
    columns. Columns that are `seen` in a row, or not `allowed`, are left out; if fewer remain, the rest is -1, with NaN
    for numbers.
    """
    columns, scores = np.empty((len(U), count), np.int64), np.empty((len(U), count), U.dtype)
    step = max(1, BLOCK // V.shape[0])
    for first in range(0, len(U) if count else 0, step):
        z = matmul(U[first : first + step], V.T)
        if margin is not None:
            z -= margin(slice(first, first + step))
        if allowed is not None:
            z[:, ~allowed] = -np.inf
        if seen is not None:
            for k in range(len(z)):
                z[k, seen(first + k)] = -np.inf
        top = np.argpartition(-z, count - 1, axis=1)[:, :count]
        values = np.take_along_axis(z, top, axis=1)
        rank = np.argsort(-values, axis=1, kind="stable")
        scores[first : first + step] = np.take_along_axis(values, rank, axis=1)
        columns[first : first + step] = np.take_along_axis(top, rank, axis=1)
    none = np.isneginf(scores)
    columns[none], scores[none] = -1, np.nan
    return columns, scores


def gapped(names: Array, none: Array) -> Array:
    """Names with gaps marked by their type: -1 for integers, NaN for numbers, NaT for dates, otherwise None."""
    kind = names.dtype.kind
    if not none.any():
        return names
    if kind in "iu" and int(names.max()) <= WHOLE.max:
        return np.where(none, -1, names.astype(np.int64))
    if kind in "fmM":
        return np.where(none, np.array("nan" if kind == "f" else "NaT", names.dtype), names)
    return np.where(none, np.array(None), names)
