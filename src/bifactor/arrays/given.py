"""Input from users: arrays and randomness."""

import hashlib
from typing import Any

import numpy as np

from bifactor.arrays.libraries import Array, cast, dtype_of, host, is_foreign
from bifactor.errors import InputError

DRAWN = 1 << 22
"""The number of values that are drawn in double precision at a time and converted to single."""


def floating(array: Any, what: str) -> Array:
    """A floating copy-or-view of user data: integers and booleans become float64, half becomes single.

    Arrays of other libraries stay there; everything else becomes a NumPy array.
    """
    if is_foreign(array):
        name = dtype_of(array).name
        if name in ("float32", "float64", "complex64", "complex128"):
            return array
        if np.dtype(name).kind in "biuf":
            return cast(array, np.float32 if name == "float16" else np.float64)
        raise InputError(f"{what} has dtype {name}; bifactor computes in float32, float64, complex64 or complex128.")
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


def digest(*arrays: Array) -> str:
    """A hash of the content of some arrays, the same in every process."""
    total = hashlib.blake2b(digest_size=16)
    for array in arrays:
        total.update(np.ascontiguousarray(host(array)).tobytes())
    return total.hexdigest()


def generator(rng: np.random.Generator | int | None) -> np.random.Generator:
    """The generator for `rng`: a Generator, a seed, or None for a new one. Randomness enters only here."""
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
    if dtype == np.float64:
        return rng.standard_normal(shape)
    found = np.empty(shape, dtype)
    flat = found.reshape(-1)
    for start in range(0, flat.size, DRAWN):
        part = flat[start : start + DRAWN]
        part[:] = rng.standard_normal(part.size)
    return found
