"""The best row of a factor for the entries known of it, with the other factor held: Newton's method in each row.

Compiled for float32 and float64, on all cores; same function as `rows_reference`. Each row has its own step lengths and
stops by itself, so rows cannot hold each other up. All sums are taken in double precision.
"""

from collections.abc import Callable
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
from numba.extending import register_jitable

from bifactor.arrays import Array
from bifactor.kernels.blocks_numba import factorise, substitute
from bifactor.kernels.compile import compiled, own, version
from bifactor.kernels.pool import run, threads_for
from bifactor.kernels.rows_reference import DECREASE, ENOUGH, FLOOR, HALVINGS, ROUNDING, STEPS, VISIBLE

Pointwise = Callable[..., Any]


@register_jitable
def _predict(row, V, j):  # type: ignore[no-untyped-def]
    z = 0.0
    for k in range(row.size):
        z += row[k] * V[j, k]
    return z


@register_jitable
def _add(slope, block, d, c, V, j, first):  # type: ignore[no-untyped-def]
    """The part of one entry in the slopes and in the block of its row."""
    at = 0
    for k in range(slope.size):
        b = V[j, first + k]
        slope[k] += d * b
        share = c * b
        for h in range(k + 1):
            block[at + h] += share * V[j, first + h]
        at += k + 1


@register_jitable
def _newton(slope, block, row, ridge, step):  # type: ignore[no-untyped-def]
    """Counts the ridge in, and finds the Newton step; returns the ridge's value and what the step promises."""
    rank, first, trace, at = slope.size, row.size - slope.size, 0.0, 0
    for k in range(rank):
        trace += block[at]
        at += k + 2
    value, at = 0.0, 0
    for k in range(rank):
        value += 0.5 * ridge[k] * row[first + k] * row[first + k]
        slope[k] += ridge[k] * row[first + k]
        step[k] = slope[k]
        lift = FLOOR * trace + ridge[k]
        block[at] += lift if lift > 0 else 1.0
        at += k + 2
    factorise(block, rank)
    substitute(block, step, rank)
    promised = 0.0
    for k in range(rank):
        promised += slope[k] * step[k]
    return value, promised


@register_jitable
def _move(row, a, step, ridge, trial):  # type: ignore[no-untyped-def]
    """The row after a step; returns the ridge's value there."""
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

    def fit_rows(low, high, ends, other, y, weights, parameter, V, U, first, ridge):  # type: ignore[no-untyped-def]
        width, rank, start = V.shape[1], V.shape[1] - first, 0.0 * stamp
        slope, block, step = np.empty(rank), np.empty(rank * (rank + 1) // 2), np.empty(rank)
        row, trial = np.empty(width), np.empty(width)
        for i in range(low, high):
            begin, end = (ends[i - 1] if i > 0 else 0), ends[i]
            row[:] = U[i]
            for tried in range(STEPS):
                value = 0.0
                slope[:] = 0.0
                block[:] = 0.0
                for t in range(begin, end):
                    v, d, c = pointwise(_predict(row, V, other[t]), y[t], parameter)
                    weight = weights[t] if weights.size else 1.0
                    value += weight * v
                    _add(slope, block, weight * d, weight * c, V, other[t], first)
                more, promised = _newton(slope, block, row, ridge, step)
                value += more
                if tried == 0:
                    start = abs(value) + promised
                if not promised > ENOUGH * max(VISIBLE * start, abs(value)):
                    break
                a, lower = 1.0, False
                for _ in range(HALVINGS):
                    reached = _move(row, a, step, ridge, trial)
                    for t in range(begin, end):
                        v = pointwise(_predict(trial, V, other[t]), y[t], parameter)[0]
                        reached += v * weights[t] if weights.size else v
                    lower = reached <= value - DECREASE * a * promised + ROUNDING * abs(value)
                    if lower:
                        break
                    a *= 0.5
                if not lower:
                    break
                row[:] = trial
            U[i] = row

    return compiled(fit_rows, cache=own(pointwise))


def fit(
    pointwise: Pointwise,
    parameter: Any,
    y: Array,
    weights: Array,
    ends: Array,
    other: Array,
    U: Array,
    V: Array,
    first: int,
    ridge: Array,
) -> Array:
    """argmin over the columns of U from `first` on of Σ w·ℓ(z; y) + Σ ½ρₖ|uₖ|², z = U Vᵀ at entries sorted by rows.

    The entries of row i end at `ends[i]`; `other` holds their columns. `ridge` has one ρ for each column looked for.
    """
    U, V = np.array(U, order="C"), np.ascontiguousarray(V, dtype=U.dtype)
    work = y.size * (V.shape[1] ** 2 + 1)
    parts = max(1, min(len(ends), threads_for(work)))
    cuts = np.searchsorted(ends, y.size * np.arange(1, parts) / parts, side="left")
    bounds = np.unique(np.r_[0, cuts, len(ends)])
    settings = (ends, other, y, weights, U.dtype.type(parameter), V, U, first, ridge)
    run(_fit(pointwise), [(int(a), int(b), *settings) for a, b in pairwise(bounds)])
    return U
