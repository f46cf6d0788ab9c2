"""The number of threads that kernels and matrix products may use."""

import math
import os
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from functools import cache
from pathlib import Path

from bifactor.errors import InputError
from bifactor.kernels.blas_threads import blas_at_most
from bifactor.validation import is_count

VARIABLES = ("BIFACTOR_NUM_THREADS", "NUMBA_NUM_THREADS", "OMP_NUM_THREADS")
"""The environment variables with the number of threads; the first that is set applies."""

CGROUP = Path("/sys/fs/cgroup")

_asked: ContextVar[int | None] = ContextVar("threads", default=None)


def threads(n: int | None) -> AbstractContextManager[None]:
    """Limit the threads that bifactor uses, as a context manager.

    Parameters
    ----------
    n : int or None
        The largest number of threads of compiled kernels and matrix products, ≥ 1. -1 stands for all cores that this
        process may use. None changes nothing.

    Notes
    -----
    The limit belongs to the calling thread (it is a `contextvars.ContextVar`): fits in several Python threads may each
    have their own. Without a limit, the number is that of the first of the environment variables
    ``BIFACTOR_NUM_THREADS``, ``NUMBA_NUM_THREADS`` and ``OMP_NUM_THREADS`` that is set, otherwise that of all cores
    that this process may use. The variables are read once, when threads are first needed.

    Results for different numbers of threads differ only by rounding. For a fixed number they are the same to the last
    bit.

    BLAS, which NumPy and SciPy use for products, has one limit for the whole process. While several of these context
    managers are open in several threads, the smallest limit applies to BLAS.

    Examples
    --------
    >>> import numpy as np
    >>> import bifactor as bf
    >>> rng = np.random.default_rng(0)
    >>> table = np.outer(rng.standard_normal(30), rng.standard_normal(20))
    >>> table[rng.random(table.shape) < 0.5] = np.nan
    >>> problem = bf.Problem(bf.losses.Squared(), *bf.operators.Entries.from_dense(table))
    >>> with bf.threads(1):
    ...     result = bf.solve(problem, rank=1, rng=0)
    >>> result.status.converged
    True
    """
    if n is None:
        return nullcontext()
    if not is_count(n, 1) and not (is_count(n, -1) and n == -1):
        raise InputError(f"threads={n!r} is not possible. Choose an integer ≥ 1, -1 for all cores, or None.")
    return _limited(usable_cores() if n == -1 else int(n))


@contextmanager
def _limited(count: int) -> Iterator[None]:
    token = _asked.set(count)
    try:
        with blas_at_most(count):
            yield
    finally:
        _asked.reset(token)


def thread_count() -> int:
    """The number of threads that kernels use here: from `threads`, from the environment, or one for each core."""
    return _asked.get() or _default()


@cache
def _default() -> int:
    said = from_environment()
    return usable_cores() if said is None else said[1]


def from_environment() -> tuple[str, int] | None:
    """The environment variable that sets the number of threads, and the number; None if none is set."""
    for name in VARIABLES:
        text = os.environ.get(name, "").strip()
        # OpenMP allows a list: one number for each level of nested loops.
        number = text.split(",")[0].strip() if name == "OMP_NUM_THREADS" else text
        if text and not (number.isdecimal() and int(number) >= 1):
            raise InputError(f"The environment has {name}={text!r}. Set it to an integer ≥ 1, or unset it.")
        if text:
            return name, int(number)
    return None


@cache
def usable_cores() -> int:
    """The number of cores that this process may use, limited by the quota of its container."""
    if sys.version_info >= (3, 13):
        cores = os.process_cpu_count()
    else:
        cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count()
    return max(1, min(cores or 1, _quota()))


def _quota() -> int:
    """The CPU quota of a Linux container in cores, rounded up."""
    for files in (("cpu.max",), ("cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us")):  # cgroups version 2, or 1
        try:
            quota, period = " ".join((CGROUP / file).read_text() for file in files).split()
            return math.ceil(int(quota) / int(period)) if int(quota) > 0 else sys.maxsize
        except (OSError, ValueError):  # there is no quota, or it is "max"
            continue
    return sys.maxsize
