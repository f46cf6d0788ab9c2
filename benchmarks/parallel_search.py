"""Search for a ridge with one job and two: GridSearchCV over MatrixCompletion, four ridges, three folds, fixed rank.

"new processes" are those that joblib has to start first.
"""

from collections.abc import Callable, Iterator

import joblib
import numpy as np
from joblib.externals.loky import get_reusable_executor
from sklearn.model_selection import GridSearchCV

import bifactor as bf
from benchmarks.harness.measure import in_turns
from benchmarks.harness.rows import Row, row, timed

SIZES = ((300, 150, 5, 0.3), (1000, 500, 8, 0.1), (2000, 800, 5, 0.15), (6000, 2000, 10, 0.1))
"""Rows, columns, rank and the share of the entries that is known."""

RIDGES = [1.0, 3.0, 10.0, 30.0]


def ratings(m: int, n: int, rank: int, known: float) -> np.ndarray:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((m, rank)) @ rng.standard_normal((rank, n)) + 0.5 * rng.standard_normal((m, n))
    return np.where(rng.random((m, n)) < known, X, np.nan)


def search(X: np.ndarray, rank: int, jobs: int, backend: str = "loky") -> Callable[[], None]:
    model = bf.MatrixCompletion(n_components=rank, random_state=0)

    def fit() -> None:
        with joblib.parallel_config(backend=backend):
            GridSearchCV(model, {"ridge": RIDGES}, cv=3, n_jobs=jobs, refit=False).fit(X)

    return fit


def run(repeats: int = 5) -> Iterator[Row]:
    for m, n, rank, known in SIZES:
        X, data = ratings(m, n, rank, known), f"{m} × {n}, {known:.0%} known, rank {rank}"
        candidates = {
            "1 job": search(X, rank, 1),
            "2 jobs": search(X, rank, 2),
            "2 jobs, threads": search(X, rank, 2, "threading"),
        }
        yield from in_turns("search", data, candidates, repeats)
        get_reusable_executor().shutdown()
        yield row("search", data, "2 jobs, new processes", seconds=timed(candidates["2 jobs"])["seconds"])
