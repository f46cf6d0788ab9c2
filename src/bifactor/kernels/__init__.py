"""The few operations that the array standard lacks: a NumPy reference, and a compiled version where there is one."""

from types import ModuleType
from typing import Any

import numba
import numpy as np

from bifactor.kernels import (
    blocks_numba,
    blocks_reference,
    entries_numba,
    entries_reference,
    losses_numba,
    losses_reference,
    pauli_numba,
    pauli_reference,
    transforms_numba,
    transforms_reference,
)

_COMPILED = {np.dtype(np.float32), np.dtype(np.float64)}


def has_compiled(dtype: Any) -> bool:
    """Whether compiled kernels serve this dtype here (`NUMBA_DISABLE_JIT=1` turns them off)."""
    return not numba.config.DISABLE_JIT and np.dtype(dtype) in _COMPILED


def entries(dtype: Any) -> ModuleType:
    """The sampled products to use for factors of this dtype."""
    return entries_numba if has_compiled(dtype) else entries_reference


def blocks(dtype: Any) -> ModuleType:
    """The solvers of many small systems of this dtype."""
    return blocks_numba if has_compiled(dtype) else blocks_reference


def losses(dtype: Any) -> ModuleType:
    """The passes over measurements of this dtype that no loss has a part in."""
    return losses_numba if has_compiled(dtype) else losses_reference


def transforms() -> ModuleType:
    """The fast transforms to use; compiled ones serve all four dtypes."""
    return transforms_reference if numba.config.DISABLE_JIT else transforms_numba


def paulis() -> ModuleType:
    """The Pauli expectations to use."""
    return pauli_reference if numba.config.DISABLE_JIT else pauli_numba
