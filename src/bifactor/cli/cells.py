"""Cells of the tables that are written."""

from typing import Any

import click

from bifactor.tables.numbers import number_of

FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""What a cell begins with that spreadsheets compute, or hide from sight and then compute."""

safe_cells_option = click.option(
    "--safe-cells", is_flag=True, help="Put ' before names that a spreadsheet would run as formulas."
)


def safe(cell: Any) -> Any:
    """The cell as text to every spreadsheet where it could be a formula; a number is none."""
    formula = isinstance(cell, str) and cell.startswith(FORMULA) and number_of(cell) is None
    return f"'{cell}" if formula else cell
