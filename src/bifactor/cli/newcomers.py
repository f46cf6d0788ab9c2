"""The option for entries of new rows."""

from pathlib import Path

import click

history_option = click.option(
    "--history",
    "--ratings",
    "history",
    type=click.Path(readable=False, path_type=Path),
    help="File with entries, or choices, of new rows, which are added to the fit first.",
)
