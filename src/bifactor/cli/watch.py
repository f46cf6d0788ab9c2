"""Progress on stderr, where that is a terminal."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext

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

from bifactor.cli.look import in_time, stderr
from bifactor.problems.state import State
from bifactor.running.progress import turned
from bifactor.tables.source import Progress as Read

LONG = 10.0
"""Seconds from which on one wants to know before."""


@contextmanager
def _bar(columns: Iterable[ProgressColumn]) -> Iterator[Progress]:
    """A line on stderr, where that is a terminal; elsewhere, older versions of rich would still write an empty one."""
    console = stderr()
    bar = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
    with bar if console.is_terminal else nullcontext():
        yield bar


@contextmanager
def reading(name: str) -> Iterator[Read]:
    """A bar for a file that is read."""
    columns = (
        TextColumn("reading {task.description}", markup=False),
        BarColumn(),
        DownloadColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with _bar(columns) as bar:
        task = bar.add_task(name, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


class Fitting:
    """A line that tells what is being done, how far it is, and how long it takes at most."""

    def __init__(self, bar: Progress, first: str, what: str):
        self._bar, self._task, self._what, self._most = bar, bar.add_task(first, total=None), what, 0

    def stage(self, what: str, done: int, most: int) -> None:
        """A step of what comes before the iterations."""
        turned(self._bar, self._task, what, done, most)

    def expect(self, seconds: float) -> None:
        """Tell how long it will take, where that is worth knowing."""
        if seconds >= LONG and self._bar.console.is_terminal:
            self._bar.console.print(f"The fit takes about {in_time(seconds)}.", markup=False)

    def iterations(self, most: int) -> Callable[[int, State], None]:
        """A callback for so many iterations at most."""

        def show(iteration: int, state: State) -> None:
            described = f"{self._what}: objective {state.value:.6g}, iteration"
            if not self._most:
                self._bar.reset(self._task)
                self._most = most
            self._bar.update(self._task, description=described, completed=iteration, total=most)

        return show


@contextmanager
def fitting(what: str, first: str) -> Iterator[Fitting]:
    """How far a fit is; `first` says what is done before the iterations."""
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left at most"),
        TimeRemainingColumn(),
    )
    with _bar(columns) as bar:
        yield Fitting(bar, first, what)


@contextmanager
def stages() -> Iterator[Callable[[str, int, int], None]]:
    """What is done, how far it is, how much of it in a second, and how long the rest takes."""
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
        yield lambda what, done, total: turned(bar, task, what, done, total)


class _Speed(ProgressColumn):
    """Millions of observations, or megabytes of text, in a second."""

    def render(self, task: Task) -> Text:
        return Text("" if task.speed is None else f"{task.speed / 1e6:.1f} M/s")


@contextmanager
def share(what: str) -> Iterator[Callable[[float], None]]:
    """Which share of the work is done, and how long the rest takes."""
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
