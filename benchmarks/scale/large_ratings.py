"""One fit of a million ratings with a given rank and ridge: test error and time against cmfrec's ALS.

Generated in the shape of MovieLens 1M: 6,040 users and 3,706 films with long tails, whole stars, offsets, and 30
components of which the largest matter. Both have centring, offsets and the same ridge; cmfrec its defaults otherwise.
Time is that of a fit from the triples, both on two threads.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

import bifactor as bf
from benchmarks.accuracy.ratings import rmse, theirs, theirs_error
from benchmarks.harness.measure import side_by_side
from benchmarks.harness.rows import Absent, Row, row

SHAPE, COUNT, HIDDEN, TRUE_RANK = (6040, 3706), 1_000_000, 0.1, 30
RANKS, RIDGES, REPEATS = (10, 20, 40), (8.0, 15.0), 5

Triples = tuple[np.ndarray, np.ndarray, np.ndarray]


def generated(seed: int = 0) -> tuple[Triples, Triples]:
    """What is known, and what is hidden."""
    rng, (m, n) = np.random.default_rng(seed), SHAPE
    often = [rng.lognormal(0.0, tail, size) for tail, size in ((1.0, m), (1.3, n))]
    drawn = [rng.choice(side.size, COUNT * 3 // 2, p=side / side.sum()) for side in often]
    places = rng.permutation(np.unique(drawn[0] * n + drawn[1]))[:COUNT]
    i, j = places // n, places % n
    sizes = 0.28 * 0.9 ** np.arange(TRUE_RANK)
    taste = np.einsum(
        "tk,tk->t", (rng.standard_normal((m, TRUE_RANK)) * sizes)[i], rng.standard_normal((n, TRUE_RANK))[j]
    )
    score = 3.6 + 0.4 * rng.standard_normal(m)[i] + 0.5 * rng.standard_normal(n)[j] + taste
    stars = np.clip(np.round(score + 0.75 * rng.standard_normal(i.size)), 1, 5)
    hidden = rng.random(i.size) < HIDDEN
    known, told = ((i[part], j[part], stars[part]) for part in (~hidden, hidden))
    return known, told


def ours(train: Triples, rank: int, ridge: float) -> Any:
    return bf.MatrixCompletion(n_components=rank, ridge=ridge, n_jobs=2, random_state=0).fit(train)


def compared(split: tuple[Triples, Triples], rank: int, ridge: float) -> Iterator[Row]:
    train, (rows, cols, y) = split
    names = "least squares + ridge, offsets", f"generated, r = {rank}, ridge {ridge:g}"
    errors = {"MatrixCompletion": rmse(ours(train, rank, ridge).predict(rows, cols), y)}
    candidates = {"MatrixCompletion": lambda: ours(train, rank, ridge)}
    try:
        errors["cmfrec"] = theirs_error(split, rank, ridge)
        candidates["cmfrec"] = lambda: theirs(train, rank, ridge)
    except Absent as reason:
        yield row(*names, "cmfrec", skipped=str(reason))
    for name, seconds in side_by_side(candidates, REPEATS).items():
        yield from (row(*names, name, draw=k, seconds=s, rmse=errors[name]) for k, s in enumerate(seconds))


def run() -> Iterator[Row]:
    split = generated()
    for rank in RANKS:
        for ridge in RIDGES:
            yield from compared(split, rank, ridge)
