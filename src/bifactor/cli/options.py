"""The options that commands share."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from bifactor.cli.output import JSON
from bifactor.data.text import number_of
from bifactor.models.fit import UNKNOWN
from bifactor.validation import MAX_SETTING, MIN_SETTING

Command = TypeVar("Command", bound=Callable[..., Any])

INPUT = click.Path(readable=False, path_type=Path)  # files that cannot be read get an error of bifactor's own


class Auto(click.ParamType):
    """A number from `least` on, or the word auto."""

    def __init__(self, kind: type[int] | type[float], least: int = 0):
        self.kind, self.least, self.name = kind, least, f"{'integer' if kind is int else 'number'}|auto"

    def convert(self, value: Any, param: click.Parameter | None, context: click.Context | None) -> Any:
        if value == "auto":
            return value
        try:
            number = self.kind(value)
        except ValueError:
            number = None
        if number is None or not self.least <= number < math.inf:
            noun = "an integer" if self.kind is int else "a number"
            self.fail(f"{value} is neither {noun} ≥ {self.least} nor auto.", param, context)
        return number


class Limits(click.ParamType):
    """The range of a scale, or one of the words auto, data and no."""

    name = "lowest,highest|auto|data|no"

    def convert(self, value: Any, param: click.Parameter | None, context: click.Context | None) -> Any:
        words = {"auto": "auto", "data": True, "no": False}
        if not isinstance(value, str) or value in words:
            return words.get(value, value)
        try:
            low, high = (float(end) for end in value.split(","))
        except ValueError:
            low = high = math.nan
        if not low < high:
            self.fail(f"{value} is not a range such as 1,5, nor auto, data or no.", param, context)
        return low, high


class Within(click.FloatRange):
    """A finite number in a range."""

    def convert(self, value: Any, param: click.Parameter | None, context: click.Context | None) -> Any:
        number = super().convert(value, param, context)
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number.", param, context)
        return number


POSITIVE = Within(MIN_SETTING, MAX_SETTING)


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

force_option = click.option("--force", is_flag=True, help="Replace an existing output.")

seed_option = click.option(
    "--seed", default=0, show_default=True, type=click.IntRange(0, 2**32 - 1), help="Seed of random choices."
)

unknown_option = click.option(
    "--unknown",
    type=click.Choice(UNKNOWN),
    default="mean",
    show_default=True,
    help="What to do with names that are not in the fit: predict them as average ones, or raise an error.",
)


text_names_option = click.option(
    "--text-names", is_flag=True, help="Keep names of rows and columns as text, even if all of them are integers."
)


def column_options(value: bool) -> Callable[[Command], Command]:
    """A decorator that adds options for the columns of a file."""
    added = [
        click.option("--row", metavar="COLUMN", help="Column with the names of rows: its name, or its number from 1."),
        click.option("--col", metavar="COLUMN", help="Column with the names of columns."),
        click.option("--delimiter", help="One character, tab or space; detected by default."),
        click.option("--header/--no-header", default=None, help="Whether the first line holds names of columns."),
    ]
    if value:
        added.append(text_names_option)
        added[2:2] = [
            click.option("--value", metavar="COLUMN", help="Column with the values."),
            click.option("--weight", metavar="COLUMN", help="Column with weights; by default there are none."),
        ]
        added += [
            click.option("--wide/--long", default=None, help="One line per row, or one per entry."),
            click.option(
                "--decimal", type=click.Choice([".", ","]), help="Decimal point or comma; detected by default."
            ),
        ]

    def decorate(command: Command) -> Command:
        for option in reversed(added):
            command = option(command)
        return command

    return decorate


def columns(options: dict[str, Any]) -> dict[str, Any]:
    """The options of `column_options`, as arguments of `data.read`."""
    names = ("row", "col", "value", "weight", "delimiter", "header", "wide", "decimal", "text_names")
    return {name: options[name] for name in names if name in options}


FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""First characters of cells that a spreadsheet runs as formulas; it skips tabs and carriage returns before them."""

safe_cells_option = click.option(
    "--safe-cells", is_flag=True, help="Put ' before names that a spreadsheet would run as formulas."
)


def safe(cell: Any) -> Any:
    """The cell, with a quote in front where a spreadsheet would take it for a formula; numbers stay as they are."""
    formula = isinstance(cell, str) and cell.startswith(FORMULA) and number_of(cell) is None
    return f"'{cell}" if formula else cell
