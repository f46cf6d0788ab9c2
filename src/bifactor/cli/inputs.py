"""Names, and entries of new rows, as users pass them to commands."""

import csv
from pathlib import Path

import click
import numpy as np

from bifactor.arrays import Array
from bifactor.data import Names
from bifactor.data.text import head, line_blocks, require_file
from bifactor.errors import FileError

TABLES = {".csv": ",", ".tsv": "\t"}
"""Extensions of files whose first column is read, and their delimiters."""


def read_names(path: Path, known: Names, called: str) -> Array:
    """The names in a file: one per line or, in csv and tsv, the first cell of each line; `called` is their header."""
    require_file(path)
    head(path, "Pass text with one name per line, or csv.")
    try:
        lines = b"".join(line_blocks(path)).decode("utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise FileError(f"{path} is not UTF-8. Convert the file to UTF-8.") from None
    ending = Path(path.name.removesuffix(".gz")).suffix.lower()
    if ending in TABLES:
        lines = [row[0] for row in csv.reader(lines, delimiter=TABLES[ending]) if row]
    names = [line.strip() for line in lines if line.strip()]
    if names and names[0] == called and names[0] not in known:
        names = names[1:]
    if not names:
        raise FileError(f"{path} holds no names. Write one per line.")
    found = np.empty(len(names), object)
    found[:] = names
    return found


# The option for entries of new rows.

history_option = click.option(
    "--history",
    "--ratings",
    "history",
    type=click.Path(readable=False, path_type=Path),
    help="File with entries, or choices, of new rows, which are added to the fit first.",
)
