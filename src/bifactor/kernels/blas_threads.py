"""The number of threads that BLAS may use.

BLAS has one limit for the whole process. Each Python thread may request its own limit; the smallest applies.
"""

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import lru_cache
from typing import Any

from threadpoolctl import ThreadpoolController

from bifactor._compat import hold_at_fork

_LOCK = threading.RLock()  # reentrant, because a signal handler may fork while it is held
_asked: dict[int, list[int]] = {}
"""The limits that each thread has requested, the innermost last."""
_before: list[tuple[Any, int]] = []
"""Each library, and its number of threads before there was a limit."""
_UNCHANGED = nullcontext()


def blas_at_most(count: int) -> AbstractContextManager[None]:
    """A context in which BLAS uses at most this many threads; the last one to exit restores the previous number."""
    asked = _asked.get(threading.get_ident())
    return _UNCHANGED if asked and asked[-1] == count else _limited(count)


@contextmanager
def _limited(count: int) -> Iterator[None]:
    me = threading.get_ident()
    with _LOCK:
        _asked.setdefault(me, []).append(count)
        _apply()
    try:
        yield
    finally:
        with _LOCK:
            _asked[me].pop()
            if not _asked[me]:
                del _asked[me]
            _apply()


def _apply() -> None:
    least = min((counts[-1] for counts in _asked.values()), default=None)
    if least is not None and not _before:
        found = [(library, library.num_threads) for library in _libraries(len(sys.modules))]
        _before[:] = [(library, threads) for library, threads in found if threads]  # some do not report it
    for library, threads in _before:
        _set(library, threads if least is None else min(threads, least))
    if least is None:
        _before.clear()


def _set(library: Any, threads: int) -> None:
    # Since version 3.8, threadpoolctl obeys one Python thread and silently ignores the others. Here they agree.
    change = getattr(library, "_real_set_num_threads", library.set_num_threads)
    change(threads)


@lru_cache(maxsize=1)
def _libraries(modules: int) -> list[Any]:
    """The BLAS libraries of NumPy, SciPy, …; they are loaded with modules, so the cache depends on their number."""
    found: list[Any] = ThreadpoolController().select(user_api="blas").lib_controllers
    return found


def _forget_other_threads() -> None:
    """In the child of a fork, drop the limits of the other threads of the parent, which do not exist there."""
    me = threading.get_ident()
    for thread in [thread for thread in _asked if thread != me]:
        del _asked[thread]
    _apply()


hold_at_fork(_LOCK)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_other_threads)
