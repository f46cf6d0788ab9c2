"""20 iterations of BFGD on 1,000,000 × 100,000 with 10 M observations, rank 10, and the memory they take."""

import time

import numpy as np

import bifactor as bf
from benchmarks.harness.measure import in_fresh_process
from benchmarks.harness.rows import Row, row

SHAPE, SIZE, RANK = (1_000_000, 100_000), 10_000_000, 10


def iterate() -> list[Row]:
    rng = np.random.default_rng(0)
    rows, cols = (rng.integers(n, size=SIZE) for n in SHAPE)
    U, V = (rng.standard_normal((n, RANK)) for n in SHAPE)
    # The data are planted, so that the start has something to find; made in blocks, to weigh the solver and not this.
    y = np.concatenate(
        [
            np.einsum("ij,ij->i", U[i], V[j])
            for i, j in zip(np.array_split(rows, 50), np.array_split(cols, 50), strict=True)
        ]
    )
    del U, V
    started = time.perf_counter()
    problem = bf.Problem(bf.losses.Squared(), bf.operators.Entries(rows, cols, SHAPE), y)
    built = time.perf_counter()
    result = bf.solve(problem, RANK, bf.solvers.BFGD(), rng=0, max_iter=20, tol=0)
    seconds = result.history.seconds
    numbers = {
        "iterations": result.n_iter,
        "seconds": seconds[-1],
        "sorting_seconds": built - started,
        "start_seconds": seconds[0],
        "iteration_seconds": (seconds[-1] - seconds[0]) / result.n_iter,
    }
    return [row("least squares", f"{SHAPE[0]:,} × {SHAPE[1]:,}, {SIZE:,} entries, r = {RANK}", "BFGD", **numbers)]


def run() -> list[Row]:
    return in_fresh_process(iterate)
