"""The best row of a factor for its known entries while the other factor is fixed: Newton's method in each row.

Compiled for float32 and float64, on all cores; the same function as in `rows_reference`. Each row has its own step
lengths and stopping test, so rows do not delay each other. All sums are taken in double precision.
"""

from collections.abc import Callable
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
from numba.extending import register_jitable

from bifactor.arrays import Array
from bifactor.kernels.compile import compiled, loop_arguments, own, version
from bifactor.kernels.losses_reference import LossFunctions
from bifactor.kernels.rows_reference import DECREASE, FLOOR, NEGLIGIBLE_DECREASE, ROUNDING, SHORTEST, STEPS, VISIBLE
from bifactor.kernels.threading import run, threads_for

Pointwise = Callable[..., Any]


@register_jitable
def _add(q, places, V, block):  # type: ignore[no-untyped-def]
    """Add Σ q·vvᵀ to the upper triangle of a block, four entries at a time: it is loaded and stored less often."""
    rank, first, t = block.shape[0], V.shape[1] - block.shape[0], 0
    while t + 4 <= places.size:
        a, b = V[places[t], first:], V[places[t + 1], first:]
        c, d = V[places[t + 2], first:], V[places[t + 3], first:]
        for k in range(rank):
            mine, e, f, g, h = block[k, k:], a[k:], b[k:], c[k:], d[k:]
            x, y, z, w = q[t] * e[0], q[t + 1] * f[0], q[t + 2] * g[0], q[t + 3] * h[0]
            for s in range(rank - k):
                mine[s] += x * e[s] + y * f[s] + z * g[s] + w * h[s]
        t += 4
    for rest in range(t, places.size):
        a = V[places[rest], first:]
        for k in range(rank):
            mine, e, x = block[k, k:], a[k:], q[rest] * a[k]
            for s in range(rank - k):
                mine[s] += x * e[s]


@register_jitable
def _eliminate(block, ridge):  # type: ignore[no-untyped-def]
    """LDLᵀ of a block and the ridge in place of its upper triangle: D and DLᵀ.

    Multiples of the rows above are subtracted from each row, four at a time. Rows are long, which suits SIMD.
    """
    rank, trace = block.shape[0], 0.0
    for k in range(rank):
        trace += block[k, k]
    for j in range(rank):
        mine, k = block[j, j:], 0
        lift = FLOOR * trace + ridge[j]
        mine[0] += lift if lift > 0 else 1.0
        while k + 4 <= j:
            p, q, r, s = block[k, j:], block[k + 1, j:], block[k + 2, j:], block[k + 3, j:]
            a, b = p[0] / block[k, k], q[0] / block[k + 1, k + 1]
            c, d = r[0] / block[k + 2, k + 2], s[0] / block[k + 3, k + 3]
            for h in range(rank - j):
                mine[h] -= a * p[h] + b * q[h] + c * r[h] + d * s[h]
            k += 4
        while k < j:
            p = block[k, j:]
            a = p[0] / block[k, k]
            for h in range(rank - j):
                mine[h] -= a * p[h]
            k += 1
        if not mine[0] > 0:
            mine[0] = np.inf


@register_jitable
def _factorise(block, whole, q, places, V, ridge):  # type: ignore[no-untyped-def]
    """The eliminated block for `_newton`: the unknown part of a form, the entries and the ridge."""
    first = V.shape[1] - block.shape[0]
    block[:] = whole[first:, first:]
    _add(q, places, V, block)
    _eliminate(block, ridge)


@register_jitable
def _newton(slope, block, row, ridge, step):  # type: ignore[no-untyped-def]
    """Add the ridge, and find the Newton step with the result of `_factorise`; return the predicted decrease."""
    rank, first, promised = slope.size, row.size - slope.size, 0.0
    for k in range(rank):
        slope[k] += ridge[k] * row[first + k]
        step[k] = slope[k]
    for k in range(rank):
        mine, below, a = block[k, k + 1 :], step[k + 1 :], step[k] / block[k, k]
        for h in range(below.size):
            below[h] -= a * mine[h]
    for k in range(rank - 1, -1, -1):
        mine, below, total = block[k, k + 1 :], step[k + 1 :], step[k]
        for h in range(below.size):
            total -= mine[h] * below[h]
        step[k] = total / block[k, k]
        promised += slope[k] * step[k]
    return promised


@register_jitable
def _total(forms, shares, whole):  # type: ignore[no-untyped-def]
    """The forms of a row, summed by its shares."""
    whole[:] = 0.0
    for q in range(shares.size):
        for k in range(whole.shape[0]):
            for h in range(whole.shape[1]):
                whole[k, h] += shares[q] * forms[q, k, h]


