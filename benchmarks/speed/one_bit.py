"""1-bit completion with a ridge, rank 3: time to the objective of 2000 iterations of BFGD with the paper's step.

The signs of MovieLens 100k about their mean where that data is at hand, else a synthetic table of its size: 943 × 1682
with 95,000 observations. Without a ridge the optimum need not exist, as rows with equal signs go to infinity. `step` is
the best constant step times L‖W₀‖².
"""

from collections.abc import Iterator

import numpy as np

import bifactor as bf
from benchmarks.harness.data import movielens
from benchmarks.harness.reach import SEED, Reach, best_constant, reach
from benchmarks.harness.rows import Absent, Row, row

SHAPE, SIZE, RANK, RHO = (943, 1682), 95_000, 3, 1.0
ITERATIONS = 2000


def signs() -> tuple[str, np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    try:
        data = movielens()
    except Absent:
        U, V = (rng.standard_normal((n, RANK)) for n in SHAPE)
        rows, cols = np.divmod(rng.choice(SHAPE[0] * SHAPE[1], SIZE, replace=False), SHAPE[1])
        p = 1 / (1 + np.exp(-np.einsum("ij,ij->i", U[rows], V[cols])))
        return "synthetic signs", rows, cols, np.where(rng.random(SIZE) < p, 1.0, -1.0)
    kept = rng.permutation(data["rating"].size)[:SIZE]
    above = data["rating"] > data["rating"].mean()
    return "signs of MovieLens 100k", data["row"][kept], data["col"][kept], np.where(above, 1.0, -1.0)[kept]


def fits(problem: bf.Problem) -> Iterator[Row]:
    """Rows without objective and data."""
    printed = bf.solvers.BFGD(bf.steps.Smooth(), balance=None)
    baseline = bf.solve(problem, RANK, printed, rng=SEED, max_iter=ITERATIONS, tol=0)
    goal, seconds = baseline.objective, baseline.history.seconds[-1]

    def to_goal(solver: bf.solvers.Solver, limit: int) -> Reach:
        return reach(problem, RANK, solver, None, lambda state: state.value, goal, limit)

    start = bf.inits.Spectral()(problem, RANK, np.random.default_rng(SEED))
    first = 1 / (problem.loss.smoothness * start.spectral_norm_squared())
    eta, tuned = best_constant(lambda e: to_goal(bf.solvers.BFGD(bf.steps.Constant(e), balance=None), 2000), first)
    for solver in (bf.solvers.PCG(), bf.solvers.Newton()):
        yield {"solver": type(solver).__name__, **to_goal(solver, 500).numbers}
    yield {"solver": "BFGD, printed step", "iterations": ITERATIONS, "seconds": seconds, "extrapolated": False}
    yield {"solver": "BFGD, best constant step", **tuned.numbers, "step": eta / first}


def run() -> Iterator[Row]:
    name, rows, cols, y = signs()
    operator = bf.operators.Entries(rows, cols, SHAPE)
    data = f"{name}, {SHAPE[0]} × {SHAPE[1]}, {SIZE:,} entries, r = {RANK}"
    for loss in (bf.losses.Logistic(), bf.losses.Probit()):
        problem = bf.Problem(loss, operator, y, penalty=bf.penalties.Ridge(RHO))
        yield from (row(f"{type(loss).__name__.lower()} + ridge {RHO:g}", data, **numbers) for numbers in fits(problem))
