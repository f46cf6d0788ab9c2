"""Reads files and data frames of every supported kind."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bifactor.data.columns import FrameColumns, read_parquet, read_records
from bifactor.data.delimited import read_delimited, read_market
from bifactor.data.layout import ReadOptions
from bifactor.data.npz import read_npz
from bifactor.data.observations import Observations
from bifactor.data.text import Progress, require_file, silent
from bifactor.errors import FileError, InputError
from bifactor.validation import require_flag

Reader = Callable[[Path, ReadOptions, Progress], Observations]

KINDS: dict[str, Reader] = {
    ".npz": read_npz,
    ".parquet": read_parquet,
    ".pq": read_parquet,
    ".mtx": read_market,
    ".jsonl": read_records,
    ".ndjson": read_records,
}
"""Readers by extension, without `.gz`; all other files are text."""

OTHERS = (".xlsx", ".xls", ".zip", ".bz2", ".xz", ".zst", ".7z", ".mat", ".h5", ".hdf5", ".feather", ".pkl", ".json")


def read(source: Any, *, progress: Progress = silent, **asked: Any) -> Observations:
    """The known entries in a file or a data frame, with the names of their rows and columns.

    Arguments that are not given are inferred from the first lines. Columns are recognised by common names, such as
    user, item and rating, or else by their order.

    Parameters
    ----------
    source : path or data frame
        A file: csv, tsv or other delimited text, LIBMF triples, MatrixMarket or JSON lines, any of these gzipped;
        parquet; or npz. Or a frame of pandas, polars (also lazy), pyarrow or any library that narwhals supports; or
        observations that were read before.
    row, col, value, weight : str, optional
        Columns, by name or by number from 1. Entries of weight 0 are left out.
    wide : bool, optional
        Whether there is one line per row instead of one per entry.
    delimiter, header, decimal : optional
        For text: the delimiter, whether the first line has names of columns, and the decimal point or comma.
    values : bool or None
        False for pairs of rows and columns without values; None for values if a column has the name in the hints.
    text_names : bool
        Keep names of rows and columns as text, even if all of them are numbers, so that rows with other names can be
        added later: by default a column of integers has integers for names.
    hints : tuple of str, optional
        Names of the row, the column and possibly the value, used if the header has them.
    progress : callable (bytes read, bytes in all), optional

    Returns
    -------
    Observations
    """
    wanted = ReadOptions(**asked)
    require_flag(wanted.text_names, "text_names")
    if wanted.weight is not None and not wanted.values:
        raise InputError("Pairs without values have no weights. Leave out weight.")
    if isinstance(source, Observations):  # read before
        return source.with_text_names() if wanted.text_names else source
    if not isinstance(source, (str, os.PathLike)):
        found = FrameColumns(source).observations(wanted)
        if found.rows.size == 0:
            raise InputError("The frame holds no entry with a value. Pass at least one.")
        return found.with_text_names() if wanted.text_names else found
    path = Path(source)
    require_file(path)
    name = path.name.lower().removesuffix(".gz")
    kind = next((reader for end, reader in KINDS.items() if name.endswith(end)), None)
    if kind is None and name.endswith(OTHERS):
        raise FileError(f"{path} has an unsupported format. Save it as csv, parquet, npz, JSON lines or MatrixMarket.")
    found = (read_delimited if kind is None else kind)(path, wanted, progress)
    if found.rows.size == 0:
        raise FileError(f"{path} holds no entry with a value. Pass a file with at least one.")
    return found.with_text_names() if wanted.text_names else found
