"""Noiselet sensing from a random start: iterations to 1e-6, and one iteration against its bare parts.

The bare parts are two transforms and three products with thin matrices, in the order an iteration needs them: once with
NumPy's own multithreaded BLAS, whose idle threads get in the way of the transforms, and once with the library's split
products. What an iteration adds is two passes of the random permutation, sampling, the loss and the loop.
"""

import time
from typing import Any

import numpy as np

import bifactor as bf
from benchmarks.harness.measure import in_fresh_process
from benchmarks.harness.rows import Row, row
from bifactor import kernels
from bifactor.kernels import blas
from bifactor.kernels.threading import blas_at_most

RANK = 50


def sensing(shape: tuple[int, int], oversampling: int, seed: int) -> tuple[bf.Problem, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    U, V = (rng.standard_normal((n, RANK)) for n in shape)
    scale = np.sum((U.T @ U) * (V.T @ V)) ** 0.25
    U, V = U / scale, V / scale  # ‖X*‖_F = 1, as in the paper
    operator = bf.operators.Noiselet(shape, oversampling * max(shape) * RANK, rng)
    return bf.Problem(bf.losses.Squared(), operator, operator.forward(U, V)), U, V


def describe(shape: tuple[int, int], oversampling: int) -> str:
    size = f"{shape[0]}²" if shape[0] == shape[1] else f"{shape[0]} × {shape[1]}"
    return f"noiselets {size}, r = {RANK}, C = {oversampling}"


def solve(shape: tuple[int, int], oversampling: int, max_iter: int) -> list[Row]:
    problem, U, V = sensing(shape, oversampling, 0)

    def recovered(t: int, state: Any) -> bool:
        return t % 5 == 0 and bf.metrics.relative_error(state.U, state.V, U, V) <= 1e-6

    solver = bf.solvers.BFGD(bf.steps.Backtracking())
    fit = bf.solve(problem, RANK, solver, bf.inits.Random(), 1, max_iter=max_iter, tol=0, callback=recovered)
    error = bf.metrics.relative_error(fit.U, fit.V, U, V)
    numbers = {"iterations": fit.n_iter, "seconds": fit.history.seconds[-1], "error": error}
    data = describe(shape, oversampling)
    parts = [
        row("least squares, one iteration", data, name, draw=k, seconds=s)
        for name, seconds in iteration(problem, fit).items()
        for k, s in enumerate(seconds)
    ]
    return [row("least squares", data, "BFGD, backtracking", **numbers), *parts]


def iteration(problem: bf.Problem, fit: bf.Result, rounds: int = 5) -> dict[str, list[float]]:
    """Seconds of an iteration inside `solve`, and of its bare parts in sequence, with both kinds of products."""
    X = np.empty(problem.shape)
    flat = X.reshape(-1)

    def parts(product: Any) -> float:
        X[:] = 1.0
        started = time.perf_counter()
        product(fit.U, fit.V.T, X)
        kernels.get("transforms", flat, flat.size).walsh_hadamard(flat)
        kernels.get("transforms", flat, flat.size).walsh_hadamard(flat)
        product(X, fit.V)
        product(X.T, fit.U)
        return time.perf_counter() - started

    solver, start = bf.solvers.BFGD(bf.steps.Constant(1e-3)), bf.inits.Given(fit.U, fit.V)
    whole, numpy, split = [], [], []
    for _ in range(rounds):
        time.sleep(0.1)  # until the threads of NumPy's BLAS have gone to sleep
        whole.extend(np.diff(bf.solve(problem, RANK, solver, start, max_iter=8, tol=0).history.seconds).tolist())
        with blas_at_most(1):
            split.extend(parts(blas.matmul) for _ in range(8))
        numpy.extend(parts(np.matmul) for _ in range(8))
    return {"BFGD in solve": whole, "bare parts, NumPy's BLAS": numpy, "bare parts, split products": split}


def small() -> list[Row]:
    return solve((1024, 1024), 10, 500)


def large() -> list[Row]:
    return solve((2048, 4096), 3, 20)


def run() -> list[Row]:
    return [*in_fresh_process(small), *in_fresh_process(large)]
