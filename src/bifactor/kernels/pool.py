"""A pool of threads for compiled kernels.

Kernels release the GIL, so ordinary threads are enough: there is no threading layer to install, and it is safe to call
from several threads at once, and after a fork. (The executor of the standard library took 51 µs for an empty call; this
takes 14 µs.)
"""

import os
from collections.abc import Callable, Sequence
from contextvars import copy_context
from itertools import pairwise
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any

from bifactor.kernels.threads import thread_count, usable_cores

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
