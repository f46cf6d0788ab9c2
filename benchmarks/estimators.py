"""Estimators with their defaults on real data: MovieLens, Jester, and tables with holes against other imputers.

MovieLens 100k: the five official folds, nothing tuned. Jester: 5,000 users kept out of the fit, half of the ratings of
each shown to `transform`, error on the other half, against a fit to everything that is shown. Imputers: a tenth and
three tenths of the known entries hidden, three draws.
"""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.impute import KNNImputer, SimpleImputer

from benchmarks.data import DATA
from benchmarks.ratings import SHAPE, folds, rmse
from bifactor.estimators.imputer import LowRankImputer
from bifactor.estimators.matrix_completion import MatrixCompletion

ABSENT = "is not at hand: set BIFACTOR_DATA to the folder that holds it"
HELD_OUT, MISSING = 5000, 9900
HIDDEN, DRAWS = (0.1, 0.3), 3

Row = dict[str, Any]


def load(folder: str, file: str, name: str) -> np.ndarray | None:
    path = DATA / folder / file
    if not path.exists():
        return None
    with np.load(path) as stored:
        return stored[name].astype(float)


def movielens_rows() -> list[Row]:
    splits = folds()
    if not splits:
        return [_row("MovieLens 100k", ABSENT)]
    table = []
    for components in ("auto", 10):
        errors, ranks, started = [], [], time.perf_counter()
        for (rows, cols, y), (test_rows, test_cols, truth) in splits:
            seen = sparse.coo_array((y, (rows, cols)), shape=SHAPE)
            model = MatrixCompletion(n_components=components, random_state=0).fit(seen)
            errors.append(rmse(model.predict(test_rows, test_cols), truth))
            ranks.append(model.n_components_)
        each = ", ".join(f"{error:.4f}" for error in errors)
        seconds = (time.perf_counter() - started) / len(splits)
        label, detail = f"MatrixCompletion(n_components={components!r})", f"{each}; ranks {ranks}"
        table.append(_row("MovieLens 100k, u1 to u5", label, f"{np.mean(errors):.4f}", detail, seconds))
    return table


def jester_rows() -> list[Row]:
    ratings = load("jester-1", "jester-1.npz", "rating_x100")
    if ratings is None:
        return [_row("Jester", ABSENT)]
    ratings = np.where(ratings == MISSING, np.nan, ratings / 100)
    rng = np.random.default_rng(0)
    order = rng.permutation(ratings.shape[0])
    fitted, new = ratings[order[HELD_OUT:]], ratings[order[:HELD_OUT]]
    hidden = ~np.isnan(new) & (rng.random(new.shape) < 0.5)
    shown = np.where(hidden, np.nan, new)

    def error(filled: np.ndarray) -> float:
        return rmse(filled[hidden], new[hidden])

    table = []
    for components in ("auto", 10):
        started = time.perf_counter()
        model = MatrixCompletion(n_components=components, random_state=0).fit(fitted)
        middle = time.perf_counter()
        apart = error(model.inverse_transform(model.transform(shown)))
        folded = time.perf_counter()
        again = MatrixCompletion(n_components=components, random_state=0).fit(np.vstack([fitted, shown]))
        rows, cols = np.nonzero(hidden)
        together = rmse(again.predict(rows + fitted.shape[0], cols), new[hidden])
        ratio = f"{apart / together:.4f} of refitting ({together:.4f}); transform took {folded - middle:.2f} s"
        label = f"transform of unseen rows, n_components={components!r}"
        table.append(_row("Jester, 5,000 users held out", label, f"{apart:.4f}", ratio, middle - started))
    return table


def imputers() -> dict[str, Callable[[], Any]]:
    return {
        "SimpleImputer (mean)": SimpleImputer,
        "KNNImputer (5 neighbours)": KNNImputer,
        "LowRankImputer": lambda: LowRankImputer(random_state=0),
    }


def imputer_rows() -> list[Row]:
    sources = {
        "Khan microarray": ("khan-microarray-missing", "khanmiss.npz", "expr"),
        "Arabidopsis metabolites": ("metabolite-missing", "metabolite.npz", "data"),
    }
    table = []
    for name, source in sources.items():
        X = load(*source)
        if X is None:
            table.append(_row(name, ABSENT))
            continue
        for share in HIDDEN:
            for label, make in imputers().items():
                errors, started = [], time.perf_counter()
                for draw in range(DRAWS):
                    hidden = ~np.isnan(X) & (np.random.default_rng(draw).random(X.shape) < share)
                    filled = make().fit_transform(np.where(hidden, np.nan, X))
                    errors.append(rmse(filled[hidden], X[hidden]) / float(np.std(X[hidden])))
                seconds = (time.perf_counter() - started) / DRAWS
                what = f"{name}, {X.shape[0]} × {X.shape[1]}, {share:.0%} hidden"
                each = "in standard deviations of what is hidden; " + ", ".join(f"{e:.3f}" for e in errors)
                table.append(_row(what, label, f"{np.mean(errors):.3f}", each, seconds))
    return table


def _row(data: str, what: str, error: str = "", detail: str = "", seconds: float | None = None) -> Row:
    took = "" if seconds is None else f"{seconds:.2f}"
    return {"data": data, "what": what, "RMSE": error, "detail": detail, "seconds a fit": took}


def run() -> list[Row]:
    return [*movielens_rows(), *jester_rows(), *imputer_rows()]
