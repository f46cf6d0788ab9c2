"""The few operations that the array standard lacks: a NumPy reference for each, and compiled versions.

`find` looks them up. Compiled modules are imported when they are first needed: loading numba, and compiling if nothing
is cached on disk yet, takes longer than solving a small problem without it.
"""

import os
import sys
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np

from bifactor._compat import imported

SMALL = 1 << 16
"""The number of multiply-adds of a pass up to which the reference is used."""

LEAST = 4
"""The smallest number of columns that is assumed for a pass: gathering numbers costs as much as these."""

_REAL = {np.dtype(np.float32), np.dtype(np.float64)}
_COMPLEX = _REAL | {np.dtype(np.complex64), np.dtype(np.complex128)}
_DTYPES = {"transforms": _COMPLEX}
"""The dtypes that the compiled kernels of an operation accept, if these are not only real numbers."""


def find(operation: str, dtype: Any, size: float, columns: int = 1) -> ModuleType:
    """The kernels of an operation for this many numbers of this dtype, each with rows of this many columns.

    Kernels that one module uses lie beside it, and are named by their place, as `"pictures.patches"`.
    """
    return compiled(operation) if has_compiled(dtype, size, columns, operation) else _module(f"{operation}_reference")


def has_compiled(dtype: Any, size: float = np.inf, columns: int = 1, operation: str = "entries") -> bool:
    """Whether compiled kernels are used for such data (`NUMBA_DISABLE_JIT=1` turns them off).

    This depends on the data alone, never on what the process has compiled before: the same problem must have the same
    result to the last bit.
    """
    return size * max(columns, LEAST) > SMALL and np.dtype(dtype) in _DTYPES.get(operation, _REAL) and not _turned_off()


def compiled(operation: str) -> ModuleType:
    """The compiled kernels of an operation."""
    return _module(f"{operation}_numba")


@cache
def _module(name: str) -> ModuleType:
    return imported(f"bifactor.{name}" if "." in name else f"bifactor.kernels.{name}")


def _turned_off() -> bool:
    config = getattr(sys.modules.get("numba"), "config", None)  # another thread may be importing it
    said = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")
    return bool(getattr(config, "DISABLE_JIT", said))
