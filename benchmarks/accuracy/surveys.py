"""The survey, ratings and wines of gcimpute's documentation, with its masks; install gcimpute with pip for the data.

GSS 2014, 2,538 × 8, 10 % hidden: SMAE, the mean over columns of the mean absolute error over that of the median.
MovieLens, the 400 most rated films and those who rated 150 of them, 10 % hidden: mean absolute error. White wine,
4,898 × 11, 30 % hidden: RMSE over the standard deviation, the share of hidden cells in the range of 39 draws (95 %
if calibrated), and the error of a regression for the quality of wines that it has not seen, fitted to four fifths
of them, five times: complete, filled in once, with one draw, and with the mean of the slopes of five draws.
"""

from collections.abc import Callable, Iterator
from types import ModuleType

import numpy as np

import bifactor as bf
from benchmarks.harness.rows import Absent, Row, library, row, timed

SEED, DRAWS, RANGE, SPLITS = 101, 5, 39, 5


def gcimpute(module: str) -> ModuleType:
    try:
        return library(f"gcimpute.{module}")
    except Absent:
        raise Absent("gcimpute is not installed. Install it with pip, in an environment of its own.") from None


def filled(X: np.ndarray, shown: np.ndarray) -> tuple[np.ndarray, np.ndarray, Row]:
    """Hidden cells, predictions, and seconds of fit and transform in the second call, since the first compiles."""
    hidden, found = np.isnan(shown) & ~np.isnan(X), []
    for _ in range(2):
        took = timed(lambda: found.append(bf.TableImputer(random_state=0).fit_transform(shown)))
    return hidden, found[-1], {"seconds": took["seconds"]}


def survey() -> Row:
    X = gcimpute("helper_data").load_GSS().to_numpy(float)
    hidden, told, took = filled(X, gcimpute("helper_mask").mask_MCAR(X, 0.1, seed=SEED))
    errors = []
    for j in range(X.shape[1]):
        at = hidden[:, j]
        middle = np.nanmedian(X[~at, j])
        errors.append(np.mean(np.abs(told[at, j] - X[at, j])) / np.mean(np.abs(middle - X[at, j])))
    return row("SMAE", f"GSS 2014, {X.shape[0]} × {X.shape[1]}", "TableImputer", error=float(np.mean(errors)), **took)


def ratings() -> Row:
    X = gcimpute("helper_data").load_movielens1m(num=400, min_obs=150)
    hidden, told, took = filled(X, gcimpute("helper_mask").mask_MCAR(X, 0.1, seed=SEED))
    error = float(np.mean(np.abs(told[hidden] - X[hidden])))
    return row("MAE", f"MovieLens, {X.shape[0]} × {X.shape[1]}", "TableImputer", error=error, **took)


def wines() -> Iterator[Row]:
    table = gcimpute("helper_data").load_whitewine().to_numpy(float)
    X, y = table[:, :-1], table[:, -1]
    shown = gcimpute("helper_mask").mask_MCAR(X, 0.3, seed=SEED)
    hidden, told, took = filled(X, shown)
    data = f"white wine, {X.shape[0]} × {X.shape[1]}"
    error = float(np.sqrt(np.mean((((told - X) / X.std(axis=0)) ** 2)[hidden])))
    yield row("scaled RMSE", data, "TableImputer", error=error, **took)
    draws = np.array(
        [d[hidden] for d in bf.TableImputer(random_state=0).fit(shown).sample(shown, RANGE, random_state=0)]
    )
    inside = (draws.min(axis=0) <= X[hidden]) & (X[hidden] <= draws.max(axis=0))
    yield row("share in 95 % intervals", data, "TableImputer", cover95=float(inside.mean()))
    for seed in range(SPLITS):
        yield from regressions(X, shown, y, data, seed)


def regressions(X: np.ndarray, shown: np.ndarray, y: np.ndarray, data: str, seed: int) -> Iterator[Row]:
    train = np.random.default_rng(seed).permutation(len(y)) < 0.8 * len(y)
    seen = np.column_stack([shown, y])[train]  # what is to be explained tells of holes, too
    imputer = bf.TableImputer(columns={X.shape[1]: "number"}, random_state=0).fit(seen)
    draws = imputer.sample(seen, DRAWS, random_state=0)
    mean = np.nanmean(shown[train], axis=0)
    tables = {
        "complete": [X[train]],
        "means": [np.where(np.isnan(shown[train]), mean, shown[train])],
        "filled in": [imputer.transform(seen)[:, :-1]],
        "one draw": [draws[0][:, :-1]],
        f"{DRAWS} draws": [draw[:, :-1] for draw in draws],
    }
    for name, some in tables.items():
        slopes = np.mean([np.linalg.lstsq(with_ones(Z), y[train])[0] for Z in some], axis=0)
        error = float(np.mean((with_ones(X[~train]) @ slopes - y[~train]) ** 2))
        yield row("squared error of a regression", data, name, draw=seed, error=error)


def with_ones(X: np.ndarray) -> np.ndarray:
    return np.column_stack([np.ones(len(X)), X])


def run() -> Iterator[Row]:
    one: tuple[Callable[[], Row], ...] = (survey, ratings)
    try:
        for make in one:
            yield make()
        yield from wines()
    except Absent as reason:
        yield row("", "gcimpute's data", "", skipped=str(reason))
