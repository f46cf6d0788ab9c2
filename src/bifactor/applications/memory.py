"""The memory that the fit of a workflow takes, estimated before it starts."""

from bifactor.data import Dataset
from bifactor.executors import Streamed
from bifactor.models.completion.fitting import CompletionSettings
from bifactor.problems.objective import Objective
from bifactor.running.memory import entries_memory, require_memory
from bifactor.solvers import Solver

READERS = 30_000_000
"""Bytes of compiled code and of threads that only passes over blocks need."""

WORKER, CLIENT = 200_000_000, 60_000_000
"""Bytes of Python and its libraries in a worker process, and those of Dask in the process that directs workers."""

KEPT = 16
"""Bytes of an observation in the memory of a worker."""


def block_memory(problem: Objective, rank: int, solver: Solver, size: int, workers: int | None) -> int:
    """Bytes that a fit of this many observations in blocks takes, on this machine, with this many workers on it."""
    own = READERS + int(solver.peak(problem, rank))
    return own if workers is None else own + CLIENT + workers * WORKER + KEPT * size


def sample_memory(shape: tuple[int, int], size: int, most: int, rank: int, solver: Solver | None = None) -> int:
    """Bytes of choosing settings with at most this many observations: all, or those of part of the longer side."""
    some = min(size, most)
    long, short = max(shape), min(shape)
    return READERS + entries_memory((max(1, long * some // size), short), some, rank, solver=solver)


def saved_memory(problem: Objective, rank: int) -> int:
    """Bytes of the covariances of all rows and columns, which are computed and packed to be saved."""
    width = rank + problem.kind.fixed_columns
    return 8 * sum(problem.shape) * width * (width + 1)


def require_free_memory(needed: int, data: Dataset, settings: CompletionSettings) -> int:
    """The bytes needed. Raise `InputError` if that is more than there is, unless workers elsewhere may have more."""
    if data.in_memory or isinstance(settings.executor, Streamed):
        require_memory(needed)
    return needed
