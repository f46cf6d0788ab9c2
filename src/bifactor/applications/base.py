"""What workflows share: data, fits and hold-outs as users pass them, where passes over blocks run, and results."""

import os
import signal
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bifactor.applications.watch import AfterFit, Watch
from bifactor.arrays import Array
from bifactor.data import BlockStore, CellMask, Dataset, Observations, RandomCells, read
from bifactor.errors import InputError
from bifactor.executors import Dask, Executor, Streamed
from bifactor.kernels.threading import thread_count
from bifactor.models import Fit, load
from bifactor.models.completion.clipping import stored_range
from bifactor.models.completion.fitting import CompletionSettings
from bifactor.models.new_entries import read_new_entries
from bifactor.models.storage import require_free
from bifactor.running.files import require_writable
from bifactor.validation import is_at_least_zero, is_count, require_instance

Pathlike = str | os.PathLike[str]

BLOCK_MEMORY = "2GB"
"""Memory for the blocks of a store that is read in this process."""

LOCAL = "127.0.0.1:0"
"""Any free port, for this machine only."""


# What a workflow returns.


@dataclass(frozen=True, eq=False)
class CompletedMatrix:
    """A completed matrix: the fit, how well it predicts, and its report.

    Attributes
    ----------
    fit : Fit
        The fit to all entries.
    report : str or None
        A page of HTML; None if Ctrl-C left it out.
    interrupted : bool
        Whether Ctrl-C ended a stage after the fit. What is missing is in the notes.
    """

    fit: Fit
    report: str | None
    interrupted: bool = False

    @property
    def card(self) -> dict[str, Any]:
        """The facts that `save` writes: data, settings, the run, scores and versions."""
        return self.fit.card

    @property
    def scores(self) -> dict[str, Any]:
        """How well held-out entries and those of a test are predicted, each beside the simplest rival."""
        found: dict[str, Any] = self.card["scores"]
        return found

    @property
    def notes(self) -> list[str]:
        """What a user should know about the data and the fit."""
        found: list[str] = self.card["notes"]
        return found

    def save(self, folder: Pathlike, *, force: bool = False, error_bars: bool = True) -> None:
        """Write the fit, its card and the report to a new folder; see `Fit.save`."""
        self.fit.save(folder, force=force, report=self.report, error_bars=error_bars)

    def __repr__(self) -> str:
        return f"CompletedMatrix({self.fit!r})"


@dataclass(frozen=True, eq=False)
class FitEvaluation:
    """How well a fit predicts, or ranks, entries that it has not seen.

    Attributes
    ----------
    fit : Fit
        The fit, with the rows of a history if there was one.
    scores : dict
        For values, errors and the fraction of deviance explained; for clicks, the metrics of ranked lists, with
        intervals and beside those of the most popular items.
    left_out : dict or None
        For clicks, the numbers of choices that cannot be judged, by reason.
    """

    fit: Fit
    scores: dict[str, Any]
    left_out: dict[str, int] | None = None


class Clock:
    """The seconds that a workflow takes, in all and to read the data."""

    def __init__(self) -> None:
        self.started, self.reading = time.perf_counter(), 0.0

    def read(self) -> None:
        """The data have been read."""
        self.reading = time.perf_counter() - self.started

    def card(self) -> dict[str, float]:
        return {"reading": self.reading, "all": time.perf_counter() - self.started}


class Output(NamedTuple):
    """The folder of a completion, if it is to be written."""

    folder: Path | None
    force: bool
    error_bars: bool

    @classmethod
    def of(cls, folder: Pathlike | None, force: bool, error_bars: bool = True) -> "Output":
        """Raises `InputError` if the folder cannot be written."""
        if folder is not None:
            require_free(Path(folder), force)
        return cls(None if folder is None else Path(folder), force, error_bars)

    def finish(self, fit: Fit, card: dict[str, Any], page: Callable[[], str], rest: AfterFit) -> CompletedMatrix:
        """The fit with its card and report, which is written if there is a folder."""
        report = rest.stage("the report", page)
        card["notes"] += rest.notes
        fit = replace(fit, card=card)
        if self.folder is not None:
            fit.save(self.folder, force=self.force, report=report, error_bars=self.error_bars)
            rest.written()
        return CompletedMatrix(fit, report, rest.ended)


# Data and fits.


class DataSource(NamedTuple):
    """Entries, and the file or folder that they come from, if any."""

    data: Dataset
    path: Path | None

    @property
    def name(self) -> str:
        """What messages call it."""
        return "the data" if self.path is None else str(self.path)

    @property
    def observations(self) -> Observations:
        """All entries, in memory."""
        return in_memory(self.data)

    @property
    def is_wide(self) -> bool:
        return self.data.origin is not None and self.data.origin.wide


def names_columns(data: Any) -> bool:
    """Whether data are a file or a frame, whose columns may be named, rather than a dataset or the folder of one."""
    return not isinstance(data, Dataset) and not (isinstance(data, (str, os.PathLike)) and Path(data).is_dir())


