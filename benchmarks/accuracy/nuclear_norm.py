"""A ridge on the factors against the nuclear norm itself: 20 random 30 × 20 problems per loss, solved by CVXPY.

Half the entries are observed and the factors have all 20 columns. The gap is what `Result.certificate` guarantees.
"""

from collections.abc import Iterator

import numpy as np

import bifactor as bf
from benchmarks.harness.rows import Row, library, row, timed

SHAPE, RANK = (30, 20), 3
LOSSES = {"squared": bf.losses.Squared(), "logistic": bf.losses.Logistic(), "huber": bf.losses.Huber(1.0)}


def draw(name: str, seed: int) -> tuple[bf.Problem, float]:
    rng = np.random.default_rng(seed)
    m, n = SHAPE
    X = rng.standard_normal((m, RANK)) @ rng.standard_normal((RANK, n))
    rows, cols = np.nonzero(rng.random(SHAPE) < 0.5)
    y = X[rows, cols] + 0.3 * rng.standard_t(3, rows.size)
    y = np.sign(y) if name == "logistic" else y
    problem = bf.Problem(LOSSES[name], bf.operators.Entries(rows, cols, SHAPE), y)
    G = problem.gradient_at_zero() @ np.eye(n)
    rho = float(rng.uniform(0.05, 0.4) * np.linalg.norm(G, 2))
    return problem.penalized(bf.penalties.Ridge(rho)), rho


def optimum(
    problem: bf.Problem, name: str, rho: float = 0.0, radius: float | None = None, bound: float | None = None
) -> float:
    """The least f + ρ‖X‖_* over ‖X‖_* ≤ radius and |Xᵢⱼ| ≤ bound, by CVXPY."""
    cvxpy = library("cvxpy")

    op, y = problem.operator, problem.y
    X = cvxpy.Variable(SHAPE)
    z = X[op.rows, op.cols]
    f = {
        "squared": lambda: 0.5 * cvxpy.sum_squares(z - y),
        "logistic": lambda: cvxpy.sum(cvxpy.logistic(-cvxpy.multiply(y, z))),
        "huber": lambda: 0.5 * cvxpy.sum(cvxpy.huber(z - y, 1.0)),
    }[name]()
    norm = cvxpy.normNuc(X)
    limits = ([] if radius is None else [norm <= radius]) + ([] if bound is None else [cvxpy.abs(X) <= bound])
    return float(cvxpy.Problem(cvxpy.Minimize(f + rho * norm), limits).solve(solver="CLARABEL"))


def ours(problem: bf.Problem, seed: int, best: float) -> Row:
    fits: list[bf.Result] = []
    clock = timed(lambda: fits.append(bf.solve(problem, min(SHAPE), bf.solvers.Newton(), rng=seed, tol=1e-12)))
    fit = fits[0]
    return {
        "difference_to_cvxpy": (fit.objective - best) / best,
        "certified_gap": fit.certificate.gap / fit.objective,
        "certified_optimal": bool(fit.certificate.optimal(1e-5)),
        "rank": int(np.sum(np.linalg.svd(fit.matrix(), compute_uv=False) > 1e-6)),
        "seconds": clock["seconds"],
    }


def run(seeds: int = 20) -> Iterator[Row]:
    data = f"{SHAPE[0]} × {SHAPE[1]}, half observed"
    for name in LOSSES:
        for seed in range(seeds):
            problem, rho = draw(name, seed)
            best: list[float] = []
            clock = timed(lambda p=problem, n=name, r=rho, b=best: b.append(optimum(p, n, r)))
            yield row(f"{name} + ridge", data, "Newton", draw=seed, **ours(problem, seed, best[0]))
            yield row(f"{name} + ridge", data, "CVXPY, nuclear norm", draw=seed, seconds=clock["seconds"])
