"""How commands show their answers: a printed summary, or one JSON object, an exit code, and cells of tables."""

import json
import re
import sys
from collections.abc import Iterable
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

JSON = "bifactor.json"
"""Key in the context of a command: whether its output is JSON."""

ENDED = "bifactor.ended"
"""Key in the context of a command: the exit code of the signal that ended it early."""

WRITING = "bifactor.writing"
"""Key in the context of a command: whether there is already a fit, which is to be written."""

WRITTEN = "bifactor.written"
"""Key in the context of a command: whether the fit has been written."""

DONE, FAILED, MISUSED, INTERRUPTED, TERMINATED = 0, 1, 2, 130, 143
"""Exit codes: success; an error, for example in the data; a mistake in the options; Ctrl-C; SIGTERM."""


CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
"""Characters that a terminal obeys instead of showing them, and those that reverse the order of others."""


def escape_controls(text: str) -> str:
    """The text with escapes for control characters: names and titles come from files of others."""
    return CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def escape_controls_in_lines(text: str) -> str:
    """A text of several lines with escapes for control characters other than tabs."""
    return "\n".join("\t".join(map(escape_controls, line.split("\t"))) for line in text.split("\n"))


class Screen(Console):
    """Prints text as it is, without markup, and with control characters shown."""

    def __init__(self, **options: Any):
        super().__init__(highlight=False, markup=False, emoji=False, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(escape_controls(text), **options)


class Lines:
    """A file for lines of csv on stdout: on a terminal with control characters shown, elsewhere as they are."""

    def write(self, text: str) -> int:
        return sys.stdout.write(escape_controls_in_lines(text) if sys.stdout.isatty() else text)


def print_result(answer: dict[str, Any], lines: Iterable[tuple[str, str]], code: int = DONE) -> None:
    """Print the answer, as JSON or as lines of a name and some words, and exit unless `code` is 0."""
    if wants_json():
        emit_json(answer)
    else:
        table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
        for name, words in lines:
            table.add_row(name, words)
        Screen().print(table)
    if code != DONE:
        click.get_current_context().exit(code)


def code_of(status: Any) -> int:
    """The exit code after a run with this status."""
    return interrupt_code() if status.name == "INTERRUPTED" else DONE


def interrupt_code() -> int:
    """The exit code after Ctrl-C or SIGTERM."""
    return int(click.get_current_context().meta.get(ENDED, INTERRUPTED))


def notes(said: Iterable[str]) -> list[tuple[str, str]]:
    """Notes as lines of a summary."""
    return [("note", note) for note in said]


def wants_json() -> bool:
    return bool(click.get_current_context().meta.get(JSON, False))


def emit_json(answer: dict[str, Any]) -> None:
    """Print an answer as JSON, in ASCII if stdout cannot encode it otherwise; control characters are always escaped."""
    told = json.dumps(answer, ensure_ascii=False, allow_nan=False, default=str)  # names may be dates
    try:
        told.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        told = json.dumps(answer, allow_nan=False, default=str)
    click.echo(CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", told))


def print_line(text: str) -> None:
    """Print a sentence, unless the output is JSON."""
    if not wants_json():
        Screen(soft_wrap=True).print(text)


def stderr() -> Console:
    return Screen(stderr=True, soft_wrap=True)


# Cells of the tables that commands write.
