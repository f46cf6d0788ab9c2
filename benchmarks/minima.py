"""Quality of the minima: draws of small problems, compared with L-BFGS-B from the same start and with other starts.

A draw counts as worse if its objective is more than 1 % of F(0) − F_best above F_best, the minimum over all runs.
"""

from collections.abc import Callable, Iterator

import numpy as np
from scipy.optimize import minimize

import bifactor as bf
from benchmarks.harness.rows import Row, row

DRAWS, RANK, WORSE = 100, 3, 0.01


def gaussian(rng: np.random.Generator, ridge: bool) -> bf.Problem:
    """15 × 7 through as many random functionals as numbers in the factors and half as many again."""
    X = rng.standard_normal((15, RANK)) @ rng.standard_normal((RANK, 7))
    B = rng.standard_normal((90, 105))
    y = B @ X.ravel() + rng.standard_normal(90)
    return bf.Problem("squared", bf.operators.Linear(B, (15, 7)), y, penalty=bf.penalties.Ridge(1.0) if ridge else None)


def entries(rng: np.random.Generator, ridge: bool) -> bf.Problem:
    X = rng.standard_normal((40, RANK)) @ rng.standard_normal((RANK, 30)) + 0.5 * rng.standard_normal((40, 30))
    i, j = np.nonzero(rng.random(X.shape) < 0.4)
    penalty = bf.penalties.Ridge(1.0) if ridge else None
    return bf.Problem("squared", bf.operators.Entries(i, j, X.shape), X[i, j], penalty=penalty)


def full_labels(rng: np.random.Generator, ridge: bool) -> bf.Problem:
    X = 2 * rng.standard_normal((20, RANK)) @ rng.standard_normal((RANK, 15))
    y = np.where(rng.random(X.size) < 1 / (1 + np.exp(-X.ravel())), 1.0, -1.0)
    return bf.Problem("logistic", bf.operators.Full(X.shape), y, penalty=bf.penalties.Ridge(0.5))


def full_counts(rng: np.random.Generator, ridge: bool) -> bf.Problem:
    X = 0.5 * rng.standard_normal((20, RANK)) @ rng.standard_normal((RANK, 15))
    y = rng.poisson(np.exp(np.clip(X.ravel(), -5, 3))).astype(float)
    return bf.Problem("poisson", bf.operators.Full(X.shape), y, penalty=bf.penalties.Ridge(0.3))


FAMILIES: dict[str, Callable[[np.random.Generator, bool], bf.Problem]] = {
    "Gaussian 15×7": gaussian,
    "40 % of 40×30": entries,
    "labels 20×15": full_labels,
    "counts 20×15": full_counts,
}


def lbfgs(problem: bf.Problem, x: bf.factors.Factors) -> float:
    """F after L-BFGS-B from these factors."""
    m, width = problem.shape[0], x.width

    def function(v: np.ndarray) -> tuple[float, np.ndarray]:
        F = v.reshape(-1, width)
        point = problem.at(problem.kind.pair(F[:m].copy(), F[m:].copy()))
        return point.value, np.concatenate([point.gradient.left.ravel(), point.gradient.right.ravel()])

    first = np.concatenate([x.left.ravel(), x.right.ravel()])
    options = {"maxiter": 5000, "maxfun": 20000, "ftol": 1e-14, "gtol": 1e-9}
    return float(minimize(function, first, jac=True, method="L-BFGS-B", options=options).fun)


def found(problem: bf.Problem, seed: int) -> dict[str, float]:
    """The final objective of each method."""
    start = bf.inits.Spectral()(problem, RANK, np.random.default_rng(seed))
    given = bf.inits.Given(start.left, start.right)
    random = [bf.solve(problem, RANK, bf.solvers.PCG(), bf.inits.Random(), seed + k).objective for k in range(5)]
    solvers = {"RankContinuation": bf.solvers.RankContinuation(), "Race": bf.solvers.Race()}
    return {
        "default": bf.solve(problem, RANK, rng=seed).objective,
        "PCG, spectral start": bf.solve(problem, RANK, bf.solvers.PCG(), given, seed).objective,
        "L-BFGS-B, the same start": lbfgs(problem, start),
        "PCG, a random start": random[0],
        "PCG, best of 5 random starts": min(random),
        **{name: bf.solve(problem, RANK, solver, rng=seed).objective for name, solver in solvers.items()},
    }


def run(draws: int = DRAWS) -> Iterator[Row]:
    for name, make in FAMILIES.items():
        for ridge in (False, True) if make in (gaussian, entries) else (True,):
            excesses: dict[str, list[float]] = {}
            for seed in range(draws):
                problem = make(np.random.default_rng(seed), ridge)
                ends = found(problem, seed)
                best, zero = min(ends.values()), problem.objective(problem.zero(RANK))
                for solver, value in ends.items():
                    excesses.setdefault(solver, []).append((value - best) / (zero - best))
            for solver, excess in excesses.items():
                worse = np.array(excess) > WORSE
                data = f"{draws} draws{', ridge' if ridge else ''}"
                yield row(name, data, solver, worse=int(worse.sum()), worst=float(np.max(excess)))
