"""Estimators with their defaults on real data: MovieLens, Jester, and tables with holes against other imputers.

MovieLens 100k: the five official folds, nothing tuned. Jester: 5,000 users held out of the fit, half of the ratings of
each shown to `transform`, error on the other half, against a fit to everything that is shown. Imputers: a tenth and
three tenths of the known entries hidden, three draws; errors in standard deviations of what is hidden.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.impute import KNNImputer, SimpleImputer

from benchmarks.accuracy.ratings import SHAPE, folds, rmse
from benchmarks.harness.data import arrays
from benchmarks.harness.rows import Row, or_skipped, row, timed
from bifactor.estimators.matrix_completion import MatrixCompletion
from bifactor.estimators.table_imputer import TableImputer

HELD_OUT, MISSING = 5000, 9900
HIDDEN, DRAWS = (0.1, 0.3), 3
COMPONENTS = ("auto", 10)
OBJECTIVE = "squared errors, nothing tuned"


def movielens_rows() -> Iterator[Row]:
    splits = folds()
    for components in COMPONENTS:
        solver = f"MatrixCompletion(n_components={components!r})"
        for k, ((rows, cols, y), (test_rows, test_cols, truth)) in enumerate(splits, 1):
            model = MatrixCompletion(n_components=components, random_state=0)
            seen = sparse.coo_array((y, (rows, cols)), shape=SHAPE)
            seconds = timed(lambda m=model, s=seen: m.fit(s))["seconds"]
            numbers = {"rmse": rmse(model.predict(test_rows, test_cols), truth), "rank": model.n_components_}
            yield row(OBJECTIVE, "MovieLens 100k, u1 to u5", solver, draw=k, **numbers, seconds=seconds)


def jester_rows() -> Iterator[Row]:
    ratings = arrays("jester-1")["rating_x100"].astype(float)
    ratings = np.where(ratings == MISSING, np.nan, ratings / 100)
    rng = np.random.default_rng(0)
    order = rng.permutation(ratings.shape[0])
    fitted, new = ratings[order[HELD_OUT:]], ratings[order[:HELD_OUT]]
    hidden = ~np.isnan(new) & (rng.random(new.shape) < 0.5)
    shown = np.where(hidden, np.nan, new)
    rows, cols = np.nonzero(hidden)
    for components in COMPONENTS:
        nouns = {"objective": OBJECTIVE, "data": f"Jester, 5,000 users held out, n_components={components!r}"}
        model, again = (MatrixCompletion(n_components=components, random_state=0) for _ in range(2))
        seconds = timed(lambda m=model: m.fit(fitted))["seconds"]
        filled: list[np.ndarray] = []
        extra = timed(lambda m=model, f=filled: f.append(m.inverse_transform(m.transform(shown))))["seconds"]
        numbers = {"rmse": rmse(filled[0][hidden], new[hidden]), "seconds": seconds, "transform_seconds": extra}
        yield row(**nouns, solver="transform of unseen rows", **numbers)
        seconds = timed(lambda m=again: m.fit(np.vstack([fitted, shown])))["seconds"]
        error = rmse(again.predict(rows + fitted.shape[0], cols), new[hidden])
        yield row(**nouns, solver="refit with these rows", rmse=error, seconds=seconds)


IMPUTERS: dict[str, Callable[[], Any]] = {
    "TableImputer": lambda: TableImputer(random_state=0),
    "SimpleImputer (mean)": SimpleImputer,
    "KNNImputer (5 neighbours)": KNNImputer,
}


def imputer_rows(name: str, folder: str, file: str, array: str) -> Iterator[Row]:
    X = arrays(folder, file)[array].astype(float)
    for share in HIDDEN:
        data = f"{name}, {X.shape[0]} × {X.shape[1]}, {share:.0%} hidden"
        for solver, make in IMPUTERS.items():
            for draw in range(DRAWS):
                hidden = ~np.isnan(X) & (np.random.default_rng(draw).random(X.shape) < share)
                shown, filled = np.where(hidden, np.nan, X), []
                seconds = timed(lambda m=make, s=shown, f=filled: f.append(m().fit_transform(s)))["seconds"]
                error = rmse(filled[0][hidden], X[hidden]) / float(np.std(X[hidden]))
                yield row("filling holes", data, solver, draw=draw, scaled_rmse=error, seconds=seconds)


def run() -> Iterator[Row]:
    yield from or_skipped(movielens_rows)
    yield from or_skipped(jester_rows)
    yield from or_skipped(lambda: imputer_rows("Khan microarray", "khan-microarray-missing", "khanmiss", "expr"))
    yield from or_skipped(lambda: imputer_rows("Arabidopsis metabolites", "metabolite-missing", "metabolite", "data"))
