"""Progress on stderr, if that is a terminal, and a machine-readable log of a fit."""

import json
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import click
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from bifactor.applications.watch import AfterFit, FitWatch, Watch
from bifactor.cli.output import ENDED, INTERRUPTED, TERMINATED, WRITING, WRITTEN, escape_controls, stderr
from bifactor.data.text import Progress as Read
from bifactor.errors import FileError
from bifactor.problems.state import State
from bifactor.running.memory import bytes_in_words
from bifactor.running.progress import show_stage

LOG = "bifactor.log"
"""Key of the log in the context of a command."""


class Journal:
    """Appends lines to a file as soon as they are known."""

    def __init__(self, path: Path):
        try:
            self._file = path.open("a", encoding="utf-8", buffering=1)
        except OSError as error:
            raise FileError(f"Cannot write to {path}: {error.strerror}. Choose another file for --log.") from None

    def write(self, **told: Any) -> None:
        self._file.write(json.dumps(told, default=float) + "\n")

    def close(self) -> None:
        self._file.close()


class Pace:
    """The speed of iterations, measured from the first one that is reported."""

    def __init__(self, observations: int, most: int):
        self.observations, self.most = observations, most
        self._first: tuple[int, float] | None = None
        self._began = time.perf_counter()

    def at(self, iteration: int) -> dict[str, float | None]:
        """Seconds so far, observations per second, and an upper bound of the seconds left; None while unknown.

        An iteration counts every observation once, even if it makes several passes.
        """
        now = time.perf_counter()
        first, since = self._first or (iteration, now)
        self._first = first, since
        each = (now - since) / (iteration - first) if iteration > first else None
        return {
            "seconds": round(now - self._began, 4),
            "observations_per_second": round(self.observations / each) if each and self.observations else None,
            "left_at_most": None if each is None else round(each * (self.most - iteration), 3),
        }


def log_option(command: Any) -> Any:
    """Add the option `--log`."""
    return click.option(
        "--log",
        type=click.Path(dir_okay=False, path_type=Path),
        expose_value=False,
        callback=_note,
        help="File to append to: one line of JSON per iteration.",
    )(command)


def journal() -> Journal | None:
    """The log of the running command, if it has one."""
    context = click.get_current_context(silent=True)
    found: Journal | None = None if context is None else context.meta.get(LOG)
    return found


def _note(context: click.Context, option: click.Parameter, path: Path | None) -> None:
    if path is not None and not context.resilient_parsing:
        opened = Journal(path)
        context.meta[LOG] = opened
        context.call_on_close(opened.close)


@contextmanager
def _bar(columns: Iterable[ProgressColumn]) -> Iterator[Progress]:
    """A line on stderr if that is a terminal; elsewhere, older versions of rich would write an empty line."""
    console = stderr()
    bar = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
    with bar if console.is_terminal else nullcontext():
        yield bar


@contextmanager
def reading_progress(name: str) -> Iterator[Read]:
    """A progress bar for reading a file."""
    columns = (
        TextColumn("reading {task.description}", markup=False),
        BarColumn(),
        DownloadColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with _bar(columns) as bar:
        task = bar.add_task(escape_controls(name), total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


class FitMonitor(FitWatch):
    """A line with the current stage, its progress, and an upper bound of the time left."""

    def __init__(self, bar: Progress, first: str, what: str, observations: int):
        self._bar, self._task, self._what, self._most = bar, bar.add_task(first, total=None), what, 0
        self._observations, self._log = observations, journal()

    def stage(self, what: str, done: int, most: int) -> None:
        """Show a stage before the iterations."""
        show_stage(self._bar, self._task, what, done, most)

    def iterations(self, most: int) -> Callable[[int, State], None]:
        """A callback for at most `most` iterations."""

        pace = Pace(self._observations, most)

        def show(iteration: int, state: State) -> None:
            told = pace.at(iteration)
            speed = told["observations_per_second"]
            fast = "" if speed is None else f", {speed / 1e6:.3g} M observations/s"
            described = f"{self._what}: objective {state.value:.6g}{fast}, iteration"
            if self._log is not None:
                self._log.write(stage=self._what, iteration=iteration, objective=state.value, **told)
            if not self._most:
                self._bar.reset(self._task)
                self._most = most
            self._bar.update(self._task, description=described, completed=iteration, total=most)

        return show

    def ended(self, status: Any) -> None:
        """Log how a fit ended."""
        if self._log is not None:
            self._log.write(stage=self._what, status=status.name, sentence=str(status))


@contextmanager
def fit_progress(what: str, first: str, observations: int = 0) -> Iterator[FitMonitor]:
    """The progress of a fit to so many observations; `first` names the stage before the iterations."""
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left at most"),
        TimeRemainingColumn(),
    )
    with _bar(columns) as bar:
        yield FitMonitor(bar, first, what, observations)


@contextmanager
def stages() -> Iterator[Callable[[str, int, int], None]]:
    """The current stage, its progress and speed, and the time left."""
    console = stderr()
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=20),
        TaskProgressColumn(),
        _Speed(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("opening", total=None)
        yield lambda what, done, total: show_stage(bar, task, what, done, total)


class _Speed(ProgressColumn):
    """Millions of observations, or megabytes of text, per second."""

    def render(self, task: Task) -> Text:
        return Text("" if task.speed is None else f"{task.speed / 1e6:.1f} M/s")


@contextmanager
def share(what: str) -> Iterator[Callable[[float], None]]:
    """The share of the work that is done, and the time left."""
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with _bar(columns) as bar:
        task = bar.add_task(what, total=1)
        yield lambda done: bar.update(task, completed=done)


class CommandStages(AfterFit):
    """The stages after a fit of a command, which remembers for its exit code and its messages how far they came."""

    def __init__(self) -> None:
        super().__init__()
        self.context = click.get_current_context()

    def keep(self) -> None:
        super().keep()
        self.context.meta[WRITING] = True

    def written(self) -> None:
        self.context.meta[WRITTEN] = True

    def note_signal(self, number: int) -> None:
        self.context.meta[ENDED] = INTERRUPTED if number == signal.SIGINT else TERMINATED


class TerminalWatch(Watch):
    """Shows the progress of a workflow on a terminal, logs its fits, and answers signals."""

    def reading(self, name: str) -> AbstractContextManager[Read]:
        return reading_progress(name)

    def fitting(self, what: str, first: str, observations: int = 0) -> AbstractContextManager[FitWatch]:
        return fit_progress(what, first, observations)

    def share(self, what: str) -> AbstractContextManager[Callable[[float], None]]:
        return share(what)

    def memory(self, needed: int) -> None:
        console = stderr()
        if console.is_terminal:
            console.print(f"The fit takes about {bytes_in_words(needed)} of memory besides Python itself.")

    def after_fit(self) -> AbstractContextManager[AfterFit]:
        return CommandStages().answer_signals()
