"""Inner products and norms of tall arrays, summed in double precision."""

import numpy as np

from bifactor.arrays import Array
from bifactor.arrays import inner as plain
from bifactor.arrays import norm as plain_norm
from bifactor.kernels import find

SINGLE = np.dtype(np.float32)


def inner(a: Array, b: Array) -> float:
    """Re⟨a, b⟩."""
    return float(find("inner", SINGLE, a.size).inner(a, b)) if _single(a) and _single(b) else plain(a, b)


def norm(a: Array) -> float:
    """‖a‖_F."""
    return inner(a, a) ** 0.5 if _single(a) else plain_norm(a)


def _single(a: Array) -> bool:
    return type(a) is np.ndarray and a.dtype == SINGLE and a.flags.c_contiguous
