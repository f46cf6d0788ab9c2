"""Noiselet sensing 1024 × 1024, rank 50, random start: time to relative error 1e-6, PCG against BFGD.

BFGD once with the step the paper prints, 1/(12 max{L, L_g} ‖W₀‖²) with L = 1, once with the best constant
step that a search finds for this very problem and start.
"""

import statistics
from typing import Any

import numpy as np

import bifactor as bf
from benchmarks.matrix_sensing import RANK, sensing
from benchmarks.measure import side_by_side
from benchmarks.reach import SEED, Reach, best_constant, error_to, reach
from bifactor.arrays import spectral_norm_squared

GOAL, LIMIT = 1e-6, 4000


def repeat(problem: bf.Problem, solver: bf.solvers.Solver, found: Reach) -> None:
    bf.solve(problem, RANK, solver, bf.inits.Random(), SEED, max_iter=int(found.iterations), tol=0)


def run() -> list[dict[str, Any]]:
    table = []
    for oversampling in (10, 5, 3):
        problem, U, V = sensing((1024, 1024), oversampling, 0)
        init, error = bf.inits.Random(), error_to(U, V)

        def to_goal(solver: bf.solvers.Solver, limit: int = LIMIT, problem=problem, init=init, error=error) -> Reach:
            return reach(problem, RANK, solver, init, error, GOAL, limit)

        ours = to_goal(bf.solvers.PCG())
        paper = to_goal(bf.solvers.BFGD())
        first = 1 / spectral_norm_squared(*init(problem, RANK, np.random.default_rng(SEED), False))
        eta, tuned = best_constant(lambda eta: to_goal(bf.solvers.BFGD(bf.steps.Constant(eta)), 1000), first)
        tuned_solver = bf.solvers.BFGD(bf.steps.Constant(eta))
        # Whole runs of the two in turns: what decides is close to one, and a shared machine is not steady.
        seconds = side_by_side(
            {
                "PCG": lambda p=problem, n=ours: repeat(p, bf.solvers.PCG(), n),
                "tuned": lambda p=problem, s=tuned_solver, n=tuned: repeat(p, s, n),
            },
            3,
        )
        fast, slow = (statistics.median(s) for s in seconds.values())
        table.append(
            {
                "C": oversampling,
                "PCG": f"{ours.iterations} it., {fast:.2f} s",
                "BFGD, printed step": paper,
                "ratio": f"{paper.seconds / fast:.0f}×",
                "BFGD, best constant step": f"{tuned.iterations} it., {slow:.2f} s, η·‖W₀‖² = {eta / first:.2f}",
                "ratio ": f"{slow / fast:.2f}×",
                "PCG's iteration": f"{1e3 * fast / ours.iterations:.1f} ms",
                "BFGD's": f"{1e3 * slow / tuned.iterations:.1f} ms",
            }
        )
    return table
