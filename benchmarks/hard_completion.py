"""Completion 1000 × 1000, rank 10: recovered to 1e-9 or not, over sampling and conditioning; pymanopt beside it.

`bf.solve` with its defaults on ten draws. On some of them also PCG and pymanopt's conjugate gradients on the manifold
of fixed-rank matrices, both from the same spectral start. Singular values fall geometrically from 1 to 1/κ. Entries are
drawn until every row and column has at least r of them. Oversampling is nnz/(r(m + n − r)).
"""

import statistics
import time
from typing import Any

import numpy as np

import bifactor as bf
from benchmarks import rivals

N, RANK, GOAL = 1000, 10, 1e-9
RIVAL_SEEDS, RIVAL_SECONDS = 2, 15.0
"""pymanopt is given this many of the draws, and this long for each."""

Draw = tuple[bf.Problem, np.ndarray, np.ndarray]


def draw(oversampling: float, kappa: float, seed: int) -> Draw:
    rng = np.random.default_rng(seed)
    U, V = (np.linalg.qr(rng.standard_normal((N, RANK)))[0] * N**0.5 for _ in range(2))
    root = np.geomspace(1, 1 / kappa, RANK) ** 0.5
    U, V = U * root, V * root
    while True:
        rows, cols = np.divmod(rng.choice(N * N, int(oversampling * RANK * (2 * N - RANK)), replace=False), N)
        if min(np.bincount(side, minlength=N).min() for side in (rows, cols)) >= RANK:
            break
    y = np.einsum("ij,ij->i", U[rows], V[cols])
    return bf.Problem(bf.losses.Squared(), bf.operators.Entries(rows, cols, (N, N)), y), U, V


def ours(problem: bf.Problem, U: np.ndarray, V: np.ndarray, solver: Any = None) -> tuple[float, int, float]:
    """Error, iterations and seconds."""
    started = time.perf_counter()
    fit = bf.solve(problem, RANK, solver, rng=0, tol=1e-12, max_iter=5000 if solver is None else 500)
    seconds = time.perf_counter() - started
    return bf.metrics.relative_error(fit.U, fit.V, U, V), fit.n_iter, seconds


def rival(problem: bf.Problem, U: np.ndarray, V: np.ndarray) -> float | None:
    """Seconds of pymanopt to the same error; None where it does not get there in time."""
    A, B = bf.inits.Spectral()(problem, RANK, np.random.default_rng(0), False)
    QA, RA = np.linalg.qr(A)
    QB, RB = np.linalg.qr(B)
    left, s, right = np.linalg.svd(RA @ RB.T)
    return rivals.complete(problem, (QA @ left, s, (QB @ right.T).T), (U, V), GOAL, RIVAL_SECONDS)


def run(seeds: int = 10) -> list[dict[str, Any]]:
    for solver in (None, bf.solvers.PCG()):
        ours(*draw(3, 1, 99), solver)  # compiles
    return [row(oversampling, kappa, seeds) for oversampling in (3.0, 2.0, 1.5) for kappa in (1, 10, 1000)]


def row(oversampling: float, kappa: float, seeds: int) -> dict[str, Any]:
    draws = [draw(oversampling, kappa, seed) for seed in range(seeds)]
    fits = [ours(*d) for d in draws]
    direct = [ours(*d, bf.solvers.PCG()) for d in draws[:RIVAL_SEEDS]]
    theirs = [rival(*d) for d in draws[:RIVAL_SEEDS]]
    both = [b / a[2] for a, b in zip(direct, theirs, strict=True) if b is not None and a[0] <= GOAL]
    default = [b / a[2] for a, b in zip(fits, theirs, strict=False) if b is not None and a[0] <= GOAL]
    return {
        "oversampling": oversampling,
        "κ": kappa,
        "recovered": f"{sum(fit[0] <= GOAL for fit in fits)} of {seeds}",
        "median error": f"{statistics.median(fit[0] for fit in fits):.0e}",
        "iterations": int(statistics.median(fit[1] for fit in fits)),
        "seconds": f"{statistics.median(fit[2] for fit in fits):.2f}",
        "PCG from spectral": f"{sum(fit[0] <= GOAL for fit in direct)} of {RIVAL_SEEDS}",
        "pymanopt": f"{sum(b is not None for b in theirs)} of {RIVAL_SEEDS}",
        "its time/PCG's": f"{statistics.median(both):.1f}×" if both else "none",
        "its time/ours": f"{statistics.median(default):.1f}×" if default else "none",
    }
