"""Measures time and memory."""

import multiprocessing
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.harness.rows import Row, row


def side_by_side(
    candidates: dict[str, Callable[[], Any]], repeats: int, reset: Callable[[], None] = lambda: None
) -> dict[str, list[float]]:
    """Seconds of each candidate, taken in turns so that load on the machine affects all of them; one warm-up each.

    `reset` runs before every measurement and is not counted.
    """
    for candidate in candidates.values():
        reset()
        candidate()
    seconds: dict[str, list[float]] = {name: [] for name in candidates}
    for _ in range(repeats):
        for name, candidate in candidates.items():
            reset()
            started = time.perf_counter()
            candidate()
            seconds[name].append(time.perf_counter() - started)
    return seconds


def in_turns(
    objective: str, data: str, candidates: dict[str, Callable[[], Any]], repeats: int, **more: Any
) -> list[Row]:
    """`side_by_side` as rows, one for each repeat; the candidates are the solvers."""
    seconds = side_by_side(candidates, repeats, **more)
    return [row(objective, data, name, draw=k, seconds=s) for name in candidates for k, s in enumerate(seconds[name])]


def in_fresh_process(function: Callable[[], list[Row]]) -> list[Row]:
    """The rows of `function`, the first with the peak memory of a process that does nothing else.

    A function that checks its answer in the same process notes the peak itself, before that.
    """
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_weighed, (function,))


def _weighed(function: Callable[[], list[Row]]) -> list[Row]:
    first, *rest = function()
    return [{"peak_gigabytes": peak_bytes() / 1e9, **first}, *rest]


def peak_bytes() -> int:
    status = Path("/proc/self/status")
    if status.exists():  # ru_maxrss would begin at the size of the process that started this one
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return 1024 * int(line.split()[1])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
