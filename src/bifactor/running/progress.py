"""Optional progress bars."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from bifactor.running.record import RunRecord
from bifactor.running.stopping import Stopping

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn, TaskID

Stage = Callable[[str, int, int], None]
"""Called with a name for what is being chosen, the number of choices tried so far, and the largest number of them."""


@contextmanager
def progress_bar(wanted: bool, stopping: Stopping, label: str) -> Iterator[Callable[[RunRecord], None]]:
    """Yields a function that shows the progress of a run; it does nothing if no bar is wanted."""
    if not wanted:
        yield lambda run: None
        return
    limit = stopping.time_limit
    with _counted("objective {task.fields[objective]:.4e}") as bar:
        task = bar.add_task(label, total=stopping.max_iter, objective=float("nan"), limit=limit)

        def show(run: RunRecord) -> None:
            left = None if limit is None else max(limit - run.records[-1].seconds, 0.0)
            bar.update(task, completed=run.iteration, objective=run.best_value, limit=left)

        yield show


@contextmanager
def choice_bar(wanted: bool) -> Iterator[Stage | None]:
    """Yields a function that shows what is being chosen and its progress; None if no bar is wanted."""
    if not wanted:
        yield None
        return
    bar = _counted()

    def show(what: str, done: int, most: int) -> None:
        if not bar.tasks:
            bar.start()
            bar.add_task(what, total=most, completed=done)
        else:
            show_stage(bar, bar.task_ids[0], what, done, most)

    try:
        yield show
    finally:
        if bar.tasks:
            bar.stop()


def show_stage(bar: "Progress", task: "TaskID", what: str, done: int, most: int) -> None:
    """Update a task or, if its name has changed, begin the next one, whose clock starts at zero."""
    if bar.tasks[bar.task_ids.index(task)].description != what:
        bar.reset(task, description=what, completed=done, total=most)
    bar.update(task, completed=done, total=most)


def _counted(*more: str) -> "Progress":
    """A progress line that fits into 80 columns."""
    from rich.progress import MofNCompleteColumn, TextColumn, TimeElapsedColumn

    from bifactor.running.bars import TimeLeftColumn

    return _bar(
        TextColumn("[bold]{task.description}"),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left at most"),
        TimeLeftColumn(),
        *map(TextColumn, more),
    )


def _bar(*columns: "ProgressColumn") -> "Progress":
    """A bar for a terminal, or for a notebook if the code runs in one."""
    from rich.progress import Progress

    from bifactor.running.bars import NotebookProgress, in_notebook

    return NotebookProgress(*columns) if in_notebook() else Progress(*columns)


@contextmanager
def share_bar(wanted: bool, label: str) -> Iterator[Callable[[float], None] | None]:
    """Yields a function that takes the fraction of the work that is done; None if no bar is wanted."""
    if not wanted:
        yield None
        return
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (TextColumn("[bold]{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with _bar(*columns, TextColumn("left"), TimeRemainingColumn()) as bar:
        task = bar.add_task(label, total=1)
        yield lambda share: bar.update(task, completed=share)
