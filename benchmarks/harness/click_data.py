"""Public positives: ratings of at least so much, plays and visits, of users and items with at least a few of them."""

import gzip
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from benchmarks.harness import data
from benchmarks.harness.ratings_data import stored, text
from benchmarks.harness.rows import Absent

Pairs = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Clicks:
    """A set of positives. Users and items have at least `core` positives each, after all others are removed."""

    pairs: Callable[[], Pairs]
    core: int

    def read(self) -> sparse.csr_array:
        """Ones at the positives, by users × items in the order of their names."""
        users, items = cored(*self.pairs(), self.core)
        (names, i), (titles, j) = (np.unique(side, return_inverse=True) for side in (users, items))
        matrix = sparse.csr_array((np.ones(i.size), (i, j)), shape=(names.size, titles.size))
        matrix.sum_duplicates()
        matrix.data[:] = 1.0
        return matrix


def cored(users: np.ndarray, items: np.ndarray, core: int) -> Pairs:
    """The pairs that remain when users and items with fewer than `core` are removed repeatedly."""
    users, items = np.unique(np.stack([users, items]), axis=1)  # a pair that comes twice counts once
    while users.size:
        few = np.zeros(users.size, bool)
        for side in (users, items):
            _, place, counts = np.unique(side, return_inverse=True, return_counts=True)
            few |= counts[place] < core
        if not few.any():
            break
        users, items = users[~few], items[~few]
    return users, items


def liked(triples: tuple[np.ndarray, np.ndarray, np.ndarray], least: float) -> Pairs:
    """Ratings of at least so much."""
    users, items, ratings = triples
    return users[ratings >= least].astype(np.int64), items[ratings >= least].astype(np.int64)


def lastfm() -> Pairs:
    """Artists that a user has listened to."""
    folder = "lastfm-hetrec2011"
    path = data.DATA / folder / "user_artists.dat.gz"
    if not path.exists():
        raise Absent(f"{folder} is missing. Set BIFACTOR_DATA to the folder that holds it.", folder)
    with gzip.open(path) as lines:
        users, items, _ = np.loadtxt(lines, skiprows=1, dtype=np.int64).T
    return users, items


def msweb() -> Pairs:
    """Areas of a web site that a user has visited."""
    found = data.arrays("msweb")
    return found["user"].astype(np.int64), found["item"].astype(np.int64)


CLICKS = {
    "MovieLens 100k": Clicks(lambda: liked(stored("ml-100k", "user", "item", "rating"), 4), 5),
    "Last.fm": Clicks(lastfm, 2),
    "msweb": Clicks(msweb, 3),
    "MovieTweetings": Clicks(lambda: liked(stored("movietweetings-100k", "user", "imdb_id", "rating"), 7), 5),
    "FilmTrust": Clicks(lambda: liked(text("filmtrust", "ratings.txt.gz"), 3), 5),
}
