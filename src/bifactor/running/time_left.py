"""The time that a run can still take."""

from datetime import timedelta

from rich.progress import ProgressColumn, Task
from rich.text import Text


class TimeLeftColumn(ProgressColumn):
    """The time to the last iteration at the present speed, or to the time limit if that comes first."""

    max_refresh = 0.5

    def render(self, task: Task) -> Text:
        left = seconds_left(task)
        return Text("-:--:--" if left is None else str(timedelta(seconds=int(left))), style="progress.remaining")


def seconds_left(task: Task) -> float | None:
    """The seconds left at most; None if nothing is known yet."""
    return min((t for t in (task.time_remaining, task.fields.get("limit")) if t is not None), default=None)


def share_done(task: Task) -> float | None:
    """The fraction of the steps, or of the time limit if that is larger; None if the number of steps is not known."""
    if not task.total:
        return None
    steps, limit, spent = task.completed / task.total, task.fields.get("limit"), task.elapsed
    return steps if limit is None or not spent else max(steps, spent / (spent + limit))
