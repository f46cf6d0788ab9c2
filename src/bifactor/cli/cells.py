"""Cells of the tables that commands write."""

from typing import Any

import click

from bifactor.tables.numbers import number_of

FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""First characters of cells that a spreadsheet runs as formulas; it skips tabs and carriage returns before them."""

safe_cells_option = click.option(
    "--safe-cells", is_flag=True, help="Put ' before names that a spreadsheet would run as formulas."
)


def safe(cell: Any) -> Any:
    """The cell, with a quote in front where a spreadsheet would take it for a formula; numbers stay as they are."""
    formula = isinstance(cell, str) and cell.startswith(FORMULA) and number_of(cell) is None
    return f"'{cell}" if formula else cell
