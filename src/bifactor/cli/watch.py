"""Progress on stderr, where that is a terminal."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, DownloadColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from bifactor.cli.options import stderr
from bifactor.problems.state import State
from bifactor.tables.source import Progress as Read


@contextmanager
def reading(name: str) -> Iterator[Read]:
    """A bar for a file that is read."""
    console = stderr()
    columns = (
        TextColumn("reading {task.description}", markup=False),
        BarColumn(),
        DownloadColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(name, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


@contextmanager
def fitting(what: str, first: str) -> Iterator[Callable[[int, State], None]]:
    """How long it takes, and once there are iterations, how they go; `first` says what is done before them."""
    console = stderr()
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(first, total=None)

        def show(iteration: int, state: State) -> None:
            bar.update(task, description=f"{what}: iteration {iteration}, objective {state.value:.6g}")

        yield show
