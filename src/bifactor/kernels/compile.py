"""Compilation of kernels."""

import zlib
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
from numba import njit
from numba.core.compiler_lock import global_compiler_lock
from numba.extending import register_jitable

from bifactor._compat import hold_at_fork
from bifactor.arrays import Array
from bifactor.kernels import elementary_numba, pointwise
from bifactor.kernels.losses_reference import LossFunctions, record_type

# Sums may be reordered, so that a dot product can use SIMD; NaN and inf keep their meaning, because the loop of `solve`
# detects divergence by them.
FAST = {"reassoc", "contract", "nsz"}

for function in vars(pointwise).values():
    if isinstance(function, FunctionType) and function.__module__ == pointwise.__name__:
        register_jitable(forceinline=True)(function)  # without inlining, loops do not use SIMD


def version(function: Callable[..., Any]) -> int:
    """A number that changes with the file of a function, or with the elementary functions that it calls.

    A closure over it keeps numba from using an outdated cache.
    """
    elementary = zlib.crc32(Path(elementary_numba.__file__).read_bytes())
    return zlib.crc32(Path(function.__code__.co_filename).read_bytes(), elementary)


def own(function: Callable[..., Any]) -> bool:
    """Whether a function belongs to the library: others may change under the same name, so they are not cached."""
    return (function.__module__ or "").startswith("bifactor.")  # None for code without a module


def compiled(function: Callable[..., Any], cache: bool = True) -> Any:
    """Compile without the GIL and without a test for zero before each division, cached on disk if possible."""
    try:
        return njit(function, nogil=True, cache=cache, fastmath=FAST, error_model="numpy")
    except RuntimeError:  # there is no place for a cache, as in a read-only container
        return njit(function, nogil=True, fastmath=FAST, error_model="numpy")


def loop_arguments(
    loss: LossFunctions, y: Array, weights: Array, dtype: np.dtype
) -> tuple[Callable[..., Any], Any, Array, Array]:
    """ℓ at one measurement, its parameter, y and weights, as compiled loops take them in this precision."""
    kind = dtype if y.dtype.names is None else record_type(dtype)
    y, weights = np.ascontiguousarray(y, kind), np.ascontiguousarray(weights, dtype)
    return loss.pointwise, dtype.type(loss.parameter(dtype)), y, weights


# A child process forked while another thread compiles would wait for that thread at its first kernel.
hold_at_fork(global_compiler_lock)
