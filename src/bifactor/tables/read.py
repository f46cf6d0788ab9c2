"""One door for every kind of data: files and data frames."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bifactor.errors import FileError, InputError
from bifactor.tables.columns import Frame, read_parquet, read_records
from bifactor.tables.delimited import read_delimited, read_market
from bifactor.tables.layout import Asked
from bifactor.tables.npz import read_npz
from bifactor.tables.observations import Observations
from bifactor.tables.source import Progress, require_file, silent

Reader = Callable[[Path, Asked, Progress], Observations]

KINDS: dict[str, Reader] = {
    ".npz": read_npz,
    ".parquet": read_parquet,
    ".pq": read_parquet,
    ".mtx": read_market,
    ".jsonl": read_records,
    ".ndjson": read_records,
}
"""By the end of the name, `.gz` aside; all others are text."""

OTHERS = (".xlsx", ".xls", ".zip", ".bz2", ".xz", ".zst", ".7z", ".mat", ".h5", ".hdf5", ".feather", ".pkl", ".json")


def read(source: Any, *, progress: Progress = silent, **asked: Any) -> Observations:
    """The known entries in a file or a data frame, with the names of their rows and columns.

    What is not given is inferred from the first lines: by the names of columns where these are usual ones, such as
    user, item and rating, else by their order.

    Parameters
    ----------
    source : path or data frame
        csv, tsv and other text with delimiters, LIBMF's triples, MatrixMarket, JSON lines, each also gzipped; parquet;
        npz. Or a frame of pandas, polars (lazy too), pyarrow or any library that narwhals knows.
    row, col, value, weight : str, optional
        Columns, by their names or their numbers from 1. An entry of weight 0 is left out.
    wide : bool, optional
        Whether there is one line per row instead of one per entry.
    delimiter, header, decimal : optional
        Of text: the delimiter, whether the first line has names, and the decimal point or comma.
    values : bool or None
        False for pairs of rows and columns without values; None for values where the hints name a column of these that
        is there.
    hints : tuple of str, optional
        What the row, the column and perhaps the value are called, if there is a header with these words.
    progress : callable (bytes read, bytes in all), optional

    Returns
    -------
    Observations
    """
    wanted = Asked(**asked)
    if wanted.weight is not None and not wanted.values:
        raise InputError("Pairs without values have no weights. Leave out weight.")
    if not isinstance(source, (str, os.PathLike)):
        found = Frame(source).observations(wanted)
        if found.rows.size == 0:
            raise InputError("The frame holds no entry with a value. Pass at least one.")
        return found
    path = Path(source)
    require_file(path)
    name = path.name.lower().removesuffix(".gz")
    kind = next((reader for end, reader in KINDS.items() if name.endswith(end)), None)
    if kind is None and name.endswith(OTHERS):
        raise FileError(
            f"{path} is of a kind that is not read. Save it as csv, parquet, npz, JSON lines or MatrixMarket."
        )
    found = (read_delimited if kind is None else kind)(path, wanted, progress)
    if found.rows.size == 0:
        raise FileError(f"{path} holds no entry with a value. Pass a file with at least one.")
    return found
