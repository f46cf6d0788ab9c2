"""Convex solvers against CVXPY: 20 random 30 × 20 problems per loss and constraint.

`NuclearNorm` minimises f + ρ‖X‖_*; `SPG` minimises f over ‖X‖_* ≤ τ, and over |Xᵢⱼ| ≤ α too. τ is 0.2 to 0.8 of √(rmn),
and α half of the largest measurement, so that both are active. That X is within 1e-8 of both limits is asserted.
"""

from collections.abc import Callable, Iterator

import numpy as np

import bifactor as bf
from benchmarks.accuracy.nuclear_norm import LOSSES, RANK, SHAPE, draw, optimum
from benchmarks.harness.rows import Row, row


def regularised(name: str, seed: int) -> tuple[bf.Result, float]:
    problem, rho = draw(name, seed)
    fit = bf.solve(problem, min(SHAPE), bf.solvers.NuclearNorm(), rng=seed, tol=1e-10, max_iter=20_000)
    return fit, optimum(problem, name, rho=rho)


def constrained(name: str, seed: int, box: bool) -> tuple[bf.Result, float]:
    problem = draw(name, seed)[0].penalized(None)
    radius = float(np.random.default_rng(seed).uniform(0.2, 0.8)) * RANK**0.5 * (SHAPE[0] * SHAPE[1]) ** 0.5
    bound = 0.5 if name == "logistic" else 0.5 * float(np.abs(problem.y).max())
    fit = bf.solve(problem, min(SHAPE), bf.solvers.SPG(radius, bound if box else None), rng=seed, tol=0, max_iter=5000)
    X = fit.matrix()
    excess = [np.linalg.norm(X, "nuc") / radius - 1] + ([np.abs(X).max() / bound - 1] if box else [])
    assert max(excess) <= 1e-8, excess
    return fit, optimum(problem, name, radius=radius, bound=bound if box else None)


METHODS: dict[tuple[str, str], Callable[[str, int], tuple[bf.Result, float]]] = {
    (" + ρ‖X‖_*", "NuclearNorm"): regularised,
    (", ‖X‖_* ≤ τ", "SPG, ball"): lambda name, seed: constrained(name, seed, box=False),
    (", ‖X‖_* ≤ τ, |Xᵢⱼ| ≤ α", "SPG, ball and box"): lambda name, seed: constrained(name, seed, box=True),
}


def run(seeds: int = 20) -> Iterator[Row]:
    for (limits, solver), solve in METHODS.items():
        for name in LOSSES:
            for seed in range(seeds):
                fit, best = solve(name, seed)
                numbers = {
                    "difference_to_cvxpy": (fit.objective - best) / best,
                    "iterations": fit.n_iter,
                    "seconds": fit.history.seconds[-1],
                    "status": fit.status.name,
                }
                yield row(name + limits, f"{SHAPE[0]} × {SHAPE[1]}, half observed", solver, draw=seed, **numbers)
