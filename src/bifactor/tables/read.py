"""One door for every kind of file."""

import os
from pathlib import Path

from bifactor.errors import FileError
from bifactor.tables.delimited import read_delimited, read_market
from bifactor.tables.layout import Asked
from bifactor.tables.npz import read_npz
from bifactor.tables.parquet import read_parquet
from bifactor.tables.source import Progress, require_file, silent
from bifactor.tables.triples import Triples

KINDS = {".npz": read_npz, ".parquet": read_parquet, ".pq": read_parquet, ".mtx": read_market}
"""By the end of the name, `.gz` aside; all others are text."""

OTHERS = (".xlsx", ".xls", ".zip", ".bz2", ".xz", ".zst", ".7z", ".mat", ".h5", ".hdf5", ".feather", ".pkl", ".json")


def read(path: str | os.PathLike[str], asked: Asked | None = None, progress: Progress = silent) -> Triples:
    """The entries in a file, or the pairs, with the names of their rows and columns.

    Parameters
    ----------
    path : path
        csv, tsv and other text with delimiters, LIBMF's triples, MatrixMarket, each also gzipped; parquet; npz.
    asked : Asked, optional
        Which columns are what, where a look at the file does not tell.
    progress : callable (bytes read, bytes in all), optional
    """
    path = Path(path)
    require_file(path)
    name = path.name.lower().removesuffix(".gz")
    kind = next((reader for end, reader in KINDS.items() if name.endswith(end)), None)
    if kind is None and name.endswith(OTHERS):
        raise FileError(f"{path} is of a kind that is not read. Save it as csv, parquet, npz or MatrixMarket.")
    asked = Asked() if asked is None else asked
    triples = (read_delimited if kind is None else kind)(path, asked, progress)
    if triples.i.size == 0:
        raise FileError(f"{path} holds no entry with a value. Pass a file with at least one.")
    return triples
