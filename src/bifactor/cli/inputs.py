"""Names, titles and entries of new rows, as users pass them to commands."""

import csv
from pathlib import Path

import click
import numpy as np

from bifactor.arrays import Array
from bifactor.data import Names, read
from bifactor.data.text import head, line_blocks, require_file
from bifactor.errors import FileError, InputError
from bifactor.validation import pluralize

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


# Titles of columns, from a file.


def read_titles(path: Path, cols: Names | None) -> Array:
    """The title of each column, "" where the file has none: items in its first column, titles in its second."""
    assert cols is not None
    pairs = read(path, row="1", col="2", values=False, wide=False)
    assert pairs.row_names is not None
    assert pairs.column_names is not None
    places = cols.indices(pairs.row_names.values)[pairs.rows]
    here = places >= 0
    if not here.any():
        raise InputError(
            f"None of the {pluralize(len(pairs.row_names), 'name')} in the first column of {path} is an item of the "
            "fit. Pass a file of items and their titles."
        )
    titles = np.full(len(cols), "", object)
    # For an item that occurs twice, the first title is used.
    titles[places[here][::-1]] = [str(title) for title in pairs.column_names[pairs.cols[here]][::-1].tolist()]
    return titles


# The option for entries of new rows.

history_option = click.option(
    "--history",
    "--ratings",
    "history",
    type=click.Path(readable=False, path_type=Path),
    help="File with entries, or choices, of new rows, which are added to the fit first.",
)
