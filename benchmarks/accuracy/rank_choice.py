"""rank="auto" on noisy completion, 500 × 500, a fifth observed, ‖X‖_F/‖noise‖_F = 10: is the planted rank found?"""

from collections.abc import Iterator

import numpy as np

import bifactor as bf
from benchmarks.harness.rows import Row, row, timed

N, OBSERVED, SIGNAL = 500, 0.2, 10.0


def noisy(rank: int, seed: int) -> bf.Problem:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, rank)) @ rng.standard_normal((rank, N))
    noise = rng.standard_normal((N, N))
    X += noise * np.linalg.norm(X) / np.linalg.norm(noise) / SIGNAL
    rows, cols = np.nonzero(rng.random((N, N)) < OBSERVED)
    return bf.Problem(bf.losses.Squared(), bf.operators.Entries(rows, cols, X.shape), X[rows, cols])


def run(seeds: int = 50) -> Iterator[Row]:
    for rank in (1, 3, 5, 10, 20):
        data = f"{N}², {OBSERVED:.0%} observed, noise 1/{SIGNAL:g}, planted rank {rank}"
        for seed in range(seeds):
            problem, fits = noisy(rank, seed), []
            clock = timed(lambda p=problem, s=seed, f=fits: f.append(bf.solve(p, "auto", rng=s)))
            found = fits[0].rank
            yield row(
                "least squares",
                data,
                'rank="auto"',
                draw=seed,
                found=found == rank,
                rank=found,
                seconds=clock["seconds"],
            )
