"""Other solvers on our problems."""

import time
import warnings
from typing import Any

import numpy as np
from scipy import sparse

import bifactor as bf
from benchmarks.harness.rows import library


class Reached(Exception):
    """Raised from inside a cost function to stop the clock."""


def complete(problem: bf.Problem, start: tuple[Any, ...], truth: tuple[Any, ...], goal: float, limit: float) -> Any:
    """Seconds of pymanopt's ConjugateGradient on FixedRankEmbedded from (u, s, vt) to an error of `goal`, or None.

    The gradient goes to it as a sparse matrix through the manifold's own projection: its conversion from a Euclidean
    gradient wants m×n arrays, and divides by zero where singular values are equal. The error is measured, off the
    clock, when the residual has fallen to the goal.
    """
    pymanopt = library("pymanopt")
    from pymanopt.manifolds import FixedRankEmbedded

    rows, cols, y = problem.operator.rows, problem.operator.cols, problem.y
    pattern = sparse.csr_array((np.arange(1.0, y.size + 1), (rows, cols)), shape=problem.shape)
    order = pattern.data.astype(np.int64) - 1
    rows, cols, y = rows[order], cols[order], y[order]
    manifold = FixedRankEmbedded(*problem.shape, start[1].size)
    target = 0.5 * (goal * np.linalg.norm(y)) ** 2
    off_the_clock = 0.0

    def residual(u: Any, s: Any, vt: Any) -> Any:
        return np.einsum("ij,ij->i", (u * s)[rows], vt.T[cols]) - y

    @pymanopt.function.numpy(manifold)
    def cost(u: Any, s: Any, vt: Any) -> float:
        nonlocal off_the_clock
        r = residual(u, s, vt)
        value = 0.5 * float(r @ r)
        if value <= target:
            paused = time.perf_counter()
            if bf.metrics.relative_error(u * s, vt.T, *truth) <= goal:
                raise Reached
            off_the_clock += time.perf_counter() - paused
        return value

    @pymanopt.function.numpy(manifold)
    def gradient(u: Any, s: Any, vt: Any) -> Any:
        r = residual(u, s, vt)
        return manifold.projection((u, s, vt), sparse.csr_array((r, pattern.indices, pattern.indptr), problem.shape))

    seconds = until_reached(pymanopt.Problem(manifold, cost, riemannian_gradient=gradient), start, limit)
    return None if seconds is None else seconds - off_the_clock


def until_reached(problem: Any, start: tuple[Any, ...], limit: float) -> float | None:
    """Seconds until the cost function says `Reached`; None if the limit is reached first."""
    from pymanopt.manifolds.fixed_rank import _FixedRankPoint
    from pymanopt.optimizers import ConjugateGradient

    optimizer = ConjugateGradient(
        max_time=limit, max_iterations=10**9, min_gradient_norm=0.0, min_step_size=1e-300, verbosity=0
    )
    started = time.perf_counter()
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            optimizer.run(problem, initial_point=_FixedRankPoint(*start))
    except Reached:
        return time.perf_counter() - started
    return None
