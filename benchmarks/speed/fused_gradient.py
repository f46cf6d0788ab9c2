"""Value and both factor gradients: one fused pass against NumPy gather + SciPy CSR products; and an iteration of PCG.

138,000 × 27,000 with 20 M Zipf-distributed observations, rank 32: the size of a large public ratings table.
"""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import numpy as np
from scipy import sparse

import bifactor as bf
from benchmarks.harness.measure import in_turns
from benchmarks.harness.one_pass import value_and_gradient
from benchmarks.harness.rows import Case, Row, median, row, timed

SHAPE, SIZE, RANK = (138_000, 27_000), 20_000_000, 32
GATHER = 1 << 18
ITERATIONS = 5


def zipf(n: int, size: int, rng: np.random.Generator) -> np.ndarray:
    """Indices below n, the k-th most popular with probability ∝ 1/k."""
    share = np.cumsum(1 / np.arange(1, n + 1))
    return rng.permutation(n)[np.searchsorted(share, share[-1] * rng.random(size))]


@lru_cache(maxsize=1)
def triples() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sorted by rows, as CSR wants them. Kept: 320 MB, and slow to make."""
    rng = np.random.default_rng(0)
    rows, cols = (zipf(n, SIZE, rng) for n in SHAPE)
    y = rng.standard_normal(SIZE)
    order = np.argsort(rows * SHAPE[1] + cols)
    return rows[order].astype(np.int32), cols[order].astype(np.int32), y[order]


def instance(dtype: type) -> tuple[bf.Problem, np.ndarray, np.ndarray]:
    rows, cols, y = triples()
    problem = bf.Problem(bf.losses.Squared(), bf.operators.Entries(rows, cols, SHAPE), y.astype(dtype))
    rng = np.random.default_rng(1)
    U, V = (0.1 * rng.standard_normal((n, RANK)).astype(dtype) for n in SHAPE)
    return problem, U, V


def numpy_and_scipy(S: sparse.csr_array, rows: np.ndarray, U: np.ndarray, V: np.ndarray) -> tuple[Any, ...]:
    """The same three results with general tools: gather in blocks that fit in cache, then two CSR products."""
    z = np.empty(S.nnz, dtype=U.dtype)
    for start in range(0, S.nnz, GATHER):
        part = slice(start, start + GATHER)
        z[part] = np.einsum("ij,ij->i", U[rows[part]], V[S.indices[part]])
    d = z - S.data
    G = sparse.csr_array((d, S.indices, S.indptr), shape=S.shape)
    return 0.5 * d @ d, G @ V, G.T @ U


def iterations(problem: bf.Problem, U: np.ndarray, V: np.ndarray, count: int = ITERATIONS) -> list[float]:
    """Seconds of each iteration of PCG inside `solve`."""
    fit = bf.solve(problem, RANK, bf.solvers.PCG(), bf.inits.Given(U, V), max_iter=count, tol=0)
    return np.diff(fit.history.seconds).tolist()


def describe(dtype: type) -> str:
    return f"{SHAPE[0]:,} × {SHAPE[1]:,}, 20 M entries, r = {RANK}, {dtype.__name__}"


def gradients(dtype: type, repeats: int) -> list[Row]:
    problem, U, V = instance(dtype)
    rows, cols, y = triples()
    indptr = np.concatenate(([0], np.cumsum(np.bincount(rows, minlength=SHAPE[0]))))
    S = sparse.csr_array((y.astype(dtype), cols, indptr), shape=SHAPE)
    ours, theirs = value_and_gradient(problem, U, V), numpy_and_scipy(S, rows, U, V)
    for a, b in zip(ours, theirs, strict=True):
        assert np.linalg.norm(a - b) <= 1e-3 * np.linalg.norm(b)
    candidates = {
        "fused value and gradient": lambda: value_and_gradient(problem, U, V),
        "NumPy gather + SciPy CSR": lambda: numpy_and_scipy(S, rows, U, V),
    }
    seconds = iterations(problem, U, V, 2 * repeats)  # not in turns with the others, so without a `draw` to pair
    pcg = [row("least squares", describe(dtype), "one PCG iteration", seconds=s) for s in seconds]
    return [*in_turns("least squares", describe(dtype), candidates, repeats), *pcg]


def prepare(dtype: type, whole: bool) -> Callable[[], Row]:
    problem, U, V = instance(dtype)
    if whole:
        return lambda: {"seconds": median(iterations(problem, U, V)), "iterations": 1}
    return lambda: {"seconds": median(timed(lambda: value_and_gradient(problem, U, V))["seconds"] for _ in range(5))}


CASES = [
    Case("least squares", describe(dtype), solver, partial(prepare, dtype, whole))
    for dtype in (np.float64, np.float32)
    for solver, whole in (("fused value and gradient", False), ("one PCG iteration", True))
]


def run(repeats: int = 5) -> list[Row]:
    return [row for dtype in (np.float64, np.float32) for row in gradients(dtype, repeats)]
