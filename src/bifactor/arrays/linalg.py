"""Linear algebra with tall arrays of any library; small results are NumPy arrays."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy

from bifactor.arrays.backends import Array, DistributedArray, dtype_of, is_numpy, namespace, to_device_of, to_numpy

VALUES_PER_COPY = 1 << 20
"""The number of values that are copied at a time."""

QR_ROWS = 1 << 16
"""The number of rows of a tall array that are factorised at a time."""


def hstack(*arrays: Array) -> Array:
    """Columns side by side."""
    return namespace(*arrays).concat(list(arrays), axis=1)


def columns(array: Array, chosen: Any) -> Array:
    """Some of the columns, by a slice, a mask or an index."""
    if type(array) is np.ndarray:
        return np.ascontiguousarray(array[:, chosen])
    if isinstance(chosen, slice):
        return array[:, chosen]
    index = np.atleast_1d(np.arange(array.shape[1])[chosen])
    return namespace(array).take(array, to_device_of(index, array), axis=1)


def spread(array: Array, places: np.ndarray, width: int) -> Array:
    """Columns at their places among columns of zeros: the adjoint of `columns`."""
    if type(array) is np.ndarray:
        found = np.zeros((array.shape[0], width), array.dtype)
        found[:, places] = array
        return found
    return array @ to_device_of(np.eye(width, dtype=dtype_of(array))[places], array)


def triangular(array: Array) -> Any:
    """R of the QR factorisation, which is small."""
    if type(array) is np.ndarray:
        return np.linalg.qr(_stacked(array), mode="r")
    if isinstance(array, DistributedArray):
        return array.triangular()
    return to_numpy(namespace(array).linalg.qr(array, mode="reduced")[1])


def orthonormal(array: Array) -> tuple[Array, np.ndarray]:
    """Q, as tall as the array, and the small R."""
    if type(array) is np.ndarray and _is_long(array):
        return _orthonormal_in_parts(array)
    Q, R = namespace(array).linalg.qr(array, mode="reduced")
    return Q, to_numpy(R)


def _parts(array: np.ndarray) -> list[np.ndarray]:
    return [array[start : start + QR_ROWS] for start in range(0, max(len(array), 1), QR_ROWS)]


def _is_long(array: np.ndarray) -> bool:
    """Whether parts save time, too: they were 3 times as fast with 3 million rows, and slower with 100,000."""
    return len(array) > 4 * QR_ROWS >= 4 * array.shape[1]


def _stacked(array: np.ndarray) -> np.ndarray:
    """The R of some rows at a time, stacked, which have the same R as the array; the array itself if it is short."""
    if not _is_long(array):
        return array
    return np.concatenate([np.linalg.qr(part, mode="r") for part in _parts(array)])


def _orthonormal_in_parts(array: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Q and R of a tall array, in parts, because LAPACK makes several copies, which would be as large as factors."""
    Q, R = np.linalg.qr(_stacked(array))
    found, at = np.empty(array.shape, Q.dtype), 0
    for part, out in zip(_parts(array), _parts(found), strict=True):
        own = np.linalg.qr(part)[0]
        np.matmul(own, Q[at : at + own.shape[1]], out=out)
        at += own.shape[1]
    return found, R


def column_norms(array: Array) -> np.ndarray:
    return to_numpy(namespace(array).linalg.vector_norm(array, axis=0))


