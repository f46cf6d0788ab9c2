"""`bifactor recommend`: the best columns of a row."""

from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.console import Console
from rich.table import Table

from bifactor.cli.options import INPUT, emit_json, json_option, wants_json
from bifactor.models.fit import Fit

EXAMPLES = """\b
Examples:
  bifactor recommend fit --user 42
  bifactor recommend fit --user alice --user bob -n 5 --json
"""


@click.command(epilog=EXAMPLES)
@click.argument("fit", type=INPUT)
@click.option("--user", "--row", "users", multiple=True, required=True, help="Name of a row; may be given many times.")
@click.option("-n", "count", type=click.IntRange(min=1), default=10, show_default=True, help="How many columns.")
@click.option("--include-seen", is_flag=True, help="Do not leave out the columns that the row is known in.")
@json_option
def recommend(fit: Path, users: tuple[str, ...], count: int, include_seen: bool) -> None:
    """Show the columns of FIT, a folder, with the largest predictions for a row.

    Pairs that were in the data are left out: the folder holds which they were.
    """
    model = Fit.load(fit)
    found = model.recommend(np.array(users, object), count, exclude_seen=not include_seen)
    if wants_json():
        answer: list[dict[str, Any]] = [
            {
                "row": user,
                "recommended": [
                    {"column": name, "prediction": value}
                    for name, value in zip(names.tolist(), values.tolist(), strict=True)
                ],
            }
            for user, (names, values) in zip(users, found, strict=True)
        ]
        emit_json({"rows": answer})
        return
    row, column = model.card["data"]["columns"][:2]
    called = column if not column.isdigit() else "column"
    for user, (names, values) in zip(users, found, strict=True):
        table = Table(title=f"for {user if row.isdigit() else f'{row} {user}'}", title_justify="left")
        table.add_column(called)
        table.add_column("prediction", justify="right")
        for name, value in zip(names.tolist(), values.tolist(), strict=True):
            table.add_row(str(name), f"{value:.4g}")
        Console(highlight=False, markup=False).print(table)
