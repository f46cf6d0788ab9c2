"""MovieLens 100k, five official folds: test error and time against cmfrec's ALS, both with ridge, centring and offsets.

Both tuned over the same grid of ridges at each rank; cmfrec with its defaults otherwise. Time is from the triples to
the factors of the first fold; "to cmfrec's error" is until our test error, averaged over the folds, is that of cmfrec.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy import sparse

import bifactor as bf
from benchmarks.harness.data import movielens
from benchmarks.harness.measure import side_by_side
from benchmarks.harness.rows import Absent, Case, Row, library, row, timed
from bifactor.problems.state import State

SHAPE, RANKS, GRID = (943, 1682), (5, 10, 20), (6.0, 8.0, 10.0, 12.0, 16.0)
REPEATS = 5

Split = tuple[np.ndarray, ...]


def folds() -> list[tuple[Split, Split]]:
    data = movielens()
    columns = data["row"], data["col"], data["rating"]
    return [
        tuple(tuple(c[part] for c in columns) for part in (data["fold"] != k, data["fold"] == k)) for k in range(1, 6)
    ]


def rmse(prediction: np.ndarray, y: np.ndarray) -> float:
    return float(np.sqrt(np.mean((prediction - y) ** 2)))


def ours(train: Split, rank: int, rho: float, callback: Any = None, max_iter: int = 2000) -> tuple[bf.Result, float]:
    rows, cols, y = train
    mean = float(y.mean())
    operator, ridge = bf.operators.Entries(rows, cols, SHAPE), bf.penalties.Ridge(rho)
    problem = bf.Problem(bf.losses.Squared(), operator, y - mean, penalty=ridge, offsets=True)
    return bf.solve(problem, rank, rng=0, objective_tol=1e-2, callback=callback, max_iter=max_iter), mean


def ours_errors(split: tuple[Split, Split], rank: int, rho: float) -> list[float]:
    """The test error after every iteration."""
    (rows, cols, y), errors = split[1], []
    mean = float(split[0][2].mean())

    def look(t: int, state: State) -> None:
        errors.append(rmse(mean + np.einsum("ij,ij->i", state.U[rows], state.V[cols]), y))

    ours(split[0], rank, rho, look)
    return errors


def theirs(train: Split, rank: int, rho: float) -> Any:
    # cmfrec goes wrong on empty rows and columns of a COO matrix, so ids are made dense, as it does for data frames.
    users, rows = np.unique(train[0], return_inverse=True)
    items, cols = np.unique(train[1], return_inverse=True)
    matrix = sparse.coo_matrix((train[2], (rows, cols)), shape=(users.size, items.size))
    return library("cmfrec").CMF(k=rank, lambda_=rho, verbose=False, nthreads=2).fit(matrix), users, items


def theirs_error(split: tuple[Split, Split], rank: int, rho: float) -> float:
    model, users, items = theirs(split[0], rank, rho)
    rows, cols, y = split[1]
    r, c = np.searchsorted(users, rows), np.searchsorted(items, cols)
    known_r, known_c = (np.isin(side, ids) for side, ids in ((rows, users), (cols, items)))
    r, c = np.where(known_r, r, 0), np.where(known_c, c, 0)
    p = np.full(y.size, float(model.glob_mean_))
    p += known_r * model.user_bias_[r] + known_c * model.item_bias_[c]
    p += known_r * known_c * np.einsum("ij,ij->i", model.A_[r], model.B_[c])
    return rmse(p, y)


def tuned(errors: Callable[[float], list[Any]], last: Callable[[Any], float]) -> tuple[float, list[Any]]:
    """The ridge of the grid with the smallest mean test error over the folds, and the result of `errors` for it."""
    found = {rho: errors(rho) for rho in GRID}
    return min(found.items(), key=lambda item: np.mean([last(e) for e in item[1]]))


def compared(splits: list[tuple[Split, Split]], rank: int) -> Iterator[Row]:
    objective, data = "least squares + ridge, offsets", f"MovieLens 100k, r = {rank}"
    rho, curves = tuned(lambda rho: [ours_errors(s, rank, rho) for s in splits], lambda curve: curve[-1])
    train, stop = splits[0][0], None
    candidates = {"default, whole fit": lambda: ours(train, rank, rho)}
    yield from (row(objective, data, "default", draw=k, rmse=c[-1], ridge=rho) for k, c in enumerate(curves, 1))
    try:
        their_rho, errors = tuned(lambda rho: [theirs_error(s, rank, rho) for s in splits], float)
        yield from (row(objective, data, "cmfrec", draw=k, rmse=e, ridge=their_rho) for k, e in enumerate(errors, 1))
        candidates["cmfrec"] = lambda: theirs(train, rank, their_rho)
        mean = np.mean([c[: min(map(len, curves))] for c in curves], axis=0)
        reached = np.flatnonzero(mean <= np.mean(errors))
        if reached.size:
            stop = int(reached[0]) + 1
            candidates["default, to cmfrec's error"] = lambda: ours(train, rank, rho, max_iter=stop)
    except Absent as reason:
        yield row(objective, data, "cmfrec", skipped=str(reason))
    for name, seconds in side_by_side(candidates, REPEATS).items():
        count = {"iterations": stop} if name.endswith("error") else {}
        yield from (row(objective, f"{data}, fold 1", name, draw=k, seconds=s, **count) for k, s in enumerate(seconds))


def prepare() -> Callable[[], Row]:
    train = folds()[0][0]
    return lambda: timed(lambda: ours(train, 10, 10.0)[0])


CASES = [Case("least squares + ridge 10, offsets", "MovieLens 100k, r = 10, fold 1", "default, whole fit", prepare)]


def run() -> Iterator[Row]:
    splits = folds()
    for rank in RANKS:
        yield from compared(splits, rank)
