"""1-bit completion with a ridge, rank 3: time to the objective of 2000 iterations of BFGD with the paper's step.

The signs of MovieLens 100k about their mean where that data is at hand, else a synthetic table of its size: 943 × 1682
with 95,000 observations. Without a ridge the optimum need not exist, as rows with equal signs go to infinity.
"""

from typing import Any

import numpy as np

import bifactor as bf
from benchmarks.data import movielens
from benchmarks.reach import SEED, best_constant, reach
from bifactor.arrays import spectral_norm_squared

SHAPE, SIZE, RANK, RHO = (943, 1682), 95_000, 3, 1.0
ITERATIONS = 2000


def signs() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    data = movielens()
    if data is not None:
        kept = rng.permutation(data["rating"].size)[:SIZE]
        above = data["rating"] > data["rating"].mean()
        return data["row"][kept], data["col"][kept], np.where(above, 1.0, -1.0)[kept]
    U, V = (rng.standard_normal((n, RANK)) for n in SHAPE)
    rows, cols = np.divmod(rng.choice(SHAPE[0] * SHAPE[1], SIZE, replace=False), SHAPE[1])
    p = 1 / (1 + np.exp(-np.einsum("ij,ij->i", U[rows], V[cols])))
    return rows, cols, np.where(rng.random(SIZE) < p, 1.0, -1.0)


def run() -> list[dict[str, Any]]:
    rows, cols, y = signs()
    operator, table = bf.operators.Entries(rows, cols, SHAPE), []
    for loss in (bf.losses.Logistic(), bf.losses.Probit()):
        problem = bf.Problem(loss, operator, y, penalty=bf.penalties.Ridge(RHO))
        printed = bf.solvers.BFGD(bf.steps.Smooth(), balance=None)
        baseline = bf.solve(problem, RANK, printed, rng=SEED, max_iter=ITERATIONS, tol=0)
        goal, seconds = baseline.objective, baseline.history.seconds[-1]

        def to_goal(solver: bf.solvers.Solver, limit: int, problem=problem, goal=goal) -> Any:
            return reach(problem, RANK, solver, None, lambda state: state.value, goal, limit)

        start = bf.inits.Spectral()(problem, RANK, np.random.default_rng(SEED), False)
        first = 1 / (loss.smoothness * spectral_norm_squared(*start))
        eta, tuned = best_constant(lambda e: to_goal(bf.solvers.BFGD(bf.steps.Constant(e), balance=None), 2000), first)
        for solver in (bf.solvers.PCG(), bf.solvers.Newton()):
            found = to_goal(solver, 500)
            table.append(
                {
                    "loss": type(loss).__name__,
                    "solver": type(solver).__name__,
                    "to the objective": found,
                    "2000 printed steps": f"{seconds:.2f} s",
                    "ratio": f"{seconds / found.seconds:.0f}×",
                    "best constant step": f"{tuned}, η·L‖W₀‖² = {eta / first:.2f}",
                    "ratio ": f"{tuned.seconds / found.seconds:.1f}×",
                }
            )
    return table
