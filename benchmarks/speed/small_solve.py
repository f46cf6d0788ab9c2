"""A small problem: 50 × 40, rank 3, 60 % of the entries, where overhead dominates."""

import time
from collections.abc import Callable

import numpy as np

import bifactor as bf
from benchmarks.harness.rows import Case, Row, run_cases

SHAPE, RANK, OBSERVED = (50, 40), 3, 0.6
REPEATS = 40


def problem() -> bf.Problem:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((SHAPE[0], RANK)) @ rng.standard_normal((RANK, SHAPE[1]))
    rows, cols = np.nonzero(rng.random(SHAPE) < OBSERVED)
    return bf.Problem(bf.losses.Squared(), bf.operators.Entries(rows, cols, SHAPE), X[rows, cols])


def prepare(solver: bf.solvers.Solver | None) -> Callable[[], Row]:
    small = problem()

    def once() -> Row:
        started, iterations = time.perf_counter(), 0
        for seed in range(REPEATS):
            iterations += bf.solve(small, RANK, solver, rng=seed).n_iter
        seconds = time.perf_counter() - started
        return {
            "seconds": seconds / REPEATS,
            "iterations": iterations / REPEATS,
            "iteration_milliseconds": 1e3 * seconds / iterations,
        }

    return once


DATA = f"{SHAPE[0]} × {SHAPE[1]}, {OBSERVED:.0%} of the entries, r = {RANK}"
CASES = [
    Case("least squares", DATA, "PCG", lambda: prepare(bf.solvers.PCG())),
    Case("least squares", DATA, "default", lambda: prepare(None)),
]


def run() -> list[Row]:
    return run_cases(CASES)
