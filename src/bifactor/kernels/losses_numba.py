"""A loss and its derivatives at many measurements, in one pass on all cores.

Empty `weights` mean ones and an empty `z2` means zeros. Sums are taken in double precision for any dtype.
Each thread gets its own slices and counts from 0: if a loop starts elsewhere, numba allows for negative indices and the
compiler does not use SIMD (measured: three times slower).
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from bifactor.arrays import Array
from bifactor.kernels.compile import compiled, loop_arguments, own, version
from bifactor.kernels.losses_reference import LossFunctions
from bifactor.kernels.memory import empty
from bifactor.kernels.sparse_table import SparseTable
from bifactor.kernels.threading import run, shares

Pointwise = Callable[..., Any]


BLOCK = 1024
"""The number of values that are stored before they are summed.

A loop that sums and writes to arrays is compiled twice, for arrays that may overlap and for those that do not, and the
two sum in different orders. So the last bits depended on the addresses of arrays (in 98 of 700 small fits)."""


@cache
def _evaluate(pointwise: Pointwise) -> Any:
    stamp = version(pointwise) if own(pointwise) else 0

    def loss_pass(z, y, weights, slope, parameter):  # type: ignore[no-untyped-def]
        total, values = 0.0 * stamp, np.empty(BLOCK)
        for start in range(0, z.size, BLOCK):
            block = slice(start, start + BLOCK)
            zs, ys, ws, ds = z[block], y[block], weights[block], slope[block]
            for t in range(zs.size):
                v, d, _ = pointwise(zs[t], ys[t], parameter)
                if ws.size:
                    v *= ws[t]
                    d *= ws[t]
                values[t] = v
                ds[t] = d
            for t in range(zs.size):
                total += values[t]
        return total

    # See `entries_numba._fused`.
    return compiled(loss_pass, cache=own(pointwise))


def evaluate(loss: LossFunctions, z: Array, y: Array, weights: Array) -> tuple[float, Array]:
    """Σ w·ℓ(z; y) and w·ℓ′(z; y)."""
    z = np.ascontiguousarray(z)
    pointwise, parameter, y, weights = loop_arguments(loss, y, weights, z.dtype)
    slope = empty(z.size, z.dtype)
    return float(sum(run_shared(_evaluate(pointwise), (z, y, weights, slope), parameter))), slope


@cache
def _advance(pointwise: Pointwise) -> Any:
    stamp = version(pointwise) if own(pointwise) else 0

    def advance_pass(z, z1, z2, y, weights, slope, moved, parameter, a):  # type: ignore[no-untyped-def]
        total, values = 0.0 * stamp, np.empty(BLOCK)
        for start in range(0, z.size, BLOCK):
            block = slice(start, start + BLOCK)
            zs, firsts, seconds, to = z[block], z1[block], z2[block], moved[block]
            ys, ws, ds = y[block], weights[block], slope[block]
            for t in range(zs.size):
                point = zs[t] + a * firsts[t]
                if seconds.size:
                    point += a * a * seconds[t]
                to[t] = point
                v, d, _ = pointwise(to[t], ys[t], parameter)  # as stored, so that all three results are consistent
                if ws.size:
                    v *= ws[t]
                    d *= ws[t]
                values[t] = v
                ds[t] = d
            for t in range(zs.size):
                total += values[t]
        return total

    return compiled(advance_pass, cache=own(pointwise))


def advance(
    loss: LossFunctions, z: Array, z1: Array, z2: Array, y: Array, weights: Array, a: float
) -> tuple[float, Array, Array]:
    """Σ w·ℓ(z(a); y), w·ℓ′(z(a); y) and z(a) = z + a·z₁ + a²·z₂: `evaluate` at z(a)."""
    z, z1, z2 = (np.ascontiguousarray(part) for part in (z, z1, z2))
    pointwise, parameter, y, weights = loop_arguments(loss, y, weights, z.dtype)
    slope, moved = empty(z.size, z.dtype), empty(z.size, z.dtype)
    arrays = (z, z1, z2, y, weights, slope, moved)
    return float(sum(run_shared(_advance(pointwise), arrays, parameter, float(a)))), slope, moved


@cache
def _line(pointwise: Pointwise) -> Any:
    stamp = version(pointwise) if own(pointwise) else 0

    def line_pass(z, z1, z2, y, weights, parameter, a):  # type: ignore[no-untyped-def]
        value, first, second = 0.0 * stamp, 0.0, 0.0
        for t in range(z.size):
            point, speed, bend, weight = z[t] + a * z1[t], np.float64(z1[t]), 0.0, 1.0
            if z2.size:
                bend = 2.0 * z2[t]
                speed += a * bend
                point += 0.5 * a * a * bend
            if weights.size:
                weight *= weights[t]
            v, d, c = pointwise(point, y[t], parameter)
            value += weight * v
            first += weight * d * speed
            second += weight * (c * speed * speed + d * bend)
        return value, first, second

    return compiled(line_pass, cache=own(pointwise))


def line(
    loss: LossFunctions, z: Array, z1: Array, z2: Array, y: Array, weights: Array, a: float
) -> tuple[float, float, float]:
    """φ(a) = Σ w·ℓ(z(a); y) with z(a) = z + a·z₁ + a²·z₂, and its derivatives φ′(a) and φ″(a).

    φ′ = Σ w·ℓ′·(z₁ + 2a·z₂), φ″ = Σ w·[ℓ″·(z₁ + 2a·z₂)² + 2ℓ′·z₂].
    """
    pointwise, parameter, y, weights = loop_arguments(loss, y, weights, z.dtype)
    arrays = (np.ascontiguousarray(z), np.ascontiguousarray(z1), np.ascontiguousarray(z2), y, weights)
    parts = run_shared(_line(pointwise), arrays, parameter, float(a))
    value, first, second = (float(sum(part)) for part in zip(*parts, strict=True))
    return value, first, second


@compiled
def _quartic(z, z1, z2, y, weights):  # type: ignore[no-untyped-def]
    c0, c1, c2, c3, c4 = 0.0, 0.0, 0.0, 0.0, 0.0
    for t in range(z.size):
        d, s, weight = np.float64(z[t]) - y[t], np.float64(z1[t]), 1.0
        if weights.size:
            weight *= weights[t]
        c0 += weight * d * d
        c1 += weight * d * s
        c2 += weight * s * s
        if z2.size:
            b = 2.0 * z2[t]
            c2 += weight * d * b
            c3 += weight * s * b
            c4 += weight * b * b
    return 0.5 * c0, c1, 0.5 * c2, 0.5 * c3, 0.125 * c4


def quartic(z: Array, z1: Array, z2: Array, y: Array, weights: Array) -> Array:
    """c₀ … c₄ with Σ w·½(z + a·z₁ + a²·z₂ − y)² = c₀ + c₁a + c₂a² + c₃a³ + c₄a⁴ for every a."""
    z, z1, z2 = (np.ascontiguousarray(part) for part in (z, z1, z2))
    arrays = (z, z1, z2, np.ascontiguousarray(y, z.dtype), np.ascontiguousarray(weights, z.dtype))
    return np.array([sum(part) for part in zip(*run_shared(_quartic, arrays), strict=True)])


@compiled
def _chord(z, there, z2, z1, a):  # type: ignore[no-untyped-def]
    for t in range(z.size):
        z1[t] = (there[t] - z[t]) / a - a * z2[t]


def chord(z: Array, there: Array, z2: Array, a: float) -> Array:
    """z₁ = (z(a) − z)/a − a·z₂, where `there` is z(a) = z + a·z₁ + a²·z₂."""
    z, there, z2 = (np.ascontiguousarray(part) for part in (z, there, z2))
    z1 = empty(z.size, z.dtype)
    run_shared(_chord, (z, there, z2, z1), z.dtype.type(a))
    return z1


def run_shared(kernel: Any, arrays: tuple[Array, ...], *settings: Any) -> list[Any]:
    """The kernel on each thread's slices of the arrays; a slice of an empty one is empty."""
    cuts = shares(arrays[0].size)
    return run(kernel, [(*(array[start:stop] for array in arrays), *settings) for start, stop in cuts])


