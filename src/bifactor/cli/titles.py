"""Titles of columns, from a file."""

from pathlib import Path

import numpy as np

from bifactor.arrays import Array
from bifactor.errors import InputError
from bifactor.tables import Names, read
from bifactor.validation import counted


def titles_of(path: Path, cols: Names | None) -> Array:
    """The title of each column, "" where the file has none: items in its first column, titles in its second."""
    assert cols is not None
    pairs = read(path, row="1", col="2", values=False, wide=False)
    assert pairs.row_names is not None
    assert pairs.column_names is not None
    places = cols.indices(pairs.row_names.values)[pairs.rows]
    here = places >= 0
    if not here.any():
        raise InputError(
            f"None of the {counted(len(pairs.row_names), 'name')} in the first column of {path} is an item of the fit. "
            "Pass a file of items and their titles."
        )
    titles = np.full(len(cols), "", object)
    # For an item that occurs twice, the first title is used.
    titles[places[here][::-1]] = [str(title) for title in pairs.column_names[pairs.cols[here]][::-1].tolist()]
    return titles
