"""Iterations to relative error 1e-6: 1000 × 1000, rank 10, 60,000 noiseless entries, condition number 1.

BFGD with the paper's constants, f normalised by the observed fraction ρ: then L = 1/ρ over all matrices but about 1
over incoherent ones of low rank, which is the L of the theory. It is compared with backtracking.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

import bifactor as bf
from benchmarks.harness.rows import Row, row
from bifactor.penalties import balance

SHAPE, SIZE, RANK = (1000, 1000), 60_000, 10
SOLVERS = {
    "BFGD, 1/(12 max{L, L_g} ‖W₀‖²)": bf.solvers.BFGD(bf.steps.StronglyConvex(L=1.0), balance.Frobenius(1.0)),
    "BFGD, 1/(8 max{L, L_g} ‖Wₜ‖²)": bf.solvers.BFGD(
        bf.steps.StronglyConvex(L=1.0, every_step=True), balance.Frobenius(1.0)
    ),
    "BFGD, backtracking": bf.solvers.BFGD(bf.steps.Backtracking()),
}


def completion(seed: int) -> tuple[bf.Problem, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    U, V = (np.linalg.qr(rng.standard_normal((n, RANK)))[0] for n in SHAPE)
    rows, cols = np.divmod(rng.choice(SHAPE[0] * SHAPE[1], SIZE, replace=False), SHAPE[1])
    y = np.einsum("ij,ij->i", U[rows], V[cols])
    rho = SIZE / (SHAPE[0] * SHAPE[1])
    return bf.Problem(bf.losses.Squared(), bf.operators.Entries(rows, cols, SHAPE), y, weights=1 / rho), U, V


def run(seeds: int = 5) -> Iterator[Row]:
    for name, solver in SOLVERS.items():
        for seed in range(seeds):
            yield row(
                "least squares/ρ", f"1000², {SIZE:,} entries, r = {RANK}, κ = 1", name, draw=seed, **fit(solver, seed)
            )


def fit(solver: bf.solvers.Solver, seed: int) -> Row:
    problem, U, V = completion(seed)

    def recovered(t: int, state: Any) -> bool:
        return t % 10 == 0 and bf.metrics.relative_error(state.U, state.V, U, V) <= 1e-6

    found = bf.solve(problem, RANK, solver, rng=seed, max_iter=20_000, tol=0, callback=recovered)
    return {
        "iterations": found.n_iter,
        "seconds": found.history.seconds[-1],
        "error": bf.metrics.relative_error(found.U, found.V, U, V),
        "largest_rise": float(np.diff(found.history.objective).max()),
    }
