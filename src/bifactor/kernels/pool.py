"""Run compiled kernels on all cores.

Kernels release the GIL, so ordinary threads are enough: no threading layer to install, safe to call from
several threads at once, and safe after a fork.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from contextvars import copy_context
from functools import cache
from itertools import pairwise
from typing import Any

SMALL = 1 << 17
"""Steps of a simple loop below which handing work to threads costs more than it saves."""


@cache
def _executor() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=threads(), thread_name_prefix="bifactor")


# Threads do not survive a fork: the child must start its own.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_executor.cache_clear)


def threads() -> int:
    """Threads used by kernels: the cores of this process, or `NUMBA_NUM_THREADS` where it is set."""
    return int(os.environ.get("NUMBA_NUM_THREADS") or len(os.sched_getaffinity(0)))


def threads_for(work: float) -> int:
    return 1 if work < SMALL else threads()


def shares(count: int, work: float = 1) -> list[tuple[int, int]]:
    """(start, stop) of each thread's share of a loop whose steps cost `work` each."""
    parts = max(1, min(count, threads_for(count * work)))
    if parts == 1:
        return [(0, count)]
    return list(pairwise(count * t // parts for t in range(parts + 1)))


def run(function: Callable[..., Any], calls: list[tuple[Any, ...]]) -> list[Any]:
    """`[function(*args) for args in calls]`, side by side; the caller's own thread takes the first."""
    if len(calls) == 1:  # small problems make thousands of such calls
        return [function(*calls[0])]
    # In a copy of the caller's context, so that its numpy.errstate holds there too.
    others = [_executor().submit(copy_context().run, function, *args) for args in calls[1:]]
    try:
        first = function(*calls[0])
    finally:
        wait(others)  # whatever happened here: they write to memory that the caller may use again
    return [first, *(job.result() for job in others)]
