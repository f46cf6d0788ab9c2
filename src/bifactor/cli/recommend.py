"""`bifactor recommend`: the best columns of a row."""

from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.console import Console
from rich.table import Table

from bifactor.arrays import Array
from bifactor.cli.look import emit_json, say, wants_json
from bifactor.cli.options import INPUT, json_option
from bifactor.errors import InputError
from bifactor.models import Fit, load
from bifactor.tables import read
from bifactor.tables.names import listed

EXAMPLES = """\b
Examples:
  bifactor recommend fit --user 42
  bifactor recommend fit --user alice --user bob -n 5 --json
  bifactor recommend fit --ratings new.csv
"""


@click.command(epilog=EXAMPLES)
@click.argument("fit", type=INPUT)
@click.option("--user", "--row", "users", multiple=True, help="Name of a row; may be given many times.")
@click.option("--ratings", type=INPUT, help="File of entries of new rows: these are found first, and served.")
@click.option("-n", "count", type=click.IntRange(min=1), default=10, show_default=True, help="How many columns.")
@click.option("--include-seen", is_flag=True, help="Do not leave out the columns that the row is known in.")
@json_option
def recommend(fit: Path, users: tuple[str, ...], ratings: Path | None, count: int, include_seen: bool) -> None:
    """Show the columns of FIT, a folder, with the largest predictions for a row.

    Pairs that were in the data are left out: the folder holds which they were. Rows that were not are served from a
    file of what is known of them, --ratings; a row of the fit that is in this file is found from the file alone.
    """
    if not users and ratings is None:
        raise InputError("There is nobody to serve. Pass --user, or --ratings, a file of entries of new rows.")
    model = load(fit)
    asked: Any = np.array(users, object)
    if ratings is not None:
        new = read(ratings, hints=model.header)
        assert new.row_names is not None
        model = model.fold_in(new)
        asked = asked if users else new.row_names.values
    places = model.places(asked, "row")
    if np.any(places < 0):
        name = listed(asked[places < 0])[0]
        raise InputError(f"There was no row named {name!r} in the fit. Check it, or pass its entries: --ratings.")
    names, predicted = model.recommend(asked, count, filter_seen=not include_seen)
    rows = listed(model.rows[places])
    found = [(row, _found(line, values)) for row, line, values in zip(rows, names, predicted, strict=True)]
    if wants_json():
        told = [{"row": row, "recommended": [{"column": c, "prediction": z} for c, z in best]} for row, best in found]
        emit_json({"rows": told})
        return
    for row, best in found:
        if best:
            _show(model, row, best)
        else:
            say(f"{row} is known in every column, so none is left. Pass --include-seen for the best of all.")


def _found(names: Array, predicted: Array) -> list[tuple[Any, float]]:
    there = ~np.isnan(predicted)
    return list(zip(listed(names[there]), predicted[there].tolist(), strict=True))


def _show(model: Fit, row: Any, best: list[tuple[Any, float]]) -> None:
    called, column = model.header[:2]
    table = Table(title=f"for {row if called.isdigit() else f'{called} {row}'}", title_justify="left")
    table.add_column(column if not column.isdigit() else "column")
    table.add_column("prediction", justify="right")
    for name, value in best:
        table.add_row(str(name), f"{value:.4g}")
    Console(highlight=False, markup=False).print(table)
