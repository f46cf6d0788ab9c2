"""Films, and users, without a single rating: MovieLens 100k without a tenth of the films, or of the users, five draws.

The error of predictions of their ratings, the mean of these less the predictions, and how many are within 90 %
intervals. Features are those of `features`: age, gender and occupation of users, genres and years of films.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from scipy import sparse

import bifactor as bf
from benchmarks.accuracy.features import film_features, user_features
from benchmarks.harness.data import movielens
from benchmarks.harness.rows import Row, or_skipped, row, timed

OBJECTIVE, DRAWS, SHARE = "cold start", 5, 0.1
SIDES = ("users", "films")


class Part(NamedTuple):
    """Ratings to be fitted to, and those of users (side 0) or films (1) that have none there."""

    train: sparse.coo_array
    cold: sparse.coo_array
    side: int


Told = tuple[np.ndarray, np.ndarray | None, np.ndarray | None]
"""Predictions of cold ratings, and the ends of intervals, if any."""


def drawn(side: int, draw: int) -> Part:
    """A tenth of the users, or films, that have ratings are left out."""
    data = movielens()
    places, shape = (data["row"], data["col"]), (len(user_features()), len(film_features()))
    every = np.unique(places[side])
    cold = np.isin(places[side], np.random.default_rng(draw).choice(every, int(SHARE * every.size), replace=False))
    train, test = (
        sparse.coo_array((data["rating"][some], (places[0][some], places[1][some])), shape=shape)
        for some in (~cold, cold)
    )
    return Part(train, test, side)


def constant(part: Part) -> Told:
    return np.full(part.cold.nnz, part.train.data.mean()), None, None


def means(part: Part) -> Told:
    """The user's mean for a cold film, and the film's for a cold user, with one rating of the overall mean."""
    other = 1 - part.side
    known, mean = part.train.coords[other], part.train.data.mean()
    sums = np.bincount(known, part.train.data - mean, part.train.shape[other])
    found = mean + sums / (np.bincount(known, minlength=sums.size) + 1)
    return found[part.cold.coords[other]], None, None


def fitted(part: Part, features: bool, implicit: bool | str) -> Told:
    told = {"user_features": user_features(), "item_features": film_features()} if features else {}
    model = bf.MatrixCompletion(implicit_features=implicit, random_state=0, **told).fit(part.train)
    return model.predict(*part.cold.coords), *model.predict_interval(*part.cold.coords)


MODELS: dict[str, Callable[[Part], Told]] = {
    "mean of all": constant,
    "mean of the other side": means,
    "no features": lambda part: fitted(part, False, False),
    "no features, implicit auto": lambda part: fitted(part, False, "auto"),
    "features": lambda part: fitted(part, True, False),
    "features, implicit auto": lambda part: fitted(part, True, "auto"),
}


def measured(model: str, part: Part) -> Row:
    kept: list[Told] = []
    seconds = timed(lambda: kept.append(MODELS[model](part)))["seconds"]
    ((found, low, high),), y = kept, part.cold.data
    numbers: Row = {"rmse": float(np.sqrt(np.mean((found - y) ** 2))), "bias": float(np.mean(y - found))}
    if low is not None and high is not None:
        numbers["cover90"] = float(np.mean((low <= y) & (y <= high)))
    return {**numbers, "seconds": seconds}


def rows_of(side: int) -> Iterator[Row]:
    for draw in range(DRAWS):
        part = drawn(side, draw)
        for model in MODELS:
            yield row(OBJECTIVE, f"cold {SIDES[side]}", model, draw=draw, **measured(model, part))


def run() -> Iterator[Row]:
    for side in (1, 0):
        data = f"cold {SIDES[side]}"
        yield from or_skipped(lambda s=side: rows_of(s), objective=OBJECTIVE, data=data)
