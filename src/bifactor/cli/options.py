"""What the commands share: options, and how mistakes and answers are shown."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
from rich.console import Console

from bifactor.tables import Asked

Command = TypeVar("Command", bound=Callable[..., Any])

JSON = "bifactor.json"
"""Where a context notes that its output is for machines."""

INTERRUPTED = 130
"""The exit code after Ctrl-C, as shells have it."""

INPUT = click.Path(readable=False, path_type=Path)  # what cannot be read gets an error of ours


def _note_json(context: click.Context, option: click.Parameter, value: bool) -> bool:
    context.meta[JSON] = value
    return value


json_option = click.option(
    "--json",
    "as_json",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_note_json,
    help="Print one JSON object and nothing else.",
)

force_option = click.option("--force", is_flag=True, help="Replace what is there.")

seed_option = click.option(
    "--seed", default=0, show_default=True, type=click.IntRange(0, 2**32 - 1), help="Same seed, same answer."
)


def column_options(value: bool) -> Callable[[Command], Command]:
    """The options that say what the columns of a file are."""
    added = [
        click.option("--row", metavar="COLUMN", help="Name, or number from 1, of the column with the rows."),
        click.option("--col", metavar="COLUMN", help="The same for the columns."),
        click.option("--delimiter", help="One character, tab or space; sniffed by default."),
        click.option("--header/--no-header", default=None, help="Whether the first line holds names."),
    ]
    if value:
        added.insert(2, click.option("--value", metavar="COLUMN", help="The same for the values."))
        added.append(click.option("--wide/--long", default=None, help="One line per row, or per entry."))

    def decorate(command: Command) -> Command:
        for option in reversed(added):
            command = option(command)
        return command

    return decorate


def asked(options: dict[str, Any], **more: Any) -> Asked:
    """What the options of `column_options` say."""
    names = ("row", "col", "value", "delimiter", "header", "wide")
    told: dict[str, Any] = {name: options.get(name) for name in names}
    return Asked(**told, **more)


def wants_json() -> bool:
    return bool(click.get_current_context().meta.get(JSON, False))


def emit_json(answer: dict[str, Any]) -> None:
    """An answer for machines."""
    click.echo(json.dumps(answer, ensure_ascii=False, allow_nan=False))


def say(text: str) -> None:
    """A sentence for people, kept out of what a machine reads."""
    if not wants_json():
        Console(highlight=False, soft_wrap=True).print(text, markup=False)


def stderr() -> Console:
    return Console(stderr=True, highlight=False, soft_wrap=True)
