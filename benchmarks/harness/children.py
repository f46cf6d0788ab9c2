"""Many cases in separate processes, which may crash, hang or use too much memory without harm."""

import multiprocessing
import resource
import signal
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

MEMORY = 1 << 30
"""Bytes that a case may take beyond what the process has at its start."""

SECONDS = 20
"""Time limit of a case."""

Case = Callable[[str, int, Path], str]
"""Runs case number `seed` of a kind in a folder, and returns its outcome in a word."""


class Late(BaseException):
    """A case took longer than SECONDS."""


def outcomes(case: Case, kind: str, first: int, count: int) -> tuple[Counter[str], list[str]]:
    """Counts of the outcomes of cases of a kind, and details of the bad ones."""
    told: Counter[str] = Counter()
    examples: list[str] = []
    context, last = multiprocessing.get_context("spawn"), first + count
    while first < last:
        ours, theirs = context.Pipe(duplex=False)
        child = context.Process(target=_work, args=(theirs, case, kind, first, last))
        child.start()
        theirs.close()
        at = first
        try:
            while True:
                at, outcome, example = ours.recv()
                if outcome:
                    told[outcome] += 1
                    examples += [f"{kind} {at}: {example}"] if example else []
        except EOFError:
            child.join()
        first = at + 1
        if child.exitcode:
            told["signal" if child.exitcode < 0 else "exit"] += 1
            examples.append(f"{kind} {at}: exit code {child.exitcode}")
    return told, examples


def _work(pipe: Connection, case: Case, kind: str, first: int, last: int) -> None:
    size = _address_space()
    resource.setrlimit(resource.RLIMIT_AS, (size + 2 * MEMORY, resource.RLIM_INFINITY))
    signal.signal(signal.SIGALRM, _late)
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as folder:
        for seed in range(first, last):
            pipe.send((seed, "", ""))
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            outcome, example = _outcome(case, kind, seed, Path(folder))
            if (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 > MEMORY:
                outcome, example = "memory", example or "too much memory"
            pipe.send((seed, outcome, example))


def _outcome(case: Case, kind: str, seed: int, folder: Path) -> tuple[str, str]:
    signal.alarm(SECONDS)
    try:
        return case(kind, seed, folder), ""
    except MemoryError:
        return "memory", "MemoryError " + _where()
    except Late:
        return "late", _where()
    except Exception as error:
        return "other", f"{type(error).__name__}: {str(error)[:120]} {_where()}"
    finally:
        signal.alarm(0)


def _where() -> str:
    """The last line of ours in the traceback that is being handled."""
    lines = [line for line in traceback.format_exc().splitlines() if "bifactor/" in line and line.strip()[:4] == "File"]
    return lines[-1].strip() if lines else traceback.format_exc().splitlines()[-1]


def _late(*_: Any) -> None:
    raise Late


def _address_space() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
