"""Completion 1000 × 1000, rank 10: recovery to 1e-9 by sampling and conditioning, compared with pymanopt.

`bf.solve` with its defaults on ten draws. On some of them also PCG and pymanopt's conjugate gradients on the manifold
of fixed-rank matrices, both from the same spectral start. Singular values decrease geometrically from 1 to 1/κ. Entries
are drawn until every row and column has at least r of them. Oversampling is nnz/(r(m + n − r)). Seconds are those of
runs that recovered X.
"""

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

import bifactor as bf
from benchmarks.harness.rows import Case, Row, or_skipped, row, timed
from benchmarks.rivals import solvers

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


def fit(problem: bf.Problem, solver: bf.solvers.Solver | None = None) -> bf.Result:
    return bf.solve(problem, RANK, solver, rng=0, tol=1e-12, max_iter=5000 if solver is None else 500)


def ours(problem: bf.Problem, U: np.ndarray, V: np.ndarray, solver: bf.solvers.Solver | None = None) -> Row:
    found = []
    clock = timed(lambda: found.append(fit(problem, solver)))
    error = bf.metrics.relative_error(found[0].U, found[0].V, U, V)
    there = error <= GOAL
    seconds = clock["seconds"] if there else None
    return {"recovered": there, "error": error, "iterations": found[0].n_iter, "seconds": seconds}


def theirs(problem: bf.Problem, U: np.ndarray, V: np.ndarray) -> Row:
    """pymanopt to the same error; no seconds if it does not reach it in time."""
    start = bf.inits.Spectral()(problem, RANK, np.random.default_rng(0))
    A, B = start.left, start.right
    QA, RA = np.linalg.qr(A)
    QB, RB = np.linalg.qr(B)
    left, s, right = np.linalg.svd(RA @ RB.T)
    seconds = solvers.complete(problem, (QA @ left, s, (QB @ right.T).T), (U, V), GOAL, RIVAL_SECONDS)
    return {"recovered": seconds is not None, "seconds": seconds}


def describe(oversampling: float, kappa: float) -> str:
    return f"{N}², r = {RANK}, oversampling {oversampling:g}, κ = {kappa:g}"


def complete(oversampling: float, kappa: float, seeds: int) -> Iterator[Row]:
    draws = [draw(oversampling, kappa, seed) for seed in range(seeds)]
    few = draws[:RIVAL_SEEDS]
    nouns = {"objective": "least squares", "data": describe(oversampling, kappa)}
    yield from (row(**nouns, solver="default", draw=k, **ours(*d)) for k, d in enumerate(draws))
    direct = bf.solvers.PCG()
    yield from (row(**nouns, solver="PCG, spectral start", draw=k, **ours(*d, direct)) for k, d in enumerate(few))
    nouns["solver"] = "pymanopt CG, spectral start"
    yield from or_skipped(lambda: [row(**nouns, draw=k, **theirs(*d)) for k, d in enumerate(few)], **nouns)


def prepare(oversampling: float, kappa: float) -> Callable[[], Row]:
    """Three draws; `recovered` counts those that came to 1e-9."""
    draws = [draw(oversampling, kappa, seed) for seed in range(3)]

    def once() -> Row:
        fits: list[bf.Result] = []
        clock = timed(lambda: fits.extend(fit(d[0]) for d in draws))
        recovered = sum(bf.metrics.relative_error(f.U, f.V, *d[1:]) <= GOAL for f, d in zip(fits, draws, strict=True))
        return {"seconds": clock["seconds"], "iterations": sum(f.n_iter for f in fits), "recovered": recovered}

    return once


HARD = [(oversampling, kappa) for oversampling in (3.0, 2.0, 1.5) for kappa in (1, 10, 1000)]
CASES = [
    Case("least squares", f"{describe(*hard)}, 3 draws", "default", partial(prepare, *hard))
    for hard in ((3.0, 1), (2.0, 1000), (1.5, 10))
]


def run(seeds: int = 10) -> Iterator[Row]:
    for solver in (None, bf.solvers.PCG()):
        ours(*draw(3, 1, 99), solver)  # compiles
    for hard in HARD:
        yield from complete(*hard, seeds)