def open_source(data: Any, watch: Watch, reader: Any = read, **columns: Any) -> DataSource:
    """Entries from a file, the folder of a block store, a frame, or a dataset; `columns` are those of `data.read`."""
    path = Path(data) if isinstance(data, (str, os.PathLike)) else None
    named = [name for name, value in columns.items() if value is not None and value is not False]
    if not names_columns(data):
        if named:
            raise InputError(f"{named[0]} is for files and frames; these data know their columns. Leave it out.")
        return DataSource(data if path is None else BlockStore.open(path), path)
    if path is None:
        return DataSource(reader(data, **columns), None)
    with watch.reading(path.name) as progress:
        return DataSource(reader(path, progress=progress, **columns), path)


def open_new_entries(fit: Fit, data: Any, watch: Watch, **columns: Any) -> Observations:
    """New entries for a fit; see `Fit.fold_in`."""
    name = Path(data).name if isinstance(data, (str, os.PathLike)) else None
    if name is None:
        return read_new_entries(fit, data, **columns)
    with watch.reading(name) as progress:
        return read_new_entries(fit, data, progress=progress, **columns)


def in_memory(data: Dataset) -> Observations:
    """All entries of a dataset."""
    return data.lines(np.ones(data.shape[0], bool))


def open_fit(fit: Any, history: Any = None) -> Fit:
    """A fit from itself, its folder, what a workflow returned, or an estimator; with the rows of a history."""
    if isinstance(fit, (str, os.PathLike)):
        found = load(fit)
    else:
        found = getattr(fit, "fit_", fit.fit if isinstance(fit, (CompletedMatrix, FitEvaluation)) else fit)
    if not isinstance(found, Fit):
        raise InputError(f"{type(fit).__name__} is not a fit. Pass a Fit, its folder, or a fitted estimator.")
    return found if history is None else found.fold_in(history)


def with_history(fit: Fit, history: Any) -> tuple[Fit, Array]:
    """The fit with the rows of a history, and the names of these."""
    new = read_new_entries(fit, history)
    fit = fit.fold_in(new)
    count = new.shape[0]
    return fit, fit.rows.values[-count:] if new.row_names is None else new.row_names.values


# Settings.


def holdout_mask(holdout: Any, seed: int) -> CellMask | None:
    """The cells to hold out, from their share or as they are; None for none."""
    if callable(holdout):
        mask: CellMask = holdout
        return mask
    if not is_at_least_zero(holdout) or holdout >= 1:
        raise InputError(
            f"holdout={holdout!r} is not a share from 0 up to 1. Pass such a number, or cells as data.RandomLines."
        )
    return RandomCells(float(holdout), seed) if holdout else None


def settings_card(**settings: Any) -> dict[str, Any]:
    """Settings as they are saved in JSON."""
    found = {}
    for name, value in settings.items():
        if isinstance(value, np.generic):
            value = value.item()
        elif isinstance(value, tuple):
            value = stored_range(value)
        elif not isinstance(value, (str, int, float, type(None))):
            value = repr(value)
        found[name] = value
    return found


def columns_card(columns: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of the data, as far as they were named."""
    return {name: columns.get(name) for name in ("row", "col", "value", "weight", "wide")}


def with_checkpoint(settings: CompletionSettings, checkpoint: Pathlike | None) -> CompletionSettings:
    """Settings that save the run to a file, which must be writable."""
    if checkpoint is None:
        return settings
    require_writable(Path(checkpoint))
    return replace(settings, checkpoint=checkpoint)


# Fits.


@contextmanager
def collect_warnings(notes: list[str]) -> Iterator[None]:
    """Add the warnings of a fit to the notes."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    notes += [str(warning.message) for warning in caught]


@contextmanager
def run_on(executor: Executor | None, workers: int | None) -> Iterator[Executor]:
    """The executor of passes over blocks: the one given, or one of processes, which end with the context."""
    if executor is not None:
        yield executor
    elif workers is not None:
        with _processes(workers) as client:
            yield Dask(client)
    else:
        yield Streamed(BLOCK_MEMORY)


def require_executor(executor: Any, workers: Any) -> None:
    """Raise `InputError` unless these say where passes over blocks run."""
    if executor is not None:
        require_instance(executor, Executor, "executor")
    if workers is not None and not is_count(workers, 1):
        raise InputError(f"workers={workers!r} is not an integer ≥ 1. Pass a number of processes.")
    if executor is not None and workers is not None:
        raise InputError("executor and workers exclude each other. Pass one of them.")


@contextmanager
def _processes(count: int) -> Iterator[Any]:
    """A cluster of processes on this machine, not reachable from others."""
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        raise InputError('Dask is not installed. Run: pip install "bifactor[dask]".') from None
    each = max(1, thread_count() // count)
    # Without these, Dask warns if port 8787 is in use, and Dask 2024.8 serves pages to other machines.
    pages = {"dashboard_address": LOCAL, "worker_dashboard_address": LOCAL, "scheduler_kwargs": {"dashboard": False}}
    settings = {"n_workers": count, "threads_per_worker": each, "host": "127.0.0.1", **pages}
    with LocalCluster(**settings, silence_logs=50) as cluster, Client(cluster) as client:
        client.run(_ignore_interrupts)
        yield client


def _ignore_interrupts() -> None:
    """Leave Ctrl-C to the main process, which ends the workers."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
