"""Progress bars on request."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from bifactor.running.run import Run


@contextmanager
def progress_bar(wanted: bool, max_iter: int, label: str) -> Iterator[Callable[[Run], None]]:
    """Yields a function that shows how a run stands; one that does nothing where no bar is wanted."""
    if not wanted:
        yield lambda run: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("[bold]{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("objective {task.fields[objective]:.4e}  change {task.fields[change]:.1e}"),
    )
    with Progress(*columns) as bar:
        task = bar.add_task(label, total=max_iter, objective=float("nan"), change=1.0)

        def show(run: Run) -> None:
            bar.update(task, completed=run.iteration, objective=run.best_value, change=run.records[-1].relative_change)

        yield show


@contextmanager
def share_bar(wanted: bool, label: str) -> Iterator[Callable[[float], None] | None]:
    """Yields a function that is told which share of the work is done; None where no bar is wanted."""
    if not wanted:
        yield None
        return
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (TextColumn("[bold]{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(*columns, TextColumn("left"), TimeRemainingColumn()) as bar:
        task = bar.add_task(label, total=1)
        yield lambda share: bar.update(task, completed=share)
