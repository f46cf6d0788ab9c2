"""New rows of a fit, computed from a file of their entries."""

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
    help="File with entries, or choices, of new rows, which are added to the fit first.",
)


def entries_for(fit: Fit, path: Path, progress: Progress = silent, **asked: Any) -> Observations:
    """The entries in a file, or the choices if the fit is to clicks; by default in the columns of the fit."""
    if fit.model.clicks is None:
        return read(path, hints=fit.header, progress=progress, **asked)
    return later_lines(path, fit.header, progress=progress, **asked)
