"""The few operations that the array standard lacks: a NumPy reference for each, compiled versions, other libraries.

`get` looks them up. Modules are imported when they are first needed: loading numba, and compiling if nothing is cached
on disk yet, takes longer than solving a small problem without it.
"""

import os
import sys
from functools import cache, partial
from importlib.util import find_spec
from inspect import isfunction
from types import ModuleType
from typing import Any

import numpy as np

from bifactor._compat import imported
from bifactor.arrays import Array, dtype_of, is_foreign, library_of, on_host, on_this_machine

SMALL = 1 << 16
"""The number of multiply-adds of a pass up to which the reference is used."""

LEAST = 4
"""The smallest number of columns that is assumed for a pass: gathering numbers costs as much as these."""

_REAL = {np.dtype(np.float32), np.dtype(np.float64)}
_COMPLEX = _REAL | {np.dtype(np.complex64), np.dtype(np.complex128)}
_DTYPES = {"transforms": _COMPLEX}
"""The dtypes that the compiled kernels of an operation accept, if these are not only real numbers."""

_STANDARD = {"losses"}
"""Operations whose reference is written in the array standard, for any library and device."""


def get(operation: str, like: Array, size: float, columns: int = 1) -> ModuleType | Any:
    """The kernels of an operation for arrays such as `like`: this many numbers, each with rows of this many columns.

    The module is `<operation>_numba` for NumPy arrays that are large enough, otherwise `<operation>_reference`. Arrays
    of another library in host memory are shared with compiled kernels, which are the fastest there; all others go to
    `<operation>_<library>` or, without it, are shared with the reference. Kernels that one module uses lie beside it,
    and are named by their place, as `"applications.pictures.patches"`.

    None if there is no such module: the caller composes the operation from array functions, or refuses. This is never
    so for NumPy arrays and an operation that has a reference.

    The choice depends on the data alone, never on what the process did before: the same problem must have the same
    result to the last bit. `NUMBA_DISABLE_JIT=1` turns compiled kernels off.
    """
    fast = size * max(columns, LEAST) > SMALL and dtype_of(like) in _DTYPES.get(operation, _REAL) and not _turned_off()
    if not is_foreign(like):
        return _module(f"{operation}_numba" if fast else f"{operation}_reference")
    shares = on_this_machine(like)
    own = None if fast and shares else _module(f"{operation}_{library_of(like)}")
    if own is not None:
        return own
    if operation in _STANDARD and not (fast and shares):
        return _module(f"{operation}_reference")
    return _shared(_module(f"{operation}_numba" if fast else f"{operation}_reference")) if shares else None


@cache
def _module(name: str) -> ModuleType | None:
    path = f"bifactor.{name}" if "." in name else f"bifactor.kernels.{name}"
    return imported(path) if find_spec(path) else None


@cache
def _shared(kernel: ModuleType | None) -> ModuleType | None:
    """NumPy's kernels as functions of arrays of another library in host memory."""
    if kernel is None:
        return None
    shared = ModuleType(kernel.__name__, kernel.__doc__)
    for name, value in vars(kernel).items():
        if isfunction(value):
            setattr(shared, name, partial(on_host, value))
    return shared


def _turned_off() -> bool:
    config = getattr(sys.modules.get("numba"), "config", None)  # another thread may be importing it
    said = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")
    return bool(getattr(config, "DISABLE_JIT", said))
