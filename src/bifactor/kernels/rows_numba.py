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
from bifactor.kernels.rows_reference import DECREASE, ENOUGH, FLOOR, ROUNDING, SHORTEST, STEPS, VISIBLE

Pointwise = Callable[..., Any]


@register_jitable
def _newton(slope, block, row, ridge, step, packed):  # type: ignore[no-untyped-def]
    """Counts the ridge in, and finds the Newton step; returns what it promises."""
    rank, first, trace, at = slope.size, row.size - slope.size, 0.0, 0
    for k in range(rank):
        trace += block[k, k]
    for k in range(rank):
        slope[k] += ridge[k] * row[first + k]
        step[k] = slope[k]
        for h in range(k):
            packed[at + h] = block[k, h]
        lift = FLOOR * trace + ridge[k]
        packed[at + k] = block[k, k] + (lift if lift > 0 else 1.0)
        at += k + 1
    factorise(packed, rank)
    substitute(packed, step, rank)
    promised = 0.0
    for k in range(rank):
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
def _start(row, whole, slope, block):  # type: ignore[no-untyped-def]
    """Slopes and block of a form, for the entries to be added to; returns its value."""
    value, first = 0.0, row.size - slope.size
    for k in range(row.size):
        along = 0.0
        for h in range(row.size):
            along += whole[k, h] * row[h]
        value += 0.5 * along * row[k]
        if k >= first:
            slope[k - first] = along
            for h in range(first, row.size):
                block[k - first, h - first] = whole[k, h]
    return value


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

    def fit_rows(low, high, ends, other, y, weights, parameter, V, U, first, ridges, forms, shares):  # type: ignore[no-untyped-def]
        width, rank = V.shape[1], V.shape[1] - first
        slope, block, packed = np.empty(rank), np.empty((rank, rank)), np.empty(rank * (rank + 1) // 2)
        row, trial, step, whole = np.empty(width), np.empty(width), np.empty(rank), np.empty((width, width))
        for i in range(low, high):
            row[:], step[:] = U[i], 0.0
            _total(forms, shares[i], whole)
            value, start, promised, a = np.inf, 0.0 * stamp, 0.0, 1.0
            for tried in range(STEPS):
                reached = _move(row, a, step, ridges[i], trial) + _start(trial, whole, slope, block)
                # Not in functions: to hand arrays to one costs three times what is done here with an entry.
                for t in range(ends[i - 1] if i > 0 else 0, ends[i]):
                    j, z = other[t], 0.0
                    for k in range(width):
                        z += trial[k] * V[j, k]
                    v, d, c = pointwise(z, y[t], parameter)
                    weight = weights[t] if weights.size else 1.0
                    reached += weight * v
                    for k in range(rank):
                        b = weight * V[j, first + k]
                        slope[k] += d * b
                        b *= c
                        for h in range(rank):  # all of it, for rows of one length use SIMD
                            block[k, h] += b * V[j, first + h]
                if tried > 0 and not reached <= value - DECREASE * a * promised + ROUNDING * abs(value):
                    a *= 0.5
                    if a < SHORTEST:
                        break
                    continue
                row[:] = trial
                value, a = reached, 1.0
                promised = _newton(slope, block, row, ridges[i], step, packed)
                start = abs(value) + promised if tried == 0 else start
                if not promised > ENOUGH * max(VISIBLE * start, abs(value)):
                    break
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
    forms: Array,
    shares: Array,
) -> Array:
    """argmin over the columns of U from `first` on of Σ w·ℓ(z; y) + ½Σ ρᵢₖ|uᵢₖ|² + ½Σ sᵢₖ uᵢFₖuᵢᵀ, z = U Vᵀ at entries.

    These are sorted by rows: those of row i end at `ends[i]`; `other` holds their columns. `ridge` has a ρ for each row
    and column looked for, `forms` the symmetric F, of all columns, and `shares` their s, for each row.
    """
    U, V = np.array(U, order="C"), np.ascontiguousarray(V, dtype=U.dtype)
    work = (y.size + len(forms) * len(ends)) * (V.shape[1] ** 2 + 1)
    parts = max(1, min(len(ends), threads_for(work)))
    cuts = np.searchsorted(ends, y.size * np.arange(1, parts) / parts, side="left")
    bounds = np.unique(np.r_[0, cuts, len(ends)])
    settings = (ends, other, y, weights, U.dtype.type(parameter), V, U, first, ridge, forms, shares)
    run(_fit(pointwise), [(int(a), int(b), *settings) for a, b in pairwise(bounds)])
    return U