@register_jitable
def _start(row, whole, slope):  # type: ignore[no-untyped-def]
    """Slopes of a form, to which those of the entries are added; return its value."""
    value, first = 0.0, row.size - slope.size
    for k in range(row.size):
        along = 0.0
        for h in range(row.size):
            along += whole[k, h] * row[h]
        value += 0.5 * along * row[k]
        if k >= first:
            slope[k - first] = along
    return value


@register_jitable
def _move(row, a, step, ridge, trial):  # type: ignore[no-untyped-def]
    """The row after a step; return the value of the ridge there."""
    value, first = 0.0, row.size - step.size
    for k in range(first):
        trial[k] = row[k]
    for k in range(step.size):
        moved = row[first + k] - a * step[k]
        trial[first + k] = moved
        value += 0.5 * ridge[k] * moved * moved
    return value


@cache
def _fit(pointwise: Pointwise) -> Any:
    stamp = version(pointwise) if own(pointwise) else 0

    def fit_rows(low, high, ends, other, y, weights, parameter, V, U, first, ridges, forms, shares, quadratic, most):  # type: ignore[no-untyped-def]
        width, rank = V.shape[1], V.shape[1] - first
        slope, block, whole = np.empty(rank), np.empty((rank, rank)), np.empty((width, width))
        row, trial, step, q = np.empty(width), np.empty(width), np.empty(rank), np.empty(most)
        for i in range(low, high):
            begin, end = ends[i - 1] if i > 0 else 0, ends[i]
            row[:], step[:] = U[i], 0.0
            _total(forms, shares[i], whole)
            value, start, promised, a = np.inf, 0.0 * stamp, 0.0, 1.0
            for tried in range(STEPS):
                reached = _move(row, a, step, ridges[i], trial) + _start(trial, whole, slope)
                # Not in functions: passing arrays to one costs three times the work for an entry.
                for t in range(begin, end):
                    j, z = other[t], 0.0
                    for k in range(width):
                        z += trial[k] * V[j, k]
                    v, d, c = pointwise(z, y[t], parameter)
                    weight = weights[t] if weights.size else 1.0
                    reached += weight * v
                    d, q[t - begin] = weight * d, weight * c
                    for k in range(rank):
                        slope[k] += d * V[j, first + k]
                if tried > 0 and not reached <= value - DECREASE * a * promised + ROUNDING * abs(value):
                    a *= 0.5
                    if a < SHORTEST:
                        break
                    continue
                row[:] = trial
                value, a = reached, 1.0
                if tried == 0 or not quadratic:
                    _factorise(block, whole, q, other[begin:end], V, ridges[i])
                promised = _newton(slope, block, row, ridges[i], step)
                start = abs(value) + promised if tried == 0 else start
                if not promised > NEGLIGIBLE_DECREASE * max(VISIBLE * start, abs(value)):
                    break
            U[i] = row

    return compiled(fit_rows, cache=own(pointwise))


def fit(
    loss: LossFunctions,
    y: Array,
    weights: Array,
    ends: Array,
    other: Array,
    U: Array,
    V: Array,
    first: int,
    ridge: Array,
    forms: Array,
    shares: Array,
) -> Array:
    """argmin over the columns of U from `first` on of Σ w·ℓ(z; y) + ½Σ ρᵢₖ|uᵢₖ|² + ½Σ sᵢₖ uᵢFₖuᵢᵀ, z = U Vᵀ at entries.

    Entries are sorted by rows: those of row i end at `ends[i]`; `other` holds their columns. `ridge` has a ρ for each
    row and unknown column, `forms` has the symmetric F of all columns, and `shares` has their s for each row. If ℓ is
    quadratic, the curvature is constant and computed once.
    """
    U, V = np.array(U, order="C"), np.ascontiguousarray(V, dtype=U.dtype)
    pointwise, parameter, y, weights = loop_arguments(loss, y, weights, U.dtype)
    work = (y.size + len(forms) * len(ends)) * (V.shape[1] ** 2 + 1)
    parts = max(1, min(len(ends), threads_for(work)))
    cuts = np.searchsorted(ends, y.size * np.arange(1, parts) / parts, side="left")
    bounds = np.unique(np.r_[0, cuts, len(ends)])
    most = int(np.diff(ends, prepend=0).max(initial=0))
    settings = (ends, other, y, weights, parameter, V, U, first, ridge, forms, shares, loss.quadratic, most)
    run(_fit(pointwise), [(int(a), int(b), *settings) for a, b in pairwise(bounds)])
    return U
