"""The memory that a run takes, estimated before it starts, and the memory that is free."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bifactor.arrays import array_bytes
from bifactor.errors import InputError
from bifactor.kernels.entry_layout import EntryLayout
from bifactor.losses import DataFit, Squared
from bifactor.operators import Entries
from bifactor.operators.base import matrix_shape
from bifactor.operators.entries import EntriesBound
from bifactor.penalties import Ridge
from bifactor.problems.objective import Objective
from bifactor.solvers import PCG, Solver
from bifactor.solvers.default import default_solver
from bifactor.validation import is_count, require_instance, require_rank

try:
    import resource
except ImportError:  # there is no such module on Windows
    resource = None  # type: ignore[assignment]

ROOT = Path("/")
"""The root of the files in which the system reports its memory."""

SORTING = 34
"""Temporary bytes per entry for sorting coordinates and drawing the entries to hold out."""


@dataclass(frozen=True)
class Memory:
    """Bytes of the arrays that a problem holds, and the peak bytes of a run beyond them."""

    data: int
    run: int

    @property
    def total(self) -> int:
        return self.data + self.run

    def __str__(self) -> str:
        total, data, run = map(bytes_in_words, (self.total, self.data, self.run))
        return f"{total}: {data} for the data, {run} for the run"


def solve_memory(problem: Objective, rank: int, solver: Solver | None = None) -> Memory:
    """The memory that `solve(problem, rank, solver)` takes; see `Objective.memory`."""
    if isinstance(rank, str) and rank == "auto":
        raise InputError(
            "rank='auto' is chosen in the run, so its memory is not known. Pass the largest rank that you expect."
        )
    columns = require_rank(rank, problem.shape, problem.least_rank)
    if solver is not None:
        require_instance(solver, Solver, "solver")
    chosen = default_solver(problem, columns) if solver is None else solver
    start = chosen.start.peak(problem, chosen.start_columns(problem, columns))
    return Memory(array_bytes(problem), max(start, chosen.peak(problem, columns)))


def entries_memory(
    shape: tuple[int, int], entries: int, rank: int, dtype: Any = np.float64, solver: Solver | None = None
) -> int:
    """Peak bytes of fitting a completion model, besides the entries that are passed to it.

    For use before the problem is made, which takes memory too: coordinates and values are copied and sorted, a tenth of
    the entries is held out to choose rank and ridge, and then the solver runs, with offsets.

    Parameters
    ----------
    shape : (m, n)
        The shape of the matrix.
    entries : int
        The number of known entries.
    rank : int
        The largest number of columns that are tried; at most min(m, n) are counted.
    dtype : dtype
        The dtype of the values.
    solver : Solver, optional
        The solver, by default `PCG`.
    """
    m, n = matrix_shape(shape)
    for name, number, least in (("entries", entries, 1), ("rank", rank, 0)):
        if not is_count(number, least):
            raise InputError(f"{name}={number!r} is not an integer ≥ {least}.")
    item = np.dtype(dtype).itemsize
    problem, columns = _like(m, n, int(entries), np.dtype(dtype)), min(int(rank), m, n)
    arranged = entries * (2 * 4 + item)  # coordinates and values
    held_out = 2 * entries * (item + 2)  # weights and a mask, and again to choose the rank
    return int(arranged + max(SORTING * entries, held_out + (solver or PCG()).peak(problem, columns)))


def _like(m: int, n: int, entries: int, dtype: np.dtype) -> Objective:
    """A problem of this size, whose arrays are views of a single number."""
    index, y = np.broadcast_to(np.int32(0), entries), np.broadcast_to(dtype.type(0), entries)
    layout = EntryLayout(index, index, max(m, n), min(m, n), np.array([0, entries]))
    operator = Entries.arranged((m, n), layout, flipped=m < n)
    return Objective(EntriesBound(operator, DataFit(Squared(), y)), Ridge(1.0), offsets=True)


def require_memory(needed: int) -> None:
    """Raise `InputError` if a fit needs more bytes than are known to be free."""
    free = available_memory()
    if free is not None and needed > free:
        raise InputError(
            f"This fit needs about {bytes_in_words(needed)}, but only {bytes_in_words(free)} are free. "
            "Use fewer entries, a smaller rank or float32."
        )


def available_memory() -> int | None:
    """Bytes that this process can still allocate; None if the system does not report them.

    This is the least of the free memory of the machine, that of its control groups (containers have one), and what the
    limit on the address space of the process leaves.
    """
    known = [left for left in (_machine(), _address_space(), *_control_groups()) if left is not None]
    return max(min(known), 0) if known else None


def bytes_in_words(size: float) -> str:
    """Bytes as people write them: 1.2 GB."""
    for unit, name in ((1e9, "GB"), (1e6, "MB")):
        if size >= 0.95 * unit:
            return f"{size / unit:.1f} {name}" if size < 9.95 * unit else f"{size / unit:,.0f} {name}"
    return f"{size / 1e3:.0f} kB"


def _machine() -> int | None:
    return _number(ROOT / "proc/meminfo", "MemAvailable:", 1024)


def _address_space() -> int | None:
    if resource is None:
        return None
    limit, (used, *_) = resource.getrlimit(resource.RLIMIT_AS)[0], (_text(ROOT / "proc/self/statm") or "0").split()
    return None if limit == resource.RLIM_INFINITY else limit - int(used) * os.sysconf("SC_PAGE_SIZE")


def _control_groups() -> Iterator[int | None]:
    """The bytes left in each control group of the process; the cache of inactive files counts as free."""
    for line in (_text(ROOT / "proc/self/cgroup") or "").splitlines():
        number, controllers, path = line.split(":", 2)
        if number == "0":
            home, limit, usage, idle = "sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"
        elif "memory" in controllers.split(","):
            home, limit, usage = "sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes"
            idle = "total_inactive_file"
        else:
            continue
        group = Path(path.lstrip("/"))
        for folder in (ROOT / home / group, *(ROOT / home / parent for parent in group.parents)):
            most, used = _number(folder / limit), _number(folder / usage)
            if most is not None and used is not None:
                yield most - used + (_number(folder / "memory.stat", idle) or 0)


def _number(path: Path, name: str | None = None, unit: int = 1) -> int | None:
    """The number in a file, or the one after a name at the beginning of a line; None if there is none."""
    for line in (_text(path) or "").splitlines():
        words = line.split() if name is None else line.split()[1:] if line.split()[:1] == [name] else []
        if words and words[0].isdigit():
            return int(words[0]) * unit
    return None


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
