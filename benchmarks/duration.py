"""How long fits take, and how long `bifactor complete` predicts: numbers, labels and MovieLens 100k."""

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.harness.data import movielens
from benchmarks.harness.rows import Row, or_skipped, row
from bifactor.data import Observations
from bifactor.models.completion.fitting import fit_model, validate_settings

CHOICES: dict[str, dict[str, Any]] = {
    "posterior, rank left open": {"n_components": "auto", "ridge": None},
    "posterior": {"n_components": 10, "ridge": None},
    "rank and ridge chosen": {"n_components": "auto", "ridge": "auto"},
    "ridge chosen": {"n_components": 10, "ridge": "auto"},
    "nothing chosen": {"n_components": 10, "ridge": 5.0},
}
SIZES = ((2_000, 1_000, 200_000), (10_000, 4_000, 1_000_000))


def low_rank(m: int, n: int, p: int, rank: int = 8, noise: float = 1.0) -> Observations:
    rng = np.random.default_rng(0)
    i, j = rng.integers(m, size=p), rng.integers(n, size=p)
    z = np.einsum("kr,kr->k", rng.standard_normal((m, rank))[i], rng.standard_normal((n, rank))[j])
    return Observations(i, j, z + noise * rng.standard_normal(p), (m, n))


def ratings() -> Observations:
    data = movielens()
    return Observations(data["row"], data["col"], data["rating"], (943, 1682))


def fits(name: str, data: Observations, loss: str = "squared") -> Iterator[Row]:
    for choice, given in CHOICES.items():
        if given["ridge"] is None and loss != "squared":  # which has no posterior
            continue
        said: list[float] = []
        options = {"offsets": True, "max_iter": 500, "tol": 1e-5, "random_state": 0, "solver": None, "verbose": 0}
        chosen = replace(validate_settings(loss=loss, **given, **options), expect=said.append)
        started = time.perf_counter()
        fit_model(data, chosen)
        seconds = time.perf_counter() - started
        yield row(f"{loss}, {choice}", name, "fit", seconds=seconds, expected=said[0], ratio=seconds / said[0])


def run() -> Iterator[Row]:
    for m, n, p in SIZES:
        data, name = low_rank(m, n, p), f"{m} × {n}, {p:,} known"
        yield from fits(name, data)
        yield from fits(name, data.replaced(np.where(data.values > 0, 1.0, -1.0)), "logistic")
    yield from or_skipped(lambda: fits("MovieLens 100k", ratings()))
