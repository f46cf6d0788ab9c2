"""Iterations of PCG with all cells beside clicks: MovieLens 100k, ratings of 4 and more, at rank 64."""

from collections.abc import Iterator
from contextlib import nullcontext
from unittest.mock import patch

import numpy as np

import bifactor as bf
from benchmarks.harness.data import movielens
from benchmarks.harness.rows import Row, or_skipped, row
from bifactor.blocks import Shared
from bifactor.factors import Factors
from bifactor.operators.all_cells import DataAndCells

RANK, NEAR, LONG, LONGEST = 64, (1e-2, 1e-3, 1e-4), 400, 100
"""The rank, the distances to the minimum, and the iterations to find it, or for each start."""


def clicks() -> tuple[bf.operators.Entries, np.ndarray, np.ndarray]:
    """The entries, and how many there are in each row and column."""
    data = movielens()
    known = data["rating"] >= 4
    users, items = (np.unique(data[side][known], return_inverse=True)[1] for side in ("row", "col"))
    counts = np.bincount(users), np.bincount(items)
    return bf.operators.Entries(users, items, (counts[0].size, counts[1].size)), *counts


def by_frequency(w0: float, lam: float) -> bf.Problem:
    entries, a, b = clicks()
    (m, n), ones = entries.shape, np.ones(entries.size)
    ridge = bf.penalties.Ridge(lam, rows=a + w0 * n, cols=b + w0 * m)
    return bf.Problem("squared", entries, ones, penalty=ridge) + bf.all_cells(w0)


def as_implicit(alpha: float, lam: float) -> bf.Problem:
    entries, *_ = clicks()
    y = np.full(entries.size, alpha / (alpha - 1))
    return bf.Problem("squared", entries, y, alpha - 1, bf.penalties.Ridge(lam)) + bf.all_cells(1.0)


def observed_alone(f: DataAndCells, x: Factors, side: int, alone: bool = True) -> Shared:
    return f.data.expected(x, side)


def counted(name: str, problem: bf.Problem, blocks: str = "all") -> Iterator[Row]:
    starts = {"spectral": bf.inits.Spectral(), "random": bf.inits.Random()}
    runs = {
        start: bf.solve(problem, RANK, bf.solvers.PCG(), init, 0, max_iter=LONG, tol=0)
        for start, init in starts.items()
    }
    least = min(run.objective for run in runs.values())
    observed = patch.object(DataAndCells, "expected", observed_alone) if blocks == "observed" else nullcontext()
    for start, init in starts.items():
        with observed:
            values = bf.solve(problem, RANK, bf.solvers.PCG(), init, 0, max_iter=LONGEST, tol=0).history.objective
        found = {
            f"within {near:g}": next((t for t, F in enumerate(values) if least * (1 + near) >= F), None)
            for near in NEAR
        }
        yield row(name, "MovieLens 100k, 4 and more", f"PCG, {start} start, {blocks} blocks", **found)


def run() -> Iterator[Row]:
    def every() -> Iterator[Row]:
        for w0 in (0.8, 0.28):
            yield from counted(f"w0 {w0}, λ 0.01, by frequency", by_frequency(w0, 0.01))
        yield from counted("w0 0.28, λ 0.01, by frequency", by_frequency(0.28, 0.01), "observed")
        yield from counted("implicit, α 2, λ 40", as_implicit(2.0, 40.0))

    yield from or_skipped(every)
