"""Matrix products on the same threads as all other kernels.

A multithreaded BLAS leaves its threads spinning for milliseconds after each product, which slows down the next kernel
(measured: value and gradient of a sensing problem took 18 ms, and 11 ms with the spinning turned off). So `solve`
limits BLAS to one thread and products are split here; results then depend on one number of threads instead of two.
"""

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np

from bifactor.arrays import (
    Array,
    cast,
    common_dtype,
    compute_products,
    dtype_of,
    herm,
    is_foreign,
    is_numpy,
    to_device_of,
    to_numpy,
)
from bifactor.arrays import inner as plain
from bifactor.arrays import norm as plain_norm
from bifactor.kernels import get
from bifactor.kernels.memory import empty
from bifactor.kernels.threading import blas_at_most, run, shares

MULTIPLY_ADDS = 64
"""The number of multiply-adds of BLAS in the time of one step of a simple loop."""

SUMMED_ROWS = 1024
"""The number of rows whose products are summed in single precision, with a relative error of about 10⁻⁷."""

WEIGHTED = 1 << 14
"""The number of rows that are weighted at a time: a copy of all would be as large as a factor."""

ALONE = 1 << 13
"""The number of multiply-adds up to which any BLAS uses one thread."""


def matmul(A: Array, B: Array, out: Array | None = None) -> Array:
    """A B for a tall A and a small or tall B, with the rows of A divided among threads."""
    if not is_numpy(A):
        return A @ (to_device_of(B, A) if is_foreign(A) and is_numpy(B) else B)
    if out is None:
        out = empty((A.shape[0], B.shape[1]), np.result_type(A, B))
    parts = _rows(A, B.shape[1])
    if len(parts) == 1 and A.size * B.shape[1] <= ALONE:
        return np.matmul(A, B, out)
    with blas_at_most(1):
        run(np.matmul, [(A[a:b], B, out[a:b]) for a, b in parts])
    return out


def gram(A: Array, B: Array, weights: Array | None = None) -> Array:
    """Aᴴ·diag(weights)·B of two tall matrices, with their rows divided among threads; it is small."""
    if not is_numpy(A):
        return to_numpy(herm(A) @ _weighted(B, weights))
    parts = _rows(A, B.shape[1])
    if len(parts) == 1 and A.size * B.shape[1] <= ALONE:
        return _gram(A, B, weights)
    with blas_at_most(1):
        sums = run(_gram, [(A[a:b], B[a:b], None if weights is None else weights[a:b]) for a, b in parts])
    return sums[0] if len(sums) == 1 else sum(sums[1:], sums[0])


def wide_gram(A: Array, B: Array, weights: Array | None = None) -> Array:
    """Aᴴ·diag(weights)·B of two tall matrices in double precision; in single precision, partial sums are single."""
    wide = np.result_type(common_dtype(A, B), np.float64)
    if not is_numpy(A):
        return to_numpy(herm(cast(A, wide)) @ _weighted(cast(B, wide), weights))
    if A.dtype == B.dtype == wide and weights is None:
        return gram(A, B)
    parts = _rows(A, B.shape[1])
    with blas_at_most(1):
        sums = run(_wide_gram, [(A[a:b], B[a:b], None if weights is None else weights[a:b], wide) for a, b in parts])
    return sum(sums[1:], sums[0])


def _wide_gram(A: Array, B: Array, weights: Array | None, wide: Any) -> Array:
    total = np.zeros((A.shape[1], B.shape[1]), wide)
    for start in range(0, A.shape[0], SUMMED_ROWS):
        rows = slice(start, start + SUMMED_ROWS)
        total += _gram(A[rows], B[rows], None if weights is None else weights[rows])
    return total


def _weighted(B: Array, weights: Array | None) -> Array:
    return B if weights is None else cast(weights, np.finfo(dtype_of(B)).dtype)[:, None] * B


