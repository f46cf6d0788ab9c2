"""How commands show their answers: a printed summary, or one JSON object, and an exit code."""

import json
import sys
from collections.abc import Iterable
from typing import Any

import click
from rich.console import Console
from rich.table import Table

JSON = "bifactor.json"
"""Key in the context of a command: whether its output is JSON."""

ENDED = "bifactor.ended"
"""Key in the context of a command: the exit code of the signal that ended it early."""

DONE, FAILED, MISUSED, INTERRUPTED, TERMINATED = 0, 1, 2, 130, 143
"""Exit codes: success; an error, for example in the data; a mistake in the options; Ctrl-C; SIGTERM."""


def tell(answer: dict[str, Any], lines: Iterable[tuple[str, str]], code: int = DONE) -> None:
    """Print the answer, as JSON or as lines of a name and some words, and exit unless `code` is 0."""
    if wants_json():
        emit_json(answer)
    else:
        table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
        for name, words in lines:
            table.add_row(name, words)
        Console(highlight=False, markup=False).print(table)
    if code != DONE:
        click.get_current_context().exit(code)


def code_of(status: Any) -> int:
    """The exit code after a run with this status."""
    return interrupted() if status.name == "INTERRUPTED" else DONE


def interrupted() -> int:
    """The exit code after Ctrl-C or SIGTERM."""
    return int(click.get_current_context().meta.get(ENDED, INTERRUPTED))


def notes(said: Iterable[str]) -> list[tuple[str, str]]:
    """Notes as lines of a summary."""
    return [("note", note) for note in said]


def wants_json() -> bool:
    return bool(click.get_current_context().meta.get(JSON, False))


def emit_json(answer: dict[str, Any]) -> None:
    """Print an answer as JSON, in ASCII if stdout cannot encode it otherwise."""
    told = json.dumps(answer, ensure_ascii=False, allow_nan=False, default=str)  # names may be dates
    try:
        told.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        told = json.dumps(answer, allow_nan=False, default=str)
    click.echo(told)


def in_time(seconds: float) -> str:
    """A duration in words, to one digit: 40 s, 3 min, 2 h."""
    unit, name = (3600, "h") if seconds >= 3420 else (60, "min") if seconds >= 57 else (1, "s")
    return f"{float(f'{seconds / unit:.1g}'):,.0f} {name}"


def say(text: str) -> None:
    """Print a sentence, unless the output is JSON."""
    if not wants_json():
        Console(highlight=False, soft_wrap=True).print(text, markup=False)


def stderr() -> Console:
    return Console(stderr=True, highlight=False, soft_wrap=True)
