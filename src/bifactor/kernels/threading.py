"""The number of threads that kernels and matrix products may use."""

import math
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar, copy_context
from functools import cache, lru_cache
from itertools import pairwise
from pathlib import Path
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any

from threadpoolctl import ThreadpoolController

from bifactor._compat import hold_at_fork
from bifactor.errors import InputError
from bifactor.validation import is_count

_LOCK = threading.RLock()  # reentrant, because a signal handler may fork while it is held
_blas_asked: dict[int, list[int]] = {}
"""The limits that each thread has requested, the innermost last."""
_before: list[tuple[Any, int]] = []
"""Each library, and its number of threads before there was a limit."""
_UNCHANGED = nullcontext()


def blas_at_most(count: int) -> AbstractContextManager[None]:
    """A context in which BLAS uses at most this many threads; the last one to exit restores the previous number."""
    asked = _blas_asked.get(threading.get_ident())
    return _UNCHANGED if asked and asked[-1] == count else _blas_limited(count)


@contextmanager
def _blas_limited(count: int) -> Iterator[None]:
    me = threading.get_ident()
    with _LOCK:
        _blas_asked.setdefault(me, []).append(count)
        _apply()
    try:
        yield
    finally:
        with _LOCK:
            _blas_asked[me].pop()
            if not _blas_asked[me]:
                del _blas_asked[me]
            _apply()


def _apply() -> None:
    least = min((counts[-1] for counts in _blas_asked.values()), default=None)
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
    for thread in [thread for thread in _blas_asked if thread != me]:
        del _blas_asked[thread]
    _apply()


hold_at_fork(_LOCK)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_other_threads)


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


# A pool of threads for compiled kernels.
#
# Kernels release the GIL, so ordinary threads are enough: there is no threading layer to install, and it is safe to
# call from several threads at once, and after a fork. (The executor of the standard library took 51 µs for an empty
# call; this takes 14 µs.)

SMALL = 1 << 17
"""The number of steps of a simple loop, about 100 µs, below which a thread is not worth waking."""


def threads_for(work: float) -> int:
    """The number of threads to use, such that none has a small share of the work."""
    if work < 2 * SMALL:
        return 1
    most = thread_count()
    return most if work >= most * SMALL else max(1, int(work // SMALL))


def shares(count: int, work: float = 1) -> list[tuple[int, int]]:
    """(start, stop) of each thread's share of a loop whose steps cost `work` each."""
    parts = max(1, min(count, threads_for(count * work)))
    if parts == 1:
        return [(0, count)]
    return list(pairwise(count * t // parts for t in range(parts + 1)))


def run(function: Callable[..., Any], calls: list[tuple[Any, ...]]) -> list[Any]:
    """`[function(*args) for args in calls]`, in parallel; the calling thread makes the first call.

    After that, it also makes those calls that no other thread has begun, so it never waits for threads that are busy
    elsewhere.
    """
    if len(calls) == 1:  # small problems make thousands of such calls
        return [function(*calls[0])]
    parts = [_Part(function, args) for args in calls[1:]]
    try:
        _workers.offer(parts)
        first = function(*calls[0])
        for part in parts:
            part.make()
    finally:
        _finish(parts)
    return [first, *(part.result() for part in parts)]


class _Part:
    """A call, made by the first thread that takes it."""

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...]):
        self.function, self.args = function, args
        self.context = copy_context()  # that of the caller, so that its numpy.errstate applies, too
        self.value: Any = None
        self.error: BaseException | None = None
        self.taken, self.done = Lock(), Lock()
        self.done.acquire()

    def make(self) -> None:
        if not self.taken.acquire(blocking=False):
            return
        try:
            self.value = self.context.run(self.function, *self.args)
        except BaseException as error:
            self.error = error
        finally:
            self.args = ()  # before the caller continues: memory without references is reused
            self.done.release()

    def finish(self) -> None:
        """Return when no thread is making the call or will make it."""
        if not self.taken.acquire(blocking=False):
            with self.done:
                pass

    def result(self) -> Any:
        if self.error is not None:
            raise self.error
        return self.value


def _finish(parts: Sequence[_Part]) -> None:
    try:
        for part in parts:
            part.finish()
    except BaseException:  # Ctrl-C: wait all the same, because they write to memory that the caller may reuse
        _finish(parts)
        raise


class _Workers:
    """Threads that wait for work. More are started if all are busy, up to the number of cores, or of calls at once."""

    def __init__(self) -> None:
        self.parts: SimpleQueue[_Part] = SimpleQueue()
        self.lock = Lock()
        self.started = self.free = 0

    def offer(self, parts: Sequence[_Part]) -> None:
        with self.lock:
            self._start(len(parts) - self.free, max(len(parts), usable_cores()))
            if not self.started:
                return
            self.free -= len(parts)
        for part in parts:
            self.parts.put(part)

    def _start(self, missing: int, most: int) -> None:
        for _ in range(min(missing, most - self.started)):
            try:
                Thread(target=self._work, name="bifactor", daemon=True).start()
            except RuntimeError:  # no more threads are available: the caller does the work itself
                return
            self.started += 1
            self.free += 1

    def _work(self) -> None:
        while True:
            self.parts.get().make()
            with self.lock:
                self.free += 1


_workers = _Workers()


def _start_anew() -> None:
    """Threads do not survive a fork: the child must start its own."""
    global _workers
    _workers = _Workers()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_anew)
