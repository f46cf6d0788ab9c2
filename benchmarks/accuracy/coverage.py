"""Planted matrices with noise: how often posterior intervals contain the entry itself, and a new measurement of it.

300 × 200 of rank 3 with offsets, noise half as large as the entries, 5 to 50 % observed, fitted at rank 3 and 8; 100
draws each. cover_z and cover_y are shares of the entries that were not observed inside 90 % intervals, rmse is of z in
units of the noise.
"""

from collections.abc import Iterator

import numpy as np
import scipy

import bifactor as bf
from benchmarks.harness.rows import Row, row

SHAPE, RANK, NOISE, LEVEL = (300, 200), 3, 1.0, 0.9
SHARES, RANKS, DRAWS = (0.05, 0.1, 0.2, 0.5), (3, 8), 100


def draw(seed: int, share: float, rank: int) -> Row:
    rng = np.random.default_rng(seed)
    m, n = SHAPE
    X = rng.standard_normal((m, RANK)) @ rng.standard_normal((RANK, n)) + rng.standard_normal((m, 1))
    X += rng.standard_normal(n)
    X *= 2 * NOISE / X.std()
    seen = rng.random(SHAPE) < share
    i, j = np.nonzero(seen)
    y = X[i, j] + NOISE * rng.standard_normal(i.size)
    problem = bf.Problem("squared", bf.operators.Entries(i, j, SHAPE), y - y.mean(), offsets=True)
    result = bf.solve(problem, rank, bf.solvers.Variational(), rng=0, max_iter=500)
    a, b = np.nonzero(~seen)
    assert result.posterior is not None
    z, std = result.predict(a, b) + y.mean(), result.posterior.std(a, b)
    lower, upper = result.posterior.interval(a, b, LEVEL)
    new = X[a, b] + NOISE * rng.standard_normal(a.size) - y.mean()
    return {
        "rmse": float(np.sqrt(np.mean((z - X[a, b]) ** 2))) / NOISE,
        "cover_z": float(np.mean(np.abs(z - X[a, b]) <= scipy.special.ndtri((1 + LEVEL) / 2) * std)),
        "cover_y": float(np.mean((lower <= new) & (new <= upper))),
        "iterations": result.n_iter,
    }


def run() -> Iterator[Row]:
    for share in SHARES:
        for rank in RANKS:
            for seed in range(DRAWS):
                name = f"planted rank {RANK}, {share:.0%} observed"
                yield row("unobserved entries", name, f"Variational, rank {rank}", draw=seed, **draw(seed, share, rank))
