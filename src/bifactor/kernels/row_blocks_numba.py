"""Small Hermitian matrices, one for each row of a factor, compiled for float32 and float64, on all cores.

A matrix is stored as its lower triangle, row by row: (0,0), (1,0), (1,1), (2,0), … The functions are those of
`row_blocks_reference`.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba.extending import register_jitable

from bifactor.arrays import Array
from bifactor.kernels.compile import compiled, loop_arguments, own, version
from bifactor.kernels.entries_numba import contiguous
from bifactor.kernels.entry_layout import EntryLayout
from bifactor.kernels.losses_reference import LossFunctions
from bifactor.kernels.threading import run, shares, threads_for

Pointwise = Callable[..., Any]


@cache
def _sums(pointwise: Pointwise) -> Any:
    stamp = version(pointwise) if own(pointwise) else 0

    def sums_pass(start, stop, outer, inner, y, weights, parameter, P, Q, B, rows, others, first, last, out):  # type: ignore[no-untyped-def]
        rank, width, zero = P.shape[1], B.shape[1], P.dtype.type(0)
        for tile in range(start.size):
            for t in range(start[tile], stop[tile]):
                row = rows[t]
                if row < first or row >= last:
                    continue
                i, j = outer[t], inner[t]
                z = zero
                for k in range(rank):
                    z += P[i, k] * Q[j, k]
                _, _, c = pointwise(z, y[t], parameter)
                weight = 1.0 + 0.0 * stamp
                if weights.size:
                    weight *= weights[t]
                q = weight * c
                other, mine, at = others[t], row - first, 0
                for k in range(width):
                    share = P.dtype.type(q * B[other, k])
                    for h in range(k + 1):
                        out[mine, at + h] += share * B[other, h]
                    at += k + 1

    return compiled(sums_pass, cache=own(pointwise))


def curvature_sums(
    layout: EntryLayout,
    loss: LossFunctions,
    y: Array,
    weights: Array,
    P: Array,
    Q: Array,
    B: Array,
    inner: bool,
    span: tuple[int, int],
) -> Array:
    """Σ q·bᴴb over the entries of each row of one side, b the rows of B that belong to the other side.

    q is w·ℓ″(z; y) with z = PQᵀ; `span` is the range of rows to compute.
    """
    P, Q, B = contiguous(P, Q, B)
    pointwise, parameter, y, weights = loop_arguments(loss, y, weights, P.dtype)
    first, last = span
    out = np.zeros((last - first, B.shape[1] * (B.shape[1] + 1) // 2), P.dtype)
    sides = (layout.inner, layout.outer) if inner else (layout.outer, layout.inner)
    fixed = (layout.outer, layout.inner, y, weights, parameter, P, Q, B, *sides)
    parts = threads_for(layout.size * out.shape[1])
    calls = [
        (start, stop, *fixed, low, high, out[low - first : high - first])
        for start, stop, low, high in layout.ranges(inner, first, last, parts)
    ]
    run(_sums(pointwise), calls)
    return out


# Rows of a triangle are taken as separate arrays: an index that starts at 0 is never negative, so that the compiler may
# use SIMD.


@register_jitable
def factorise(A, rank):  # type: ignore[no-untyped-def]
    """The Cholesky factor of a lower triangle, in place; a pivot that is not positive becomes infinite."""
    at = 0
    for j in range(rank):
        mine, above = A[at : at + j + 1], 0
        for k in range(j + 1):
            theirs, total = A[above : above + k + 1], mine[k]
            for h in range(k):
                total -= mine[h] * theirs[h]
            if k < j:
                mine[k] = total / theirs[k]
            else:
                mine[k] = np.sqrt(total) if total > 0 else np.inf
            above += k + 1
        at += j + 1


@register_jitable
def substitute(L, b, rank):  # type: ignore[no-untyped-def]
    """The solution of LLᵀx = b, in place of b."""
    at = 0
    for j in range(rank):
        mine, total = L[at : at + j + 1], b[j]
        for k in range(j):
            total -= mine[k] * b[k]
        b[j] = total / mine[j]
        at += j + 1
    for j in range(rank - 1, -1, -1):
        at -= j + 1
        mine = L[at : at + j + 1]
        b[j] /= mine[j]
        for k in range(j):
            b[k] -= mine[k] * b[j]


@register_jitable
def invert(L, Z, out, rank):  # type: ignore[no-untyped-def]
    """The inverse of LLᵀ in `out`, using Z = L⁻¹."""
    at = 0
    out[:] = 0
    for j in range(rank):
        given, mine, above = L[at : at + j + 1], Z[at : at + j + 1], 0
        mine[:] = 0
        for h in range(j):
            theirs, share = Z[above : above + h + 1], given[h]
            for k in range(h + 1):
                mine[k] -= share * theirs[k]
            above += h + 1
        pivot = 1 / given[j]
        for k in range(j):
            mine[k] *= pivot
        mine[j] = pivot
        above = 0
        for h in range(j + 1):
            theirs, share = out[above : above + h + 1], mine[h]
            for k in range(h + 1):
                theirs[k] += share * mine[k]
            above += h + 1
        at += j + 1


@compiled
def _invert(factor, out, rank):  # type: ignore[no-untyped-def]
    Z = np.empty_like(factor[0])
    for row in range(factor.shape[0]):
        invert(factor[row], Z, out[row], rank)


@compiled
def _factorise(packed, rank):  # type: ignore[no-untyped-def]
    for row in range(packed.shape[0]):
        factorise(packed[row], rank)


@compiled
def _substitute(factor, rows, rank):  # type: ignore[no-untyped-def]
    for row in range(rows.shape[0]):
        substitute(factor[row], rows[row], rank)


@compiled
def _times(packed, rows, out):  # type: ignore[no-untyped-def]
    rank = rows.shape[1]
    for row in range(rows.shape[0]):
        M, a, mine, at = packed[row], rows[row], out[row], 0
        for k in range(rank):
            total, own = M[at + k] * a[k], a[k]
            for h in range(k):
                total += M[at + h] * a[h]
                mine[h] += M[at + h] * own
            mine[k] = total
            at += k + 1


@compiled
def _moments(rows, packed, places, out):  # type: ignore[no-untyped-def]
    for row in range(rows.shape[0]):
        a, mine, at = rows[row], out[row], 0
        for k in range(rows.shape[1]):
            for h in range(k + 1):
                mine[at + h] = a[k] * a[h]
            at += k + 1
        M = packed[row]
        for t in range(places.size):
            mine[places[t]] += M[t]


@compiled
def _turn(packed, R, out):  # type: ignore[no-untyped-def]
    rank = R.shape[0]
    half = np.empty_like(R)
    for row in range(packed.shape[0]):
        M, mine = packed[row], out[row]
        half[:] = 0
        at = 0
        for k in range(rank):
            for h in range(k + 1):
                value = M[at + h]
                for c in range(rank):
                    half[k, c] += value * R[h, c]
                if h < k:
                    for c in range(rank):
                        half[h, c] += value * R[k, c]
            at += k + 1
        at = 0
        for k in range(rank):
            for h in range(k + 1):
                total = R.dtype.type(0)
                for c in range(rank):
                    total += R[c, k] * half[c, h]
                mine[at + h] = total
            at += k + 1


def cholesky(packed: Array, rank: int) -> Array:
    """The Cholesky factors of the matrices."""
    factor = np.array(packed)
    run(_factorise, [(factor[a:b], rank) for a, b in shares(len(packed), rank**3 / 6)])
    return factor


def inverse(factor: Array, rank: int) -> Array:
    """The inverses of the matrices, from their Cholesky factors."""
    out = np.empty_like(factor)
    run(_invert, [(factor[a:b], out[a:b], rank) for a, b in shares(len(factor), rank**3 / 3) if b > a])
    return out


def times(packed: Array, rows: Array) -> Array:
    """a·M for each row a of `rows`."""
    packed, rows = contiguous(packed, rows)
    found = np.zeros_like(rows)
    run(_times, [(packed[a:b], rows[a:b], found[a:b]) for a, b in shares(len(rows), rows.shape[1] ** 2)])
    return found


def moments(rows: Array, packed: Array, places: Array) -> Array:
    """aᵀa of every real row a, with M added at some places of the triangle; M has as many columns as places."""
    rows, packed = contiguous(rows, packed)
    found = np.empty((len(rows), rows.shape[1] * (rows.shape[1] + 1) // 2), rows.dtype)
    work = found.shape[1]
    run(_moments, [(rows[a:b], packed[a:b], places, found[a:b]) for a, b in shares(len(rows), work) if b > a])
    return found


def turned(packed: Array, R: Array) -> Array:
    """RᵀMR of every row."""
    packed, R = contiguous(packed, R.astype(packed.dtype))
    found = np.empty_like(packed)
    run(_turn, [(packed[a:b], R, found[a:b]) for a, b in shares(len(packed), 2 * len(R) ** 3) if b > a])
    return found


def log_determinants(factor: Array, rank: int) -> Array:
    """log det M of every row, from its Cholesky factor."""
    pivots = factor[:, np.arange(1, rank + 1) * np.arange(2, rank + 2) // 2 - 1]
    return 2 * np.log(pivots.astype(np.float64)).sum(axis=1)


def solve(factor: Array, rows: Array) -> Array:
    """For each row a of `rows`, the e with e·M = a, where M is given by its Cholesky factor."""
    rank, found = rows.shape[1], np.array(rows, dtype=factor.dtype, order="C")
    run(_substitute, [(factor[a:b], found[a:b], rank) for a, b in shares(len(rows), rank**2)])
    return found