def _gram(A: Array, B: Array, weights: Array | None = None) -> Array:
    if weights is None:
        return herm(A) @ B
    starts = range(0, max(len(A), 1), WEIGHTED)
    parts = ((A[k : k + WEIGHTED], _weighted(B[k : k + WEIGHTED], weights[k : k + WEIGHTED])) for k in starts)
    return reduce(np.add, (herm(own) @ more for own, more in parts))


def _rows(A: Array, columns: int) -> list[tuple[int, int]]:
    return shares(A.shape[0], A.shape[1] * columns / MULTIPLY_ADDS)


# Sums and multiples of tall arrays, in reused memory if available.

AT_A_TIME = 1 << 22
"""The number of numbers in a temporary array: one for all rows would be as large as a factor."""


ALL = slice(None)


def some_rows(tall: Array) -> list[slice]:
    """Slices of the rows of a tall NumPy array; one slice of all rows for other libraries."""
    if type(tall) is not np.ndarray:
        return [ALL]
    step = max(1, AT_A_TIME // max(tall.shape[1], 1))
    return [slice(start, start + step) for start in range(0, max(len(tall), 1), step)]


def rows_of(tall: Array, rows: slice) -> Array:
    """Some rows; for all rows the array itself, because arrays of other libraries are not sliced."""
    return tall if rows == ALL else tall[rows]


def _alike(a: Array, b: Array) -> bool:
    return type(a) is type(b) is np.ndarray and a.dtype == b.dtype and a.shape == b.shape


def total(a: Array, b: Array) -> Array:
    """a + b."""
    return np.add(a, b, out=empty(a.shape, a.dtype)) if _alike(a, b) else a + b


def difference(a: Array, b: Array) -> Array:
    """a − b."""
    return np.subtract(a, b, out=empty(a.shape, a.dtype)) if _alike(a, b) else a - b


def scaled(number: float, a: Array) -> Array:
    """number·a."""
    return np.multiply(number, a, out=empty(a.shape, a.dtype)) if type(a) is np.ndarray else number * a


def plus(x: Array, a: float, y: Array) -> Array:
    """x + a·y."""
    if not _alike(x, y):
        return x + a * y
    found = scaled(a, y)
    return np.add(x, found, out=found)


def accumulated(a: Array, more: Callable[[slice], Array]) -> Array:
    """a + b, with b computed for some rows at a time; in the memory of a if it can be overwritten."""
    if type(a) is not np.ndarray or not a.flags.writeable:
        return a + more(ALL)
    for rows in some_rows(a):
        np.add(a[rows], more(rows), out=a[rows], casting="no")
    return a


def negated_axpy_(a: Array, b: float, c: Array) -> Array:
    """−a + b·c, in the memory of a if possible."""
    if not _alike(a, c):
        return b * c - a
    for rows in some_rows(a):
        np.subtract(b * c[rows], a[rows], out=a[rows])
    return a


# Inner products and norms of tall arrays, summed in double precision.

FLOAT32 = np.dtype(np.float32)


def inner(a: Array, b: Array) -> float:
    """Re⟨a, b⟩."""
    return float(get("blas", a, a.size).inner(a, b)) if _single(a) and _single(b) else plain(a, b)


def inners(*pairs: tuple[Array, Array]) -> list[float]:
    """Re⟨a, b⟩ for each pair; those of arrays on other machines come in one round."""
    return products(pairs, ())[0]


def products(
    inner_pairs: Sequence[tuple[Array, Array]], gram_pairs: Sequence[tuple[Array, Array]]
) -> tuple[list[float], list[Array]]:
    """Re⟨a, b⟩ for some pairs of arrays and AᴴB for others; those of arrays on other machines come in one round."""
    compute_products(inner_pairs, gram_pairs)
    return [inner(a, b) for a, b in inner_pairs], [gram(a, b) for a, b in gram_pairs]


def norm(a: Array) -> float:
    """‖a‖_F."""
    return inner(a, a) ** 0.5 if _single(a) else plain_norm(a)


def _single(a: Array) -> bool:
    return type(a) is np.ndarray and a.dtype == FLOAT32 and a.flags.c_contiguous
