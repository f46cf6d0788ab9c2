"""Features of rows and columns: the cost of an iteration, and predictions for users and films without a single rating.

Cost: generated in the shape of MovieLens 1M, a million ratings at rank 32, with 20 features for each row out of 200.
CPU seconds of an iteration are those of 35 iterations less those of 5.

Cold: MovieLens 100k without a tenth of the users and a tenth of the films, three draws. Features are age, gender and
occupation of users, genres and years of films. The ridge of each library, and the weight that cmfrec's CMF gives to
features, are chosen within the training part, by another tenth of users and films that are left out there.
"""

import gzip
import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

import bifactor as bf
from benchmarks.harness.data import DATA, movielens
from benchmarks.harness.rows import Absent, Case, Row, library, row
from bifactor.kernels.threading import thread_count

USERS, FILMS, RATINGS, RANK = 6040, 3706, 1_000_000, 32
FEATURES, EACH = 200, 20
DRAWS, SHARE, COMPONENTS = 3, 0.1, 10

AGES = (18, 25, 35, 45, 50, 56)
YEARS = (1950, 1970, 1980, 1990, 1993, 1994, 1995, 1996, 1997, 1998)

Setting = tuple[float, ...]
Fitted = np.ndarray
"""Predictions for all users and films."""


# What an iteration costs


def generated(features: bool, seed: int = 0) -> bf.Problem:
    rng = np.random.default_rng(seed)
    i, j = rng.integers(USERS, size=RATINGS), (FILMS * rng.random(RATINGS) ** 2).astype(int)
    U, V = rng.standard_normal((USERS, 5)), rng.standard_normal((FILMS, 5))
    y = np.einsum("tk,tk->t", U[i], V[j]) + rng.standard_normal(RATINGS)
    places = np.repeat(np.arange(USERS), EACH), rng.integers(FEATURES, size=EACH * USERS)
    F = sparse.csr_array((rng.standard_normal(EACH * USERS), places), shape=(USERS, FEATURES))
    entries = bf.operators.Entries(i, j, (USERS, FILMS))
    operator = bf.operators.Featured(entries, F) if features else entries
    return bf.Problem("squared", operator, y, penalty=bf.penalties.Ridge(10.0))


def iterations(problem: bf.Problem, count: int) -> float:
    """CPU seconds of this many iterations."""
    started = time.process_time()
    bf.solve(problem, RANK, bf.solvers.PCG(), rng=0, max_iter=count, tol=1e-300, objective_tol=0.0)
    return time.process_time() - started


def prepare(features: bool) -> Callable[[], Row]:
    problem = generated(features)
    iterations(problem, 2)
    return lambda: {"seconds": (iterations(problem, 35) - iterations(problem, 5)) / 30, "iterations": 1}


WHERE = f"{RATINGS:,} ratings of {USERS}×{FILMS}, r = {RANK}"
CASES = [
    Case("an iteration of PCG", WHERE, "without features", lambda: prepare(False)),
    Case("an iteration of PCG", WHERE, f"{EACH} features per row", lambda: prepare(True)),
]


def costs() -> Iterator[Row]:
    for draw in range(5):
        for case in CASES:
            once = case.prepare()
            yield row(*case.nouns.values(), draw=draw, seconds=once()["seconds"])


# Users and films without ratings


def user_features() -> np.ndarray:
    """Gender, occupation, and age in bands."""
    lines = _lines("u.user.gz")
    occupations = sorted({line[3] for line in lines})
    ages = np.digitize([int(line[1]) for line in lines], AGES)
    work = np.array([occupations.index(line[3]) for line in lines])
    genders = np.array([int(line[2] == "F") for line in lines])
    return np.hstack([np.eye(2)[genders], np.eye(len(occupations))[work], np.eye(len(AGES) + 1)[ages]])


def film_features() -> np.ndarray:
    """Genres, and years in bands."""
    lines = _lines("u.item.gz")
    years = np.digitize([int(line[2][-4:] or 1997) for line in lines], YEARS)
    genres = np.array([[float(cell) for cell in line[-19:]] for line in lines])
    return np.hstack([genres, np.eye(len(YEARS) + 1)[years]])


def _lines(file: str) -> list[list[str]]:
    path = DATA / "ml-100k" / file
    if not path.exists():
        raise Absent(f"{file} of ml-100k is not at hand. Set BIFACTOR_DATA to the folder that holds it.", "ml-100k")
    with gzip.open(path, "rt", encoding="latin-1") as text:
        return [line.strip().split("|") for line in text]


