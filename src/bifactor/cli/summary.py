"""What `bifactor complete` says of a fit: the memory that it takes, estimated, checked and measured, and a summary."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bifactor.cli.output import notes
from bifactor.data import Dataset
from bifactor.executors import Streamed
from bifactor.models.completion.clipping import describe_range as spoken_range
from bifactor.models.completion.clipping import restored_range
from bifactor.models.completion.fitting import CompletionSettings
from bifactor.models.metrics import format_scores
from bifactor.models.storage import REPORT
from bifactor.problems.objective import Objective
from bifactor.running.memory import bytes_in_words, entries_memory, require_memory
from bifactor.solvers import Solver
from bifactor.validation import pluralize

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


def require_free_memory(needed: int, data: Dataset, chosen: CompletionSettings) -> int:
    """The bytes needed. Raise `InputError` if that is more than there is, unless workers elsewhere may have more."""
    if data.in_memory or isinstance(chosen.executor, Streamed):
        require_memory(needed)
    return needed


def memory_in_words(card: Mapping[str, Any]) -> str:
    """The line of the summary; what is estimated is the growth of the process beyond Python with its libraries."""
    workers = card["settings"].get("workers")
    beside = "" if workers is None else f"{pluralize(workers, 'worker')} included, "
    return f"about {bytes_in_words(card['memory'])} besides Python itself, {beside}as estimated before the fit"


def summary(card: dict[str, Any], output: Path) -> list[tuple[str, str]]:
    data, fit, timings = card["data"], card["fit"], card["timings"]
    return [
        ("data", f"{data['file']}, {data['layout']}"),
        ("", f"{pluralize(data['entries'], 'entry')} of {data['rows']:,} × {data['cols']:,}"),
        ("fit", f"rank {fit['rank']}, {_shrinkage(fit)}, {pluralize(fit['iterations'], 'iteration')}"),
        *_noise(fit),
        *_clipped(fit),
        ("status", fit["sentence"]),
        *((name, format_scores(score)) for name, score in card["scores"].items()),
        *notes(card["notes"]),
        ("memory", memory_in_words(card)),
        ("time", f"{timings['all']:.1f} s, of which reading took {timings['reading']:.1f} s"),
        ("written", describe_output(output)),
    ]


def describe_output(output: Path) -> str:
    """The folder of a fit, and its report if there is one."""
    return f"{output} (look at {output / REPORT})" if (output / REPORT).exists() else str(output)


def _shrinkage(fit: dict[str, Any]) -> str:
    return "with error bars" if fit["ridge"] is None else f"ridge {fit['ridge']:.4g}"


def _noise(fit: dict[str, Any]) -> list[tuple[str, str]]:
    """For a fit with error bars: the noise, and how many components are not practically zero."""
    told = fit["noise"]
    if told is None:
        return []
    used = f"{told['living']} of {pluralize(fit['rank'], 'component')} in use"
    return [("noise", f"±{told['std']:.4g}, {told['words']}; {used}")]


def _clipped(fit: dict[str, Any]) -> list[tuple[str, str]]:
    limits = restored_range(fit["clip"])
    return [] if limits is None else [("clipped", f"predictions are {spoken_range(limits)}")]
