"""Matrix products on the same threads as all other kernels.

A multithreaded BLAS leaves its threads spinning for milliseconds after each product, in the way of whatever comes next
(measured: a sensing iteration took 18 ms instead of 11). So `solve` keeps BLAS to one thread and products are split
here; results then depend on one number of threads instead of two.
"""

from contextlib import AbstractContextManager
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController

from bifactor.arrays import Array, is_numpy
from bifactor.kernels.pool import run, threads_for


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


def one_thread() -> AbstractContextManager[Any]:
    """While open, BLAS uses one thread for each caller."""
    return _controller().limit(limits=1, user_api="blas")


def matmul(A: Array, B: Array, out: Array | None = None) -> Array:
    """A B, the rows of A shared among threads."""
    if not (is_numpy(A) and is_numpy(B)):
        return A @ B
    if out is None:
        out = np.empty((A.shape[0], B.shape[1]), dtype=np.result_type(A, B))
    parts = min(A.shape[0], threads_for(A.shape[0] * A.shape[1] * B.shape[1]))
    cuts = [A.shape[0] * t // parts for t in range(parts + 1)]
    run(np.matmul, [(A[a:b], B, out[a:b]) for a, b in pairwise(cuts)])
    return out
