"""Cells computed side by side, each in a process of its own with one thread."""

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from bifactor.errors import BifactorError
from bifactor_reproduce.harness.experiment import Experiment
from bifactor_reproduce.harness.sources import Sources
from bifactor_reproduce.harness.store import Store

THREADS = (
    "BIFACTOR_NUM_THREADS",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)

ORPHANED = 1.0
"""Seconds between looks at whether the process that started this one is still there."""


@dataclass(frozen=True)
class Task:
    """A cell of an experiment that is still to be computed."""

    experiment: Experiment[Any]
    cell: Any

    def __str__(self) -> str:
        return f"{self.experiment.name}: {self.experiment.label(self.cell)}"


@dataclass(frozen=True)
class Failure:
    """A cell that could not be computed, and why."""

    task: Task
    reason: str


Watcher = Callable[[Sequence[Task], Task | None], None]
"""Told which tasks are being worked on, and which has just ended."""


def run_all(tasks: Sequence[Task], sources: Sources, store: Store, jobs: int, watcher: Watcher) -> list[Failure]:
    """Compute the tasks, in their order as far as there are processes; outcomes are in the store when they are done.

    Ctrl-C ends the processes at once, and what they were at is lost; everything before is kept.
    """
    with _one_thread(), _processes(min(jobs, max(len(tasks), 1))) as pool:
        try:
            return _spread(pool, list(tasks), sources, store, jobs, watcher)
        except BrokenProcessPool:
            lost = (
                "A process was ended before its cell was done, perhaps for want of memory. Try again with fewer jobs."
            )
            raise BifactorError(lost) from None


def _spread(
    pool: ProcessPoolExecutor, queue: list[Task], sources: Sources, store: Store, jobs: int, watcher: Watcher
) -> list[Failure]:
    failures = []
    running: dict[Future[None], Task] = {}
    while queue or running:
        while queue and len(running) < jobs:
            task = queue.pop(0)
            running[pool.submit(_compute, task, sources, store)] = task
        watcher(list(running.values()), None)
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            task = running.pop(future)
            error = future.exception()
            if isinstance(error, BrokenProcessPool):
                raise error
            if error is not None:
                failures.append(Failure(task, f"{type(error).__name__}: {error}"))
            watcher(list(running.values()), task)
    return failures


def _compute(task: Task, sources: Sources, store: Store) -> None:
    started = time.process_time()
    outcome = task.experiment.run(task.cell, sources)
    store.write(task.experiment, task.cell, {**outcome, "processor_seconds": time.process_time() - started})


@contextmanager
def _processes(jobs: int) -> Iterator[ProcessPoolExecutor]:
    pool = ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), _prepare, (os.getpid(),))
    try:
        yield pool
    except BaseException:
        for process in multiprocessing.active_children():
            process.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _prepare(parent: int) -> None:
    """A new process: Ctrl-C is left to the parent (a solver would end its run early), and with the parent it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def look() -> None:
        while os.getppid() == parent:
            time.sleep(ORPHANED)
        os._exit(1)

    threading.Thread(target=look, daemon=True).start()


@contextmanager
def _one_thread() -> Iterator[None]:
    """Processes that are started meanwhile have one thread for kernels and one for BLAS."""
    before = {name: os.environ.get(name) for name in THREADS}
    os.environ.update(dict.fromkeys(THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
