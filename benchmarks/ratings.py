"""MovieLens 100k, five official folds: test error and time against cmfrec's ALS, both with ridge, centring and offsets.

Both tuned over the same grid of ridges at each rank; cmfrec with its defaults otherwise. Time is from the triples to
the factors; "to its error" is until our test error, averaged over the folds, is that of cmfrec.
"""

import statistics
import time
from typing import Any

import numpy as np

import bifactor as bf
from benchmarks.data import movielens
from bifactor.state import State

SHAPE, RANKS, GRID = (943, 1682), (5, 10, 20), (6.0, 8.0, 10.0, 12.0, 16.0)
REPEATS = 5

Split = tuple[np.ndarray, ...]


def folds() -> list[tuple[Split, Split]]:
    data = movielens()
    if data is None:
        return []
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
    from cmfrec import CMF
    from scipy import sparse

    # cmfrec goes wrong on empty rows and columns of a COO matrix, so ids are made dense, as it does for data frames.
    users, rows = np.unique(train[0], return_inverse=True)
    items, cols = np.unique(train[1], return_inverse=True)
    matrix = sparse.coo_matrix((train[2], (rows, cols)), shape=(users.size, items.size))
    return CMF(k=rank, lambda_=rho, verbose=False, nthreads=2).fit(matrix), users, items


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


def seconds(function: Any) -> float:
    times = []
    for _ in range(REPEATS + 1):
        started = time.perf_counter()
        function()
        times.append(time.perf_counter() - started)
    return statistics.median(times[1:])


def run() -> list[dict[str, Any]]:
    splits = folds()
    if not splits:
        return [{"skipped": "MovieLens 100k is not at hand: set BIFACTOR_DATA to the folder that holds ml-100k"}]
    table = []
    for rank in RANKS:
        their_error, their_rho = min((np.mean([theirs_error(s, rank, rho) for s in splits]), rho) for rho in GRID)
        curves = {rho: [ours_errors(s, rank, rho) for s in splits] for rho in GRID}
        error, rho = min((np.mean([c[-1] for c in curve]), rho) for rho, curve in curves.items())
        mean = np.mean([c[: min(map(len, curves[rho]))] for c in curves[rho]], axis=0)
        reached = np.flatnonzero(mean <= their_error)
        stop = int(reached[0]) + 1 if reached.size else None
        train = splits[0][0]
        cmfrec = seconds(lambda t=train, k=rank, r=their_rho: theirs(t, k, r))
        whole = seconds(lambda t=train, k=rank, r=rho: ours(t, k, r))
        to_error = None if stop is None else seconds(lambda t=train, k=rank, r=rho, n=stop: ours(t, k, r, max_iter=n))
        table.append(
            {
                "rank": rank,
                "test error": f"{error:.4f} (ρ = {rho:g})",
                "cmfrec": f"{their_error:.4f} (λ = {their_rho:g})",
                "whole fit": f"{1e3 * whole:.0f} ms",
                "to its error": "never" if to_error is None else f"{1e3 * to_error:.0f} ms, {stop} iterations",
                "cmfrec's fit": f"{1e3 * cmfrec:.0f} ms",
                "ratio": "none" if to_error is None else f"{to_error / cmfrec:.2f}",
            }
        )
    return table
