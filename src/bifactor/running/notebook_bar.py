"""Progress bars in notebooks, without ipywidgets; they disappear when the work is done."""

import io
import sys
import time
from html import escape
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, TaskID

from bifactor.running.time_left import share_done

PAUSE = 0.1
"""The least number of seconds between two updates."""

WIDTH = 120
"""The width of the text, in characters."""


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    find = getattr(sys.modules.get("IPython"), "get_ipython", None)
    return find is not None and hasattr(find(), "kernel")


class NotebookProgress(Progress):
    """The tasks and columns of rich as an HTML bar that the notebook updates; rich's own bar needs ipywidgets."""

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
