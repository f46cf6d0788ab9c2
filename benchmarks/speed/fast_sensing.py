"""Noiselet sensing 1024 × 1024, rank 50, random start: time to relative error 1e-6, PCG against BFGD.

BFGD once with the step the paper prints, 1/(12 max{L, L_g} ‖W₀‖²) with L = 1, once with the best constant
step that a search finds for this problem and start; `step` is that step times ‖W₀‖².
"""

from collections.abc import Callable

import numpy as np

import bifactor as bf
from benchmarks.harness.measure import side_by_side
from benchmarks.harness.reach import SEED, Reach, best_constant, error_to, reach
from benchmarks.harness.rows import Case, Row, row, timed
from benchmarks.speed.matrix_sensing import RANK, describe, sensing

SHAPE, GOAL, LIMIT = (1024, 1024), 1e-6, 4000


def repeat(problem: bf.Problem, solver: bf.solvers.Solver, found: Reach) -> bf.Result:
    return bf.solve(problem, RANK, solver, bf.inits.Random(), SEED, max_iter=int(found.iterations), tol=0)


def sense(oversampling: int) -> list[Row]:
    problem, U, V = sensing(SHAPE, oversampling, 0)
    init, error = bf.inits.Random(), error_to(U, V)

    def to_goal(solver: bf.solvers.Solver, limit: int = LIMIT) -> Reach:
        return reach(problem, RANK, solver, init, error, GOAL, limit)

    def constant(eta: float) -> bf.solvers.Solver:
        return bf.solvers.BFGD(bf.steps.Constant(eta))

    ours, paper = to_goal(bf.solvers.PCG()), to_goal(bf.solvers.BFGD())
    first = 1 / init(problem, RANK, np.random.default_rng(SEED)).spectral_norm_squared()
    eta, tuned = best_constant(lambda eta: to_goal(constant(eta), 1000), first)
    # Whole runs of the two in turns: what decides is close to one, and a shared machine is not steady.
    candidates = {
        "PCG": lambda: repeat(problem, bf.solvers.PCG(), ours),
        "tuned": lambda: repeat(problem, constant(eta), tuned),
    }
    fast, slow = side_by_side(candidates, 3).values()
    nouns = {"objective": "least squares", "data": describe(SHAPE, oversampling)}
    best = {"iterations": tuned.iterations, "step": eta / first}
    return [
        *(row(**nouns, solver="PCG", draw=k, seconds=s, iterations=ours.iterations) for k, s in enumerate(fast)),
        row(**nouns, solver="BFGD, printed step", **paper.numbers),
        *(row(**nouns, solver="BFGD, best constant step", draw=k, seconds=s, **best) for k, s in enumerate(slow)),
    ]


def prepare() -> Callable[[], Row]:
    """As many iterations of PCG as it takes to the goal: measuring the error does not count."""
    problem, U, V = sensing(SHAPE, 10, 0)
    found = reach(problem, RANK, bf.solvers.PCG(), bf.inits.Random(), error_to(U, V), GOAL, 200)
    return lambda: timed(lambda: repeat(problem, bf.solvers.PCG(), found))


CASES = [Case("least squares", describe(SHAPE, 10), "PCG, random start", prepare)]


def run() -> list[Row]:
    return [row for oversampling in (10, 5, 3) for row in sense(oversampling)]
