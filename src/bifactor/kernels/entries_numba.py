"""Sampled products compiled for float32 and float64, on all cores; the same functions as in `entries_reference`.

They are deterministic for a fixed number of threads: each thread owns its rows, and private sums of the short side are
added in the order of threads.
"""

import numpy as np

from bifactor.arrays import Array
from bifactor.kernels.compile import compiled
from bifactor.kernels.layout import Layout
from bifactor.kernels.memory import empty, zeros
from bifactor.kernels.pool import run, threads_for


@compiled
def _dot(start, stop, outer, inner, P, Q, z):  # type: ignore[no-untyped-def]
    rank, zero = P.shape[1], P.dtype.type(0)
    for tile in range(start.size):
        for t in range(start[tile], stop[tile]):
            i, j = outer[t], inner[t]
            total = zero  # not the first term: r steps fill SIMD registers, r − 1 leave a remainder
            for k in range(rank):
                total += P[i, k] * Q[j, k]
            z[t] = total


@compiled
def _curve(start, stop, outer, inner, P, Q, D, E, z1, z2):  # type: ignore[no-untyped-def]
    rank, zero = P.shape[1], P.dtype.type(0)
    for tile in range(start.size):
        t, last = start[tile], stop[tile]
        while t < last:
            i = outer[t]
            while t < last and outer[t] == i:  # one row at a time: 10 % faster than a plain loop
                j = inner[t]
                linear, square = zero, zero
                for k in range(rank):
                    linear += D[i, k] * Q[j, k] + P[i, k] * E[j, k]
                    square += D[i, k] * E[j, k]
                z1[t], z2[t] = linear, square
                t += 1


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


def dot(layout: Layout, P: Array, Q: Array) -> Array:
    P, Q = contiguous(P, Q)
    z = empty(layout.size, P.dtype)
    calls = [(*span, layout.outer, layout.inner, P, Q, z) for span in spans_for(layout, P)]
    run(_dot, calls)
    return z


def curve(layout: Layout, P: Array, Q: Array, D: Array, E: Array) -> tuple[Array, Array]:
    P, Q, D, E = contiguous(P, Q, D, E)
    z1, z2 = (empty(layout.size, P.dtype) for _ in range(2))
    run(_curve, [(*span, layout.outer, layout.inner, P, Q, D, E, z1, z2) for span in spans_for(layout, P)])
    return z1, z2


def left(layout: Layout, w: Array, Q: Array) -> Array:
    w, Q = contiguous(w, Q)
    SQ = zeros((layout.n_outer, Q.shape[1]), Q.dtype)
    run(_left, [(*span, layout.outer, layout.inner, w, Q, SQ) for span in spans_for(layout, Q)])
    return SQ


def right(layout: Layout, w: Array, P: Array) -> Array:
    # The same loop with the roles of the sides exchanged; the short side is private to each thread.
    w, P = contiguous(w, P)
    spans = spans_for(layout, P)
    private = zeros((len(spans), layout.n_inner, P.shape[1]), P.dtype)
    calls = [(*s, layout.inner, layout.outer, w, P, mine) for s, mine in zip(spans, private, strict=True)]
    run(_left, calls)
    return total(private)


def both(layout: Layout, w: Array, P: Array, Q: Array) -> tuple[Array, Array]:
    w, P, Q = contiguous(w, P, Q)
    spans = spans_for(layout, P)
    SQ = zeros(P.shape, P.dtype)
    private = zeros((len(spans), *Q.shape), Q.dtype)
    pairs = zip(spans, private, strict=True)
    run(_both, [(*span, layout.outer, layout.inner, w, P, Q, SQ, mine) for span, mine in pairs])
    return SQ, total(private)


def spans_for(layout: Layout, factor: Array) -> list[tuple[Array, Array]]:
    return layout.spans(threads_for(layout.size * factor.shape[1]))


def contiguous(*arrays: Array) -> tuple[Array, ...]:
    dtype = np.result_type(*arrays)
    return tuple(np.ascontiguousarray(a, dtype=dtype) for a in arrays)


def total(private: Array) -> Array:
    return private[0] if len(private) == 1 else private.sum(axis=0)
