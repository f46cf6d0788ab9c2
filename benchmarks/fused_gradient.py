"""Value and both factor gradients: one fused pass against NumPy gather + SciPy CSR products; and an iteration of PCG.

138,000 × 27,000 with 20 M Zipf-distributed observations, rank 32: the size of a large public ratings table.
"""

import statistics
from typing import Any

import numpy as np
from scipy import sparse

import bifactor as bf
from benchmarks.measure import side_by_side, summary

SHAPE, SIZE, RANK = (138_000, 27_000), 20_000_000, 32
GATHER = 1 << 18


def zipf(n: int, size: int, rng: np.random.Generator) -> np.ndarray:
    """Indices below n, the k-th most popular with probability ∝ 1/k."""
    share = np.cumsum(1 / np.arange(1, n + 1))
    return rng.permutation(n)[np.searchsorted(share, share[-1] * rng.random(size))]


def numpy_and_scipy(S: sparse.csr_array, rows: np.ndarray, U: np.ndarray, V: np.ndarray) -> tuple[Any, ...]:
    """The same three results with general tools: gather in blocks that fit in cache, then two CSR products."""
    z = np.empty(S.nnz, dtype=U.dtype)
    for start in range(0, S.nnz, GATHER):
        part = slice(start, start + GATHER)
        z[part] = np.einsum("ij,ij->i", U[rows[part]], V[S.indices[part]])
    d = z - S.data
    G = sparse.csr_array((d, S.indices, S.indptr), shape=S.shape)
    return 0.5 * d @ d, G @ V, G.T @ U


def run(repeats: int = 5) -> list[dict[str, str]]:
    rng = np.random.default_rng(0)
    rows, cols = (zipf(n, SIZE, rng) for n in SHAPE)
    y = rng.standard_normal(SIZE)
    order = np.lexsort((cols, rows))
    rows, cols, y = rows[order].astype(np.int32), cols[order].astype(np.int32), y[order]
    indptr = np.concatenate(([0], np.cumsum(np.bincount(rows, minlength=SHAPE[0]))))
    table = []
    for dtype in (np.float64, np.float32):
        target = y.astype(dtype)
        S = sparse.csr_array((target, cols, indptr), shape=SHAPE)
        problem = bf.Problem(bf.losses.Squared(), bf.operators.Entries(rows, cols, SHAPE), target)
        U, V = (0.1 * rng.standard_normal((n, RANK)).astype(dtype) for n in SHAPE)
        ours, theirs = problem.value_and_products(U, V), numpy_and_scipy(S, rows, U, V)
        for a, b in zip(ours, theirs, strict=True):
            assert np.linalg.norm(a - b) <= 1e-3 * np.linalg.norm(b)
        start = bf.inits.Given(U, V)
        fit = bf.solve(problem, RANK, bf.solvers.PCG(), start, max_iter=2 * repeats, tol=0)
        seconds = side_by_side(
            {
                "fused": lambda p=problem, U=U, V=V: p.value_and_products(U, V),
                "general": lambda S=S, U=U, V=V: numpy_and_scipy(S, rows, U, V),
            },
            repeats,
        )
        fused, pcg = statistics.median(seconds["fused"]), np.diff(fit.history.seconds).tolist()
        table.append(
            {
                "dtype": dtype.__name__,
                "fused": summary(seconds["fused"]),
                "NumPy + SciPy": summary(seconds["general"]),
                "ratio of medians": f"{statistics.median(seconds['general']) / fused:.1f}×",
                "iteration of PCG": summary(pcg),
                "against fused": f"{statistics.median(pcg) / fused:.2f}×",
            }
        )
    return table
