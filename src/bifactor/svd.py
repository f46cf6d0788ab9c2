"""Leading singular pairs and eigenpairs of a lazy matrix, by restarted block Krylov iteration.

It is a block method, because one pass over the measurements then serves all r directions at once.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from bifactor.arrays import (
    HOST_ARRAY,
    Array,
    cast,
    column_norms,
    epsilon,
    gaussian,
    herm,
    hstack,
    orthonormal,
    thin_svd,
    to_device_of,
)
from bifactor.kernels.blas import gram, matmul
from bifactor.linear_map import LinearMap

OVERSAMPLE = 8
DEPTH, WARM_DEPTH, COLUMNS = 4, 2, 512
"""Blocks of a Krylov space, with and without good starting directions, and the columns above which there are fewer."""
SKETCH = 3
"""Blocks of the single Krylov space of a sketch."""
MAX_RESTARTS = 25
PASSES = 5
"""The largest number of times that a block is orthogonalised against the others."""

Pairs = tuple[Array, Array]
"""Left and right directions, as columns of any length, from which a search may start."""


def truncated_svd(
    G: LinearMap,
    rank: int,
    rng: np.random.Generator,
    tol: float = 1e-6,
    restarts: int = MAX_RESTARTS,
    start: Pairs | None = None,
) -> tuple[Array, Array, Array]:
    """The `rank` leading singular triplets (A, s, B) with G ≈ A diag(s) Bᴴ.

    Singular vectors are accurate to about `tol` relative to s₁ and the gaps; if `rank` exceeds min(m, n) of G,
    only min(m, n) triplets are returned. With `restarts=0` they are a sketch, by three products with
    GᴴG and one with G.
    """
    m, n = G.shape
    if m < n:
        B, s, A = truncated_svd(G.H, rank, rng, tol, restarts, None if start is None else start[::-1])
        return A, s, B
    first = None if start is None else start[1]
    if restarts or SKETCH * (rank + OVERSAMPLE) >= n:  # with few columns, all of them take no longer
        _, B = top_eigenpairs(G.normal, n, rank, G.dtype, rng, tol, restarts, first, G.like)
    else:
        B = _sketched(G, rank, rng, first)
    # One more product, so that small singular values do not lose accuracy in the squared Gram matrix.
    Q, R = orthonormal(G @ B)
    left, s, right = thin_svd(R)
    return matmul(Q, left[:, :rank]), s[:rank], matmul(B, herm(right[:rank]))


def truncated_eigh(
    G: LinearMap,
    rank: int,
    rng: np.random.Generator,
    tol: float = 1e-6,
    restarts: int = MAX_RESTARTS,
    sign: int = 1,
    start: Pairs | None = None,
) -> tuple[Array, Array]:
    """The `rank` algebraically largest eigenpairs (w, A) of ±(G + Gᴴ)/2, largest first."""

    def hermitian_part(Q: Array) -> Array:
        GQ, GhQ = G.products(Q, Q)
        return sign * (GQ + GhQ) / 2

    first = None if start is None else start[0]
    return top_eigenpairs(hermitian_part, G.shape[0], rank, G.dtype, rng, tol, max(restarts, 1), first, G.like)


def spectral_norm(G: LinearMap, rng: np.random.Generator, tol: float = 1e-3) -> float:
    """‖G‖₂."""
    return float(truncated_svd(G, 1, rng, tol)[1][0])


def search_columns(n: int, rank: int, sketch: bool = False) -> tuple[int, int, int]:
    """The columns of a block, and the columns on the shorter side n and on the longer side that a search holds.

    These are a Krylov space and its image, each next to its predecessor, and two blocks; or all of the shorter side.
    """
    block = min(n, rank + OVERSAMPLE)
    depth = SKETCH if sketch else DEPTH
    on_short = 4 * n if depth * block >= n else (4 * depth) * block
    return block, on_short, 3 * block if sketch else 4 * block


def top_eigenpairs(
    apply: Callable[[Array], Array],
    n: int,
    rank: int,
    dtype: Any,
    rng: np.random.Generator,
    tol: float,
    restarts: int,
    start: Array | None = None,
    like: Array = HOST_ARRAY,
) -> tuple[Array, Array]:
    """The largest eigenvalues of a Hermitian map on n-vectors, and their eigenvectors."""
    block = min(n, rank + OVERSAMPLE)
    tol = max(tol, 20 * float(np.finfo(dtype).eps))
    if DEPTH * block >= n:
        eye = to_device_of(np.eye(n, dtype=dtype), like)
        # In blocks, because the other side may be large.
        image = hstack(*(apply(eye[:, start : min(start + block, n)]) for start in range(0, n, block)))
        return _ritz(eye, image, min(rank, n))[:2]
    Q = _begun(rng, n, rank, dtype, start, like)
    AQ = apply(Q)
    for _ in range(restarts):
        depth = max(WARM_DEPTH, min(DEPTH, COLUMNS // block)) if start is None else WARM_DEPTH
        values, Q, AQ = _ritz(*_krylov(apply, Q, AQ, depth), block)
        # In double precision: for a Gram matrix these are fourth powers, which exceed the range of single precision.
        off = cast(AQ[:, :rank] - Q[:, :rank] * to_device_of(values[:rank], Q), np.result_type(dtype, np.float64))
        if column_norms(off).max() <= tol * float(np.abs(values).max()):
            break
    return values[:rank], Q[:, :rank]


def _sketched(G: LinearMap, rank: int, rng: np.random.Generator, start: Array | None) -> Array:
    """An orthonormal basis of approximately the leading `rank` right singular vectors, with some extra columns."""
    Q = _begun(rng, G.shape[1], rank, G.dtype, start, G.like)
    _, _, image = _ritz(*_krylov(G.normal, Q, G.normal(Q), SKETCH), rank + OVERSAMPLE)
    # GᴴG times the Ritz vectors, which is known, instead of these: a step of the power method at no cost.
    return orthonormal(image)[0]


def _begun(rng: np.random.Generator, n: int, rank: int, dtype: Any, start: Array | None, like: Array) -> Array:
    """The initial basis of a search: the start, and random columns to find directions that it lacks."""
    Q = to_device_of(gaussian(rng, (n, min(n, rank + OVERSAMPLE)), dtype), like)
    if start is not None:
        known = min(int(start.shape[1]), rank)
        Q = hstack(start[:, :known], Q[:, known:])
    return orthonormal(Q)[0]


def _krylov(apply: Callable[[Array], Array], Q: Array, AQ: Array, depth: int) -> tuple[Array, Array]:
    """An orthonormal basis K of the columns of Q, AQ, A²Q, …, `depth` blocks of them, and AK."""
    K, AK = Q, AQ
    for _ in range(depth - 1):
        Q = _orthonormal_against(K, AQ)
        AQ = apply(Q)
        K, AK = hstack(K, Q), hstack(AK, AQ)
    return K, AK


def _ritz(K: Array, AK: Array, count: int) -> tuple[Array, Array, Array]:
    values, vectors = np.linalg.eigh(gram(K, AK))
    top = np.ascontiguousarray(vectors[:, ::-1][:, :count])
    return values[::-1][:count].copy(), matmul(K, top), matmul(AK, top)


def _orthonormal_against(K: Array, Q: Array) -> Array:
    for done in range(PASSES):
        overlap = gram(K, Q)
        # Twice is enough (Giraud, Langou and Rozložník, 2005), unless K already spans the range: the rest of Q is then
        # rounding, and without a third time K would lose its orthogonality from restart to restart.
        if done >= 2 and np.max(np.abs(overlap)) <= 10 * epsilon(Q):
            break
        Q = orthonormal(Q - matmul(K, overlap))[0]
    return Q
