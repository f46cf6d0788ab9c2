"""rank="auto" on noisy completion, 500 × 500, a fifth observed, ‖X‖_F/‖noise‖_F = 10: is the planted rank found?"""

import statistics
import time
from collections import Counter
from typing import Any

import numpy as np

import bifactor as bf

N, OBSERVED, SIGNAL = 500, 0.2, 10.0


def noisy(rank: int, seed: int) -> bf.Problem:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, rank)) @ rng.standard_normal((rank, N))
    noise = rng.standard_normal((N, N))
    X += noise * np.linalg.norm(X) / np.linalg.norm(noise) / SIGNAL
    rows, cols = np.nonzero(rng.random((N, N)) < OBSERVED)
    return bf.Problem(bf.losses.Squared(), bf.operators.Entries(rows, cols, X.shape), X[rows, cols])


def run(seeds: int = 50) -> list[dict[str, Any]]:
    table = []
    for rank in (1, 3, 5, 10, 20):
        found, seconds = [], []
        for seed in range(seeds):
            problem = noisy(rank, seed)
            started = time.perf_counter()
            found.append(bf.solve(problem, "auto", rng=seed).rank)
            seconds.append(time.perf_counter() - started)
        table.append(
            {
                "rank": rank,
                "found": f"{sum(r == rank for r in found)} of {seeds}",
                "others": ", ".join(f"{r} ({k}×)" for r, k in sorted(Counter(found).items()) if r != rank) or "none",
                "seconds, median": f"{statistics.median(seconds):.2f}",
            }
        )
    return table
