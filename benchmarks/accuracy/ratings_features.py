"""Features on ratings with a tenth held out: a ridge, a posterior, and either with features.

Features are the patterns of known ratings, age, gender and occupation of users, genres and years of films, and the
graphs of friends, of trust and of similar items, one feature for each node. The ridge is 11 standard deviations of the
ratings, about 12 stars for MovieLens. `rise` is the largest relative increase of the objective in an iteration of the
ridge's fit. The generated ratings have a planted matrix of rank 8, and users and items of very different activity.
"""

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

import bifactor as bf
from benchmarks.accuracy.features import film_features, user_features
from benchmarks.harness import data
from benchmarks.harness.ratings_data import RATINGS, Split, Triples, split, text
from benchmarks.harness.rows import Absent, Row, row

RIDGE = 11.0
USERS, ITEMS, GENERATED, RANK = 6040, 3706, 900_000, 8

Features = dict[str, tuple[np.ndarray, Any]]
"""Names of rows, and a line of features for each, by the argument of `MatrixCompletion`."""


def graph(edges: np.ndarray) -> tuple[np.ndarray, Any]:
    """The neighbours of each node."""
    names, places = np.unique(edges, return_inverse=True)
    i, j = places.reshape(-1, 2).T
    return names, sparse.csr_array((np.ones(i.size), (i, j)), shape=(names.size, names.size))


def features(name: str) -> Features:
    if name == "MovieLens 100k":
        both = {"user_features": user_features(), "item_features": film_features()}
        return {side: (1 + np.arange(len(lines)), lines) for side, lines in both.items()}
    if name == "FilmTrust":
        return {"user_features": graph(np.stack(text("filmtrust", "trust.txt.gz")[:2], axis=1))}
    folder = {"Flixster": "flixster-monti", "Douban": "douban-monti", "Yahoo Music": "yahoo-music-monti"}.get(name)
    found = {} if folder is None else data.arrays(folder)
    kinds = {"W_users_edges": "user_features", "W_movies_edges": "item_features", "W_tracks_edges": "item_features"}
    return {side: graph(found[key]) for key, side in kinds.items() if key in found}


def lines(names: np.ndarray, known: np.ndarray, table: Any) -> Any:
    """The features of the rows with these names; zeros for those that have none."""
    place = np.minimum(np.searchsorted(known, names), len(known) - 1)
    return sparse.diags_array((known[place] == names) * 1.0) @ sparse.csr_array(table)[place]


def generated(seed: int) -> Triples:
    rng = np.random.default_rng(seed)
    shares = [rng.pareto(shape, size) + least for shape, size, least in ((1.5, USERS, 0.3), (1.2, ITEMS, 0.2))]
    i, j = (rng.choice(one.size, 2 * GENERATED, p=one / one.sum()) for one in shares)
    i, j = np.divmod(rng.permutation(np.unique(i * ITEMS + j))[:GENERATED], ITEMS)
    U, V = 0.35 * rng.standard_normal((USERS, RANK)), 0.5 * rng.standard_normal((ITEMS, RANK))
    y = 3.5 + 0.4 * rng.standard_normal(USERS)[i] + 0.5 * rng.standard_normal(ITEMS)[j]
    y += np.einsum("tk,tk->t", U[i], V[j]) + 0.8 * rng.standard_normal(i.size)
    return i, j, np.clip(np.round(2 * y) / 2, 0.5, 5.0)


def measured(part: Split, **options: Any) -> dict[str, Any]:
    started = time.perf_counter()
    model = bf.MatrixCompletion(random_state=0, **options).fit(
        sparse.csr_array((part.shown[2], part.shown[:2]), shape=part.shape)
    )
    seconds = time.perf_counter() - started
    rows, cols, y = part.hidden
    rmse = float(np.sqrt(np.mean((model.predict(rows, cols) - y) ** 2)))
    objective = model.result_.history.objective
    rise = float(np.max(np.diff(objective) / np.abs(objective[:-1]))) if "ridge" in options else None
    return {"rmse": rmse, "seconds": seconds, "iterations": model.result_.n_iter, "rise": rise}


def compared(name: str, triples: Triples, known: Features) -> Iterator[Row]:
    part, hidden = split(triples, 0), np.random.default_rng(0).random(triples[2].size) < 0.1
    names = dict(zip(("user_features", "item_features"), (np.unique(ids[~hidden]) for ids in triples[:2]), strict=True))
    given = {side: lines(names[side], *table) for side, table in known.items()}
    for prior, options in (("ridge", {"ridge": RIDGE * float(triples[2].std())}), ("posterior", {})):
        yield row("RMSE", name, prior, **measured(part, implicit_features=False, **options))
        yield row("RMSE", name, f"{prior}, patterns", **measured(part, implicit_features=True, **options))
        if given:
            yield row("RMSE", name, f"{prior}, features", **measured(part, implicit_features=False, **given, **options))


def run() -> Iterator[Row]:
    yield from compared("900,000 generated", generated(0), {})
    for name in ("MovieLens 100k", "MovieTweetings 100k", "FilmTrust", "Flixster", "Douban", "Yahoo Music"):
        try:
            yield from compared(name, RATINGS[name](), features(name))
        except Absent as reason:
            yield row("RMSE", name, "ridge", skipped=str(reason))
