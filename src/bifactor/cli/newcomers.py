"""Rows that were not in a fit, found from a file of what is known of them."""

from pathlib import Path
from typing import Any

import click

from bifactor.models import Fit
from bifactor.models.choices import later_lines
from bifactor.tables import Observations, read
from bifactor.tables.source import Progress, silent

history_option = click.option(
    "--history",
    "--ratings",
    "history",
    type=click.Path(readable=False, path_type=Path),
    help="File of entries of new rows, or of what they have chosen: these rows are found from it first.",
)


def entries_for(fit: Fit, path: Path, progress: Progress = silent, **asked: Any) -> Observations:
    """The entries in a file, or the choices where the fit is one of clicks; by default in the columns of the fit."""
    if fit.model.clicks is None:
        return read(path, hints=fit.header, progress=progress, **asked)
    return later_lines(path, fit.header, progress=progress, **asked)
