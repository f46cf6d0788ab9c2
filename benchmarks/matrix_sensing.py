"""Noiselet sensing from a random start: iterations to 1e-6, and one iteration against its bare parts.

The bare parts are two transforms and three products of an m×n with a thin matrix, on the same arrays.
"""

import statistics
from typing import Any

import numpy as np

import bifactor as bf
from benchmarks.measure import in_fresh_process, side_by_side
from bifactor import kernels

RANK = 50


def sensing(shape: tuple[int, int], oversampling: int, seed: int) -> tuple[bf.Problem, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    U, V = (rng.standard_normal((n, RANK)) for n in shape)
    scale = np.sum((U.T @ U) * (V.T @ V)) ** 0.25
    U, V = U / scale, V / scale  # ‖X*‖_F = 1, as in the paper
    operator = bf.operators.Noiselet(shape, oversampling * max(shape) * RANK, rng)
    return bf.Problem(bf.losses.Squared(), operator, operator.forward(U, V)), U, V


def solve(shape: tuple[int, int], oversampling: int, max_iter: int) -> dict[str, Any]:
    problem, U, V = sensing(shape, oversampling, 0)

    def recovered(t: int, state: Any) -> bool:
        return t % 5 == 0 and bf.metrics.relative_error(state.U, state.V, U, V) <= 1e-6

    solver = bf.solvers.BFGD(bf.steps.Backtracking())
    fit = bf.solve(problem, RANK, solver, bf.inits.Random(), 1, max_iter=max_iter, tol=0, callback=recovered)
    bare, whole = iteration(problem, solver, fit)
    return {
        "shape": f"{shape[0]}×{shape[1]}",
        "C": oversampling,
        "iterations": fit.n_iter,
        "seconds": f"{fit.history.seconds[-1]:.1f}",
        "error": f"{bf.metrics.relative_error(fit.U, fit.V, U, V):.1e}",
        "one iteration": f"{1e3 * whole:.1f} ms",
        "bare parts": f"{1e3 * bare:.1f} ms",
        "ratio": f"{whole / bare:.2f}",
    }


def iteration(problem: bf.Problem, solver: bf.solvers.BFGD, fit: bf.Result) -> tuple[float, float]:
    X = np.empty(problem.shape)
    flat = X.reshape(-1)

    def parts() -> None:
        np.matmul(fit.U, fit.V.T, out=X)
        kernels.transforms().walsh_hadamard(flat)
        kernels.transforms().walsh_hadamard(flat)
        X @ fit.V
        X.T @ fit.U

    plain = bf.solvers.BFGD(bf.steps.Constant(1e-3))
    state = plain.init(problem, fit.U, fit.V)
    seconds = side_by_side({"parts": parts, "whole": lambda: plain.step(problem, state)}, 25)
    return statistics.median(seconds["parts"]), statistics.median(seconds["whole"])


def small() -> dict[str, Any]:
    return solve((1024, 1024), 10, 500)


def large() -> dict[str, Any]:
    return solve((2048, 4096), 3, 20)


def run() -> list[dict[str, Any]]:
    return [in_fresh_process(small), in_fresh_process(large)]