def row_squares(a: np.ndarray, block: int = 1 << 20) -> np.ndarray:
    """Σⱼ |aᵢⱼ|² for each row, in double precision; about `block` numbers are copied at a time."""
    wide, step = np.result_type(a, np.float64), max(1, block // a.shape[1])
    parts = (a[start : start + step].astype(wide, copy=False) for start in range(0, len(a), step))
    return np.concatenate([np.vecdot(part, part).real for part in parts])


def total(a: Array) -> float:
    """Σ a, in double precision."""
    if is_numpy(a):
        return float(np.sum(a, dtype=np.float64))
    xp = namespace(a)
    return float(xp.sum(a, dtype=xp.float64))


def mean_of(a: Any) -> float:
    """The mean of a vector, or of a number."""
    return a.mean() if isinstance(a, DistributedArray) else float(np.mean(to_numpy(a)))


def largest_of(a: Any) -> float:
    return a.largest() if isinstance(a, DistributedArray) else float(np.max(to_numpy(a)))


def smallest_of(a: Any) -> float:
    return -largest_of(-a)


def expit(a: Array) -> Array:
    """1/(1 + e^{−a})."""
    if is_numpy(a):
        return scipy.special.expit(a)
    xp = namespace(a)
    e = xp.exp(-xp.abs(a))
    return xp.where(a >= 0, 1 / (1 + e), e / (1 + e))


def is_complex(array: Array) -> bool:
    """Whether an array holds complex numbers."""
    if type(array) is np.ndarray:  # called as often as `namespace`
        return array.dtype.kind == "c"
    return bool(namespace(array).isdtype(array.dtype, "complex floating"))


def conj(a: Array) -> Array:
    """The complex conjugate; real arrays are unchanged."""
    return namespace(a).conj(a) if is_complex(a) else a


def real(a: Array) -> Array:
    return namespace(a).real(a) if is_complex(a) else a


def herm(a: Array) -> Array:
    """Aᴴ."""
    return conj(a).T


def inner(a: Array, b: Array) -> float:
    """Re⟨a, b⟩, the inner product of the real vector space of factors."""
    if is_numpy(a) and is_numpy(b):
        return sum(float(np.vdot(_double(x), _double(y)).real) for x, y in zip(_cut(a), _cut(b), strict=True))
    if isinstance(a, DistributedArray):
        return a.inner(b)
    a, b = _double(a), _double(b)
    return float(namespace(a, b).sum(real(conj(a) * b)))


Pairs = Sequence[tuple[Array, Array]]


def inners(*pairs: tuple[Array, Array]) -> list[float]:
    """Re⟨a, b⟩ for each pair; those of arrays on other machines come in one round."""
    compute_products(pairs)
    return [inner(a, b) for a, b in pairs]


def compute_products(inner_pairs: Pairs, gram_pairs: Pairs = ()) -> None:
    """Compute Re⟨a, b⟩ and AᵀB for pairs of arrays on other machines, in one round; other pairs are left out."""
    far = [
        [(a, b) for a, b in pairs if isinstance(a, DistributedArray) and isinstance(b, DistributedArray)]
        for pairs in (inner_pairs, gram_pairs)
    ]
    if far[0] or far[1]:
        (far[0] + far[1])[0][0].compute_products(*far)


def norm(a: Array) -> float:
    """‖a‖_F."""
    if is_numpy(a) or isinstance(a, DistributedArray):
        return inner(a, a) ** 0.5
    return float(namespace(a).linalg.vector_norm(_double(a)))


def _cut(a: np.ndarray) -> list[np.ndarray]:
    """The array, some rows at a time if a copy in double precision of all of them would be large."""
    step = max(1, VALUES_PER_COPY * len(a) // max(a.size, 1))
    if a.dtype.char in "dD" or step >= len(a):
        return [a]
    return [a[start : start + step] for start in range(0, len(a), step)]


def _double(a: Array) -> Array:
    """The array in double precision: squares easily leave the range of single precision."""
    if type(a) is np.ndarray and a.dtype.char in "dD":
        return a
    xp = namespace(a)
    if a.dtype == xp.float32:
        return xp.astype(a, xp.float64)
    return xp.astype(a, xp.complex128) if a.dtype == xp.complex64 else a


def product_norm(A: Array, B: Array) -> float:
    """‖ABᴴ‖_F from the two Gram matrices, without the m×n product."""
    left, right = (_double(to_numpy(herm(F) @ F)) for F in (A, B))
    return max(float(np.sum(real(left * right.T))), 0.0) ** 0.5


def thin_svd(a: Array) -> tuple[Array, Array, Array]:
    """The thin SVD (A, s, Bᴴ) of a dense matrix.

    The fast routine of LAPACK fails for some finite matrices; the slow one is then used.
    """
    try:
        A, s, Bh = np.linalg.svd(a, full_matrices=False)
    except np.linalg.LinAlgError:
        if not np.all(np.isfinite(a)):
            raise
        A, s, Bh = scipy.linalg.svd(a, full_matrices=False, lapack_driver="gesvd")
    return A, s, Bh


def epsilon(array: Array) -> float:
    """Machine precision of the array's dtype."""
    return float(np.finfo(dtype_of(array)).eps)


def match_precision(a: Array, dtype: Any) -> Array:
    """`a` in single or double precision, whichever `dtype` has; complex stays complex."""
    precision = np.finfo(dtype).dtype
    return a.astype(np.result_type(precision, np.complex64) if np.iscomplexobj(a) else precision, copy=False)


def weighted_median(a: Array, weights: Array | None) -> float:
    """The least value with half of the weight at or below it."""
    if weights is None:
        return float(np.median(a))
    order = np.argsort(a)
    below = np.cumsum(weights[order], dtype=np.float64)
    return float(a[order][np.searchsorted(below, below[-1] / 2)])