# A loss and its derivatives at all cells of some rows.
#
# All values of a row, stored or not, are written to an array, so that one loop without branches handles all its cells,
# with SIMD.

TILE = 1024
"""The number of cells whose losses are stored before they are summed; see `BLOCK`."""


@cache
def _derivatives(pointwise: Pointwise, weighted: bool, bent: bool) -> Any:
    """`weighted` says whether cells have their own weights, and `bent` whether the curvature is needed."""
    stamp = version(pointwise) if own(pointwise) else 0

    def cells_pass(Z, C, first, indptr, cols, y, own, rest, rows, parameter, totals):  # type: ignore[no-untyped-def]
        n = Z.shape[1]
        ys, ws, values = np.full(n, rest), np.empty(n if weighted else 0, Z.dtype), np.empty(TILE, Z.dtype)
        for i in range(Z.shape[0]):
            start, stop = indptr[first + i], indptr[first + i + 1]
            weight = rows[first + i]
            for t in range(start, stop):
                ys[cols[t]] = y[t]
            if weighted:
                ws[:] = weight
                for t in range(start, stop):
                    ws[cols[t]] = own[t]
            total = 0.0 * stamp
            for low in range(0, n, TILE):
                zs, known = Z[i, low : low + TILE], ys[low : low + TILE]
                given, bends = ws[low : low + TILE], C[i if bent else 0, low : low + TILE]
                for t in range(zs.size):
                    v, d, c = pointwise(zs[t], known[t], parameter)
                    w = given[t] if weighted else weight
                    values[t] = w * v
                    zs[t] = w * d
                    if bent:
                        bends[t] = w * c
                for t in range(zs.size):
                    total += values[t]
            totals[i] = total
            for t in range(start, stop):
                ys[cols[t]] = rest

    return compiled(cells_pass, cache=own(pointwise))


def derivatives(loss: LossFunctions, sheet: SparseTable, first: int, Z: Array, C: Array) -> Array:
    """Σ w·ℓ(z; y) of each row; w·ℓ′(z; y) is written to Z, and w·ℓ″(z; y) to C, unless it has no rows."""
    totals, bent = np.empty(len(Z)), len(C) > 0
    numbers = sheet.dtype.type(sheet.rest), sheet.row_weights, Z.dtype.type(loss.parameter(Z.dtype))
    kernel = _derivatives(loss.pointwise, sheet.own.size > 0, bent)
    kernel(Z, C if bent else Z, first, sheet.indptr, sheet.cols, sheet.y, sheet.own, *numbers, totals)
    return totals
