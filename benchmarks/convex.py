"""Convex solvers against CVXPY: 20 random 30 × 20 problems per loss and constraint.

`NuclearNorm` minimises f + ρ‖X‖_*; `SPG` minimises f over ‖X‖_* ≤ τ, and over |Xᵢⱼ| ≤ α too. τ is 0.2 to 0.8 of √(rmn),
and α half of the largest measurement, so that both are felt. That X is within 1e-8 of both limits is asserted.
"""

import statistics
from collections.abc import Callable
from typing import Any

import numpy as np

import bifactor as bf
from benchmarks.nuclear_norm import LOSSES, RANK, SHAPE, draw, optimum


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


METHODS: dict[str, Callable[[str, int], tuple[bf.Result, float]]] = {
    "NuclearNorm": regularised,
    "SPG, ball": lambda name, seed: constrained(name, seed, box=False),
    "SPG, ball and box": lambda name, seed: constrained(name, seed, box=True),
}


def run(seeds: int = 20) -> list[dict[str, Any]]:
    table = []
    for method, solve in METHODS.items():
        for name in LOSSES:
            differences, seconds, iterations, statuses = [], [], [], set()
            for seed in range(seeds):
                fit, best = solve(name, seed)
                seconds.append(fit.history.seconds[-1])
                differences.append((fit.objective - best) / best)
                iterations.append(fit.n_iter)
                statuses.add(fit.status.name)
            table.append(
                {
                    "solver": method,
                    "loss": name,
                    "largest |difference|": f"{max(map(abs, differences)):.1e}",
                    "ours above CVXPY's at most": f"{max(differences):.1e}",
                    "iterations, median": int(statistics.median(iterations)),
                    "seconds, median": f"{statistics.median(seconds):.2f}",
                    "ends": ", ".join(sorted(statuses)),
                }
            )
    return table
