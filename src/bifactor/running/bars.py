"""Columns and bars of progress: the time that is left, and bars in notebooks without ipywidgets."""

import io
import sys
import time
from datetime import timedelta
from html import escape
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskID
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


# Progress bars in notebooks, without ipywidgets; they disappear when the work is done.

PAUSE = 0.1
"""The least number of seconds between two updates."""

WIDTH = 120
"""The width of the text, in characters."""


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    find = getattr(sys.modules.get("IPython"), "get_ipython", None)
    return find is not None and hasattr(find(), "kernel")


class NotebookProgress(Progress):
    """The tasks and columns of rich as an HTML bar that the notebook updates.

    It stays because without ipywidgets rich's own bar shows nothing in a notebook and warns that they are missing.
    """

    def __init__(self, *columns: ProgressColumn):
        super().__init__(*(column for column in columns if not isinstance(column, BarColumn)), disable=True)
        self._display: Any = None
        self._drawn = 0.0

    def update(self, task_id: TaskID, **changed: Any) -> None:
        super().update(task_id, **changed)
        if time.monotonic() - self._drawn >= PAUSE:
            self._draw()

    def stop(self) -> None:
        if self._display is not None:
            self._display.update({"text/plain": "", "text/html": ""}, raw=True)
            self._display = None

    def _draw(self) -> None:
        from IPython.display import display

        data = self._bundle()
        if self._display is None:
            self._display = display(data, raw=True, display_id=True)
        else:
            self._display.update(data, raw=True)
        self._drawn = time.monotonic()

    def _bundle(self) -> dict[str, str]:
        console = Console(file=io.StringIO(), width=WIDTH, color_system=None, force_jupyter=False)
        with console.capture() as captured:
            console.print(self.get_renderable())
        text, task = captured.get().strip(), self.tasks[0]
        done = share_done(task)
        shares = "" if done is None else f' value="{done:.4f}"'
        line = f'<span style="font-family:monospace;white-space:pre">{escape(text)}</span>'
        return {"text/plain": text, "text/html": f"<progress{shares}></progress> {line}"}
