"""Array namespace, dtypes, inner products and randomness: the ground floor.

The maths of the library is written against the array standard through `namespace`, so that an array
library other than NumPy needs no second copy of it. This is the only importer of array-api-compat.
"""

import hashlib
from typing import Any

import array_api_compat
import array_api_compat.numpy
import numpy as np
import scipy.linalg

from bifactor.errors import InputError

Array = Any
"""An array of any library that follows the array standard."""


def namespace(*arrays: Array) -> Any:
    """The array namespace that all of `arrays` share."""
    if all(type(a) is np.ndarray for a in arrays):  # asked dozens of times per iteration
        return array_api_compat.numpy
    return array_api_compat.array_namespace(*arrays)


def is_numpy(array: Array) -> bool:
    return type(array) is np.ndarray or array_api_compat.is_numpy_array(array)


def is_complex(array: Array) -> bool:
    if type(array) is np.ndarray:  # asked as often as the namespace
        return array.dtype.kind == "c"
    return bool(namespace(array).isdtype(array.dtype, "complex floating"))


def conj(a: Array) -> Array:
    return namespace(a).conj(a) if is_complex(a) else a


def real(a: Array) -> Array:
    return namespace(a).real(a) if is_complex(a) else a


def herm(a: Array) -> Array:
    """Aᴴ."""
    return conj(a).T


def inner(a: Array, b: Array) -> float:
    """Re⟨a, b⟩, the inner product of the real vector space that factors live in."""
    a, b = _double(a), _double(b)
    if is_numpy(a) and is_numpy(b):
        return float(np.vdot(a, b).real)
    return float(namespace(a, b).sum(real(conj(a) * b)))


def norm(a: Array) -> float:
    """‖a‖_F."""
    return float(namespace(a).linalg.vector_norm(_double(a)))


def _double(a: Array) -> Array:
    """In double precision: squares of single precision soon leave its range."""
    if type(a) is np.ndarray and a.dtype.char in "dD":
        return a
    xp = namespace(a)
    if a.dtype == xp.float32:
        return xp.astype(a, xp.float64)
    return xp.astype(a, xp.complex128) if a.dtype == xp.complex64 else a


def product_norm(A: Array, B: Array) -> float:
    """‖ABᴴ‖_F from the two Gram matrices, without the m×n product."""
    xp = namespace(A, B)
    squared = float(xp.sum(real(_double(herm(A) @ A) * _double(herm(B) @ B).T)))
    return max(squared, 0.0) ** 0.5


def thin_svd(a: Array) -> tuple[Array, Array, Array]:
    """The thin SVD (A, s, Bᴴ) of a matrix that is there.

    The fast routine of LAPACK gives up on some matrices that are perfectly finite; the slow one then does it.
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
    return float(namespace(array).finfo(array.dtype).eps)


def match_precision(a: Array, dtype: Any) -> Array:
    """`a` in single or double precision, whichever `dtype` has; complex stays complex."""
    precision = np.finfo(dtype).dtype
    return a.astype(np.result_type(precision, np.complex64) if np.iscomplexobj(a) else precision, copy=False)


def floating(array: Array, what: str) -> Array:
    """A floating copy-or-view of user data: integers and booleans become float64, half becomes single."""
    try:
        a = np.asarray(array)
    except (TypeError, ValueError) as error:
        raise InputError(f"{what} is not an array of numbers ({error}). Pass a NumPy array.") from None
    if a.dtype == np.float16:
        return a.astype(np.float32)
    if a.dtype in (np.float32, np.float64, np.complex64, np.complex128):
        return a
    if a.dtype.kind in "biu":
        return a.astype(np.float64)
    raise InputError(
        f"{what} has dtype {a.dtype}; bifactor computes in float32, float64, complex64 or complex128. Convert it first."
    )


def weighted_median(a: Array, weights: Array | None) -> float:
    """The least value that half of the weight is at or below."""
    if weights is None:
        return float(np.median(a))
    order = np.argsort(a)
    below = np.cumsum(weights[order], dtype=np.float64)
    return float(a[order][np.searchsorted(below, below[-1] / 2)])


def digest(*arrays: Array) -> str:
    """A short name for the content of some arrays, the same in every process."""
    total = hashlib.blake2b(digest_size=16)
    for array in arrays:
        total.update(np.ascontiguousarray(array).tobytes())
    return total.hexdigest()


def generator(rng: np.random.Generator | int | None) -> np.random.Generator:
    """The one way randomness enters: a Generator, a seed, or None for a fresh one."""
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError):
        raise InputError(
            f"rng={rng!r} is not a source of randomness. Pass a NumPy Generator, a seed ≥ 0 or None."
        ) from None


def gaussian(rng: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> Array:
    """Standard normal draws; for a complex dtype both parts are drawn, with E|x|² = 1."""
    dtype = np.dtype(dtype)
    if dtype.kind == "c":
        draw = rng.standard_normal(shape) + 1j * rng.standard_normal(shape)
        return (draw / np.sqrt(2.0)).astype(dtype)
    return rng.standard_normal(shape).astype(dtype)
