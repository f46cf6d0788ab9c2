"""A machine-readable log of a fit: one JSON object per line, the same for files and block stores."""

import json
import time
from pathlib import Path
from typing import Any

import click

from bifactor.errors import FileError

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
