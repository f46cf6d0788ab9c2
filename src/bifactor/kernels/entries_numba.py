"""Sampled products compiled for float32 and float64, on all cores.

Same functions as `entries_reference`, plus `fused`: loss value and both factor gradients in one pass.
Deterministic for a fixed number of threads: each thread owns its rows, private sums of the short side are
added in thread order.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from bifactor.arrays import Array
from bifactor.kernels.compile import compiled, own, version
from bifactor.kernels.layout import Layout
from bifactor.kernels.pool import run, threads_for


@compiled
def _dot(start, stop, outer, inner, P, Q, z):  # type: ignore[no-untyped-def]
    rank = P.shape[1]
    for tile in range(start.size):
        for t in range(start[tile], stop[tile]):
            p, q = P[outer[t]], Q[inner[t]]
            total = p[0] * q[0]
            for k in range(1, rank):
                total += p[k] * q[k]
            z[t] = total


@compiled
def _left(start, stop, outer, inner, w, Q, SQ):  # type: ignore[no-untyped-def]
    for tile in range(start.size):
        for t in range(start[tile], stop[tile]):
            target, q, weight = SQ[outer[t]], Q[inner[t]], w[t]
            for k in range(q.size):
                target[k] += weight * q[k]


@compiled
def _both(start, stop, outer, inner, w, P, Q, SQ, SP):  # type: ignore[no-untyped-def]
    rank = P.shape[1]
    for tile in range(start.size):
        for t in range(start[tile], stop[tile]):
            i, j, weight = outer[t], inner[t], w[t]
            p, q, sq, sp = P[i], Q[j], SQ[i], SP[j]
            for k in range(rank):
                sq[k] += weight * q[k]
            for k in range(rank):
                sp[k] += weight * p[k]


@cache
def _fused(pointwise: Callable[..., Any]) -> Any:
    stamp = version(pointwise) if own(pointwise) else 0

    def entries_pass(start, stop, outer, inner, y, weights, parameter, P, Q, SQ, SP):  # type: ignore[no-untyped-def]
        rank = P.shape[1]
        value = 0.0 * stamp
        for tile in range(start.size):
            for t in range(start[tile], stop[tile]):
                i, j = outer[t], inner[t]
                p, q, sq, sp = P[i], Q[j], SQ[i], SP[j]
                z = p[0] * q[0]
                for k in range(1, rank):
                    z += p[k] * q[k]
                v, d = pointwise(z, y[t], parameter)
                if weights.size:
                    v *= weights[t]
                    d *= weights[t]
                value += v
                slope = P.dtype.type(d)  # the loss may compute in double, the update must not
                for k in range(rank):
                    sq[k] += slope * q[k]
                for k in range(rank):
                    sp[k] += slope * p[k]
        return value

    # A closure over a plain function (not a compiled one) and a number is what numba can keep on disk.
    return compiled(entries_pass, cache=own(pointwise))


def dot(layout: Layout, P: Array, Q: Array) -> Array:
    P, Q = _contiguous(P, Q)
    z = np.empty(layout.size, dtype=P.dtype)
    calls = [(*span, layout.outer, layout.inner, P, Q, z) for span in _spans(layout, P)]
    run(_dot, calls)
    return z


def left(layout: Layout, w: Array, Q: Array) -> Array:
    w, Q = _contiguous(w, Q)
    SQ = np.zeros((layout.n_outer, Q.shape[1]), dtype=Q.dtype)
    run(_left, [(*span, layout.outer, layout.inner, w, Q, SQ) for span in _spans(layout, Q)])
    return SQ


def right(layout: Layout, w: Array, P: Array) -> Array:
    # The same loop with the roles of the sides exchanged; the short side is private to each thread.
    w, P = _contiguous(w, P)
    spans = _spans(layout, P)
    private = np.zeros((len(spans), layout.n_inner, P.shape[1]), dtype=P.dtype)
    calls = [(*s, layout.inner, layout.outer, w, P, mine) for s, mine in zip(spans, private, strict=True)]
    run(_left, calls)
    return _total(private)


def both(layout: Layout, w: Array, P: Array, Q: Array) -> tuple[Array, Array]:
    w, P, Q = _contiguous(w, P, Q)
    _, SQ, SP = _accumulate(_both, layout, (w,), P, Q)
    return SQ, SP


def fused(
    layout: Layout,
    pointwise: Callable[..., Any],
    parameter: float,
    y: Array,
    weights: Array,
    P: Array,
    Q: Array,
) -> tuple[float, Array, Array]:
    """Σ w·ℓ(z; y), S Q and Sᴴ P with S = w·ℓ′(z; y), in one pass over the entries."""
    P, Q = _contiguous(P, Q)
    fixed = (y, weights, P.dtype.type(parameter))
    values, SQ, SP = _accumulate(_fused(pointwise), layout, fixed, P, Q)
    return float(sum(values)), SQ, SP


def _accumulate(
    kernel: Any, layout: Layout, fixed: tuple[Any, ...], P: Array, Q: Array
) -> tuple[list[Any], Array, Array]:
    spans = _spans(layout, P)
    SQ = np.zeros_like(P)
    private = np.zeros((len(spans), *Q.shape), dtype=Q.dtype)
    calls = [
        (*span, layout.outer, layout.inner, *fixed, P, Q, SQ, mine) for span, mine in zip(spans, private, strict=True)
    ]
    return run(kernel, calls), SQ, _total(private)


def _spans(layout: Layout, factor: Array) -> list[tuple[Array, Array]]:
    return layout.spans(threads_for(layout.size * factor.shape[1]))


def _contiguous(*arrays: Array) -> tuple[Array, ...]:
    dtype = np.result_type(*arrays)
    return tuple(np.ascontiguousarray(a, dtype=dtype) for a in arrays)


def _total(private: Array) -> Array:
    return private[0] if len(private) == 1 else private.sum(axis=0)