@dataclass(frozen=True, eq=False)
class Part:
    """Ratings, of which some users and films have none to be fitted to."""

    rows: np.ndarray
    cols: np.ndarray
    values: np.ndarray
    F: np.ndarray
    G: np.ndarray
    cold: tuple[np.ndarray, np.ndarray]

    @classmethod
    def drawn(cls, rows: Any, cols: Any, values: Any, F: Any, G: Any, rng: np.random.Generator) -> "Part":
        """A share of those that have ratings is left out."""
        sides = [np.unique(places) for places in (rows, cols)]
        cold = tuple(rng.choice(side, int(SHARE * side.size), replace=False) for side in sides)
        return cls(rows, cols, values, F, G, (cold[0], cold[1]))

    @property
    def is_cold(self) -> list[np.ndarray]:
        return [np.isin(places, cold) for places, cold in zip((self.rows, self.cols), self.cold, strict=True)]

    @property
    def train(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        stay = ~(self.is_cold[0] | self.is_cold[1])
        return self.rows[stay], self.cols[stay], self.values[stay]

    def errors(self, predicted: Fitted) -> dict[str, float]:
        """Of cold users and known films, and the other way round."""
        users, films = self.is_cold
        tests = {"cold users": users & ~films, "cold films": films & ~users}
        squares = (predicted[self.rows, self.cols] - self.values) ** 2
        return {name: float(np.sqrt(squares[test].mean())) for name, test in tests.items()}


def means(part: Part, strength: float) -> Fitted:
    """Means of rows and columns, shrunk to the overall mean as by so many additional ratings."""
    rows, cols, values = part.train
    mean = values.mean()
    sides = [
        np.bincount(places, values - mean, size) / (np.bincount(places, minlength=size) + strength)
        for places, size in ((rows, len(part.F)), (cols, len(part.G)))
    ]
    return mean + sides[0][:, None] + sides[1]


def ours(part: Part, ridge: float) -> Fitted:
    rows, cols, values = part.train
    table = sparse.csr_array((values, (rows, cols)), shape=(len(part.F), len(part.G)))
    model = bf.MatrixCompletion(
        n_components=COMPONENTS, ridge=ridge, user_features=part.F, item_features=part.G, random_state=0
    )
    return model.fit(table)._all_scores(model.model_.U)


def collective(part: Part, ridge: float, weight: float) -> Fitted:
    """cmfrec's CMF: factors that explain the features, too; cold ones are found from these."""
    rows, cols, values = part.train
    users, i = np.unique(rows, return_inverse=True)
    films, j = np.unique(cols, return_inverse=True)
    matrix = sparse.coo_matrix((values, (i, j)), shape=(users.size, films.size))
    options = {"k": COMPONENTS, "lambda_": ridge, "w_user": weight, "w_item": weight, "nthreads": thread_count()}
    model = library("cmfrec").CMF(**options, verbose=False).fit(matrix, U=part.F[users], I=part.G[films])
    A, B = np.zeros((len(part.F), COMPONENTS)), np.zeros((len(part.G), COMPONENTS))
    A[users], B[films] = model.A_, model.B_
    b, c = np.zeros(len(A)), np.zeros(len(B))
    b[users], c[films] = model.user_bias_, model.item_bias_
    for k in part.cold[0]:
        A[k] = model.factors_cold(U=part.F[k])
    for k in part.cold[1]:
        found = model.item_factors_cold(I=part.G[k])
        B[k] = found[0] if isinstance(found, tuple) else found
    return float(model.glob_mean_) + b[:, None] + c + A @ B.T


def content(part: Part, ridge: float) -> Fitted:
    """cmfrec's ContentBased: factors are functions of the features alone.

    Version 3.5.1 adds the mean of all ratings to its predictions twice, so it gets ratings minus their mean.
    """
    rows, cols, values = part.train
    mean = values.mean()
    users, i = np.unique(rows, return_inverse=True)
    films, j = np.unique(cols, return_inverse=True)
    matrix = sparse.coo_matrix((values - mean, (i, j)), shape=(users.size, films.size))
    options = {"k": COMPONENTS, "lambda_": ridge, "user_bias": True, "item_bias": True, "nthreads": thread_count()}
    model = library("cmfrec").ContentBased(**options).fit(matrix, U=part.F[users], I=part.G[films])
    found = np.full((len(part.F), len(part.G)), np.nan)
    asked = np.flatnonzero(part.is_cold[0] | part.is_cold[1])
    rows, cols = part.rows[asked], part.cols[asked]
    biases = [np.zeros(len(part.F)), np.zeros(len(part.G))]
    biases[0][users], biases[1][films] = model.user_bias_, model.item_bias_
    found[rows, cols] = mean + model.predict_new(part.F[rows], part.G[cols]) + biases[0][rows] + biases[1][cols]
    return found


MODELS: dict[str, tuple[Callable[..., Fitted], list[Setting]]] = {
    "means of rows and columns": (means, [(1.0,), (2.0,), (5.0,), (10.0,), (20.0,)]),
    "MatrixCompletion": (ours, [(4.0,), (8.0,), (12.0,), (16.0,), (24.0,), (36.0,)]),
    "cmfrec CMF": (collective, list(itertools.product((2.0, 5.0, 10.0, 20.0, 40.0), (0.1, 0.5, 1.0, 5.0, 20.0)))),
    "cmfrec ContentBased": (content, [(1.0,), (10.0,), (30.0,), (100.0,), (300.0,)]),
}


def cold() -> Iterator[Row]:
    data, F, G = movielens(), user_features(), film_features()
    for draw in range(DRAWS):
        rng = np.random.default_rng(draw)
        part = Part.drawn(data["row"], data["col"], data["rating"], F, G, rng)
        within = Part.drawn(*part.train, F, G, rng)
        for name, (fit, settings) in MODELS.items():
            try:
                tried = {setting: within.errors(fit(within, *setting)) for setting in settings}
                for what in ("cold users", "cold films"):
                    best = min(tried, key=lambda setting: tried[setting][what])
                    error = part.errors(fit(part, *best))[what]
                    yield row(what, "MovieLens 100k", name, draw=draw, rmse=error, setting=list(best))
            except Absent as reason:
                yield row("cold users", "MovieLens 100k", name, skipped=str(reason))


def run() -> Iterator[Row]:
    yield from costs()
    yield from cold()
