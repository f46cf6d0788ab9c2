"""Public ratings, and splits into known and hidden ones."""

import gzip
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from benchmarks.harness import data
from benchmarks.harness.rows import Absent

Triples = tuple[np.ndarray, np.ndarray, np.ndarray]

HIDDEN = 0.1
JESTER_ROWS = 5000


@dataclass(frozen=True)
class Split:
    """Known ratings, and hidden ones in known rows and columns. Indices have no gaps."""

    shown: Triples
    hidden: Triples

    @property
    def shape(self) -> tuple[int, int]:
        rows, cols, _ = self.shown
        return int(rows.max()) + 1, int(cols.max()) + 1


def stored(folder: str, *names: str) -> Triples:
    """Rows, columns and values under these names in a file of arrays."""
    found = data.arrays(folder)
    rows, cols, values = (found[name] for name in names)
    return rows, cols, values.astype(float)


def text(folder: str, file: str) -> Triples:
    """A row, a column and a value in each line of a compressed file."""
    path = data.DATA / folder / file
    if not path.exists():
        raise Absent(f"{folder} is missing. Set BIFACTOR_DATA to the folder that holds it.", folder)
    with gzip.open(path) as lines:
        rows, cols, values = np.loadtxt(lines).T
    return rows, cols, values


def jester() -> Triples:
    """The first rows of a table with a mark for what is missing."""
    found = data.arrays("jester-1")
    table = found["rating_x100"][:JESTER_ROWS]
    rows, cols = np.nonzero(table != found["missing_value"])
    return rows, cols, table[rows, cols] / 100


RATINGS: dict[str, Callable[[], Triples]] = {
    "MovieLens 100k": lambda: stored("ml-100k", "user", "item", "rating"),
    "MovieTweetings 100k": lambda: stored("movietweetings-100k", "user", "imdb_id", "rating"),
    "FilmTrust": lambda: text("filmtrust", "ratings.txt.gz"),
    "Douban": lambda: stored("douban-monti", "row", "col", "value"),
    "Flixster": lambda: stored("flixster-monti", "row", "col", "value"),
    "Yahoo Music": lambda: stored("yahoo-music-monti", "row", "col", "value"),
    "Jester": jester,
    "Bitcoin OTC": lambda: stored("bitcoin-otc", "source", "target", "rating"),
    "Bitcoin Alpha": lambda: stored("bitcoin-alpha", "source", "target", "rating"),
}


def split(triples: Triples, seed: int) -> Split:
    """A tenth of the entries hidden at random; those whose row or column would be new are left out."""
    rows, cols, values = triples
    hidden = np.random.default_rng(seed).random(values.size) < HIDDEN
    (row_names, i), (col_names, j) = (np.unique(ids[~hidden], return_inverse=True) for ids in (rows, cols))
    told = hidden & np.isin(rows, row_names) & np.isin(cols, col_names)
    places = np.searchsorted(row_names, rows[told]), np.searchsorted(col_names, cols[told])
    return Split((i, j, values[~hidden]), (*places, values[told]))
