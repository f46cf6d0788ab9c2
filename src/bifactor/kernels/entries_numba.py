"""Sampled products, and passes that compute z = PQᵀ when it is needed, compiled; see `entries_reference`."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from bifactor.arrays import Array
from bifactor.kernels.compile import compiled, loop_arguments, own, version
from bifactor.kernels.entry_layout import EntryLayout
from bifactor.kernels.losses_reference import LossFunctions
from bifactor.kernels.memory import empty, zeros
from bifactor.kernels.threading import run, threads_for


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


def dot(layout: EntryLayout, P: Array, Q: Array) -> Array:
    P, Q = contiguous(P, Q)
    z = empty(layout.size, P.dtype)
    calls = [(*span, layout.outer, layout.inner, P, Q, z) for span in spans_for(layout, P)]
    run(_dot, calls)
    return z


def curve(layout: EntryLayout, P: Array, Q: Array, D: Array, E: Array) -> tuple[Array, Array]:
    P, Q, D, E = contiguous(P, Q, D, E)
    z1, z2 = (empty(layout.size, P.dtype) for _ in range(2))
    run(_curve, [(*span, layout.outer, layout.inner, P, Q, D, E, z1, z2) for span in spans_for(layout, P)])
    return z1, z2


def left(layout: EntryLayout, w: Array, Q: Array) -> Array:
    w, Q = contiguous(w, Q)
    SQ = zeros((layout.n_outer, Q.shape[1]), Q.dtype)
    run(_left, [(*span, layout.outer, layout.inner, w, Q, SQ) for span in spans_for(layout, Q)])
    return SQ


def right(layout: EntryLayout, w: Array, P: Array) -> Array:
    # The same loop with the roles of the sides exchanged; the short side is private to each thread.
    w, P = contiguous(w, P)
    spans = spans_for(layout, P)
    private = zeros((len(spans), layout.n_inner, P.shape[1]), P.dtype)
    calls = [(*s, layout.inner, layout.outer, w, P, mine) for s, mine in zip(spans, private, strict=True)]
    run(_left, calls)
    return total(private)


def both(layout: EntryLayout, w: Array, P: Array, Q: Array) -> tuple[Array, Array]:
    w, P, Q = contiguous(w, P, Q)
    spans = spans_for(layout, P)
    SQ = zeros(P.shape, P.dtype)
    private = zeros((len(spans), *Q.shape), Q.dtype)
    pairs = zip(spans, private, strict=True)
    run(_both, [(*span, layout.outer, layout.inner, w, P, Q, SQ, mine) for span, mine in pairs])
    return SQ, total(private)


def spans_for(layout: EntryLayout, factor: Array) -> list[tuple[Array, Array]]:
    return layout.spans(threads_for(layout.size * factor.shape[1]))


def contiguous(*arrays: Array) -> tuple[Array, ...]:
    dtype = np.result_type(*arrays)
    return tuple(np.ascontiguousarray(a, dtype=dtype) for a in arrays)


def total(private: Array) -> Array:
    return private[0] if len(private) == 1 else private.sum(axis=0)


# Passes over observed entries that compute z = PQᵀ when it is needed and store no array as long as the data. They are
# deterministic for a fixed number of threads. Empty `weights` mean ones.

Pointwise = Callable[..., Any]


@cache
def _fused(pointwise: Pointwise) -> Any:
    stamp = version(pointwise) if own(pointwise) else 0

    def entries_pass(start, stop, outer, inner, y, weights, parameter, P, Q, SQ, SP):  # type: ignore[no-untyped-def]
        rank, zero = P.shape[1], P.dtype.type(0)
        value = 0.0 * stamp
        for tile in range(start.size):
            for t in range(start[tile], stop[tile]):
                # P[i, k] and not a view p = P[i]: numba counts references to views atomically if the loss has
                # branches (the fused logistic gradient took a quarter longer).
                i, j = outer[t], inner[t]
                z = zero
                for k in range(rank):
                    z += P[i, k] * Q[j, k]
                v, d, _ = pointwise(z, y[t], parameter)
                if weights.size:
                    v *= weights[t]
                    d *= weights[t]
                value += v
                slope = P.dtype.type(d)  # the loss may compute in double, the update must not
                for k in range(rank):
                    SQ[i, k] += slope * Q[j, k]
                for k in range(rank):
                    SP[j, k] += slope * P[i, k]
        return value

    # Numba can cache a closure over a plain function (not a compiled one) and a number on disk.
    return compiled(entries_pass, cache=own(pointwise))


@cache
def _slopes(pointwise: Pointwise) -> Any:
    stamp = version(pointwise) if own(pointwise) else 0

    def slopes_pass(start, stop, outer, inner, y, weights, parameter, P, Q, A, B, SB, SA):  # type: ignore[no-untyped-def]
        rank, zero, lefts, rights = P.shape[1], P.dtype.type(0), B.shape[1], A.shape[1]
        value = 0.0 * stamp
        for tile in range(start.size):
            for t in range(start[tile], stop[tile]):
                i, j = outer[t], inner[t]
                z = zero
                for k in range(rank):
                    z += P[i, k] * Q[j, k]
                v, d, _ = pointwise(z, y[t], parameter)
                if weights.size:
                    v *= weights[t]
                    d *= weights[t]
                value += v
                slope = P.dtype.type(d)
                for k in range(lefts):
                    SB[i, k] += slope * B[j, k]
                for k in range(rights):
                    SA[j, k] += slope * A[i, k]
        return value

    return compiled(slopes_pass, cache=own(pointwise))


@cache
def _bent(pointwise: Pointwise) -> Any:
    stamp = version(pointwise) if own(pointwise) else 0

    def bent_pass(start, stop, outer, inner, y, weights, parameter, P, Q, D, E, SQ, SP):  # type: ignore[no-untyped-def]
        rank, zero = P.shape[1], P.dtype.type(0)
        for tile in range(start.size):
            for t in range(start[tile], stop[tile]):
                i, j = outer[t], inner[t]
                z, z1 = zero, zero
                for k in range(rank):
                    z += P[i, k] * Q[j, k]
                    z1 += D[i, k] * Q[j, k] + P[i, k] * E[j, k]
                _, _, c = pointwise(z, y[t], parameter)
                if weights.size:
                    c *= weights[t]
                change = P.dtype.type(c * z1)
                for k in range(rank):
                    SQ[i, k] += change * Q[j, k]
                for k in range(rank):
                    SP[j, k] += change * P[i, k]
        return 0.0 * stamp

    return compiled(bent_pass, cache=own(pointwise))


@cache
def _along(pointwise: Pointwise) -> Any:
    stamp = version(pointwise) if own(pointwise) else 0

    def along_pass(start, stop, outer, inner, y, weights, parameter, P, Q, D, E, a):  # type: ignore[no-untyped-def]
        rank, zero = P.shape[1], P.dtype.type(0)
        value, first, second = 0.0 * stamp, 0.0, 0.0
        for tile in range(start.size):
            for t in range(start[tile], stop[tile]):
                i, j = outer[t], inner[t]
                z, z1, z2 = zero, zero, zero
                for k in range(rank):
                    z += P[i, k] * Q[j, k]
                    z1 += D[i, k] * Q[j, k] + P[i, k] * E[j, k]
                    z2 += D[i, k] * E[j, k]
                bend, weight = 2.0 * z2, 1.0
                speed = z1 + a * bend
                if weights.size:
                    weight *= weights[t]
                v, d, c = pointwise(z + a * z1 + 0.5 * a * a * bend, y[t], parameter)
                value += weight * v
                first += weight * d * speed
                second += weight * (c * speed * speed + d * bend)
        return value, first, second

    return compiled(along_pass, cache=own(pointwise))


@compiled
def _quartic(start, stop, outer, inner, y, weights, P, Q, D, E):  # type: ignore[no-untyped-def]
    rank, zero = P.shape[1], P.dtype.type(0)
    c0, c1, c2, c3, c4 = 0.0, 0.0, 0.0, 0.0, 0.0
    for tile in range(start.size):
        for t in range(start[tile], stop[tile]):
            i, j = outer[t], inner[t]
            z, z1, z2 = zero, zero, zero
            for k in range(rank):
                z += P[i, k] * Q[j, k]
                z1 += D[i, k] * Q[j, k] + P[i, k] * E[j, k]
                z2 += D[i, k] * E[j, k]
            d, s, b, weight = np.float64(z) - y[t], np.float64(z1), 2.0 * z2, 1.0
            if weights.size:
                weight *= weights[t]
            c0 += weight * d * d
            c1 += weight * d * s
            c2 += weight * (s * s + d * b)
            c3 += weight * s * b
            c4 += weight * b * b
    return 0.5 * c0, c1, 0.5 * c2, 0.5 * c3, 0.125 * c4


def fused(
    layout: EntryLayout, loss: LossFunctions, y: Array, weights: Array, P: Array, Q: Array
) -> tuple[float, Array, Array]:
    """Σ w·ℓ(z; y), S Q and Sᴴ P with S = w·ℓ′(z; y)."""
    P, Q = contiguous(P, Q)
    pointwise, parameter, y, weights = loop_arguments(loss, y, weights, P.dtype)
    values, SQ, SP = _accumulated(_fused(pointwise), layout, (y, weights, parameter, P, Q), P, Q)
    return float(sum(values)), SQ, SP


def slopes(
    layout: EntryLayout,
    loss: LossFunctions,
    y: Array,
    weights: Array,
    P: Array,
    Q: Array,
    A: Array,
    B: Array,
) -> tuple[Array, Array]:
    """S B and Sᴴ A with S = w·ℓ′(z; y); either of A and B may have no columns."""
    P, Q, A, B = contiguous(P, Q, A, B)
    pointwise, parameter, y, weights = loop_arguments(loss, y, weights, P.dtype)
    _, SB, SA = _accumulated(_slopes(pointwise), layout, (y, weights, parameter, P, Q, A, B), B, A)
    return SB, SA


def bent(
    layout: EntryLayout,
    loss: LossFunctions,
    y: Array,
    weights: Array,
    P: Array,
    Q: Array,
    D: Array,
    E: Array,
) -> tuple[Array, Array]:
    """S Q and Sᴴ P with S = w·ℓ″(z; y)·z₁, z₁ = DQᴴ + PEᴴ."""
    P, Q, D, E = contiguous(P, Q, D, E)
    pointwise, parameter, y, weights = loop_arguments(loss, y, weights, P.dtype)
    _, SQ, SP = _accumulated(_bent(pointwise), layout, (y, weights, parameter, P, Q, D, E), P, Q)
    return SQ, SP


def along(
    layout: EntryLayout,
    loss: LossFunctions,
    y: Array,
    weights: Array,
    P: Array,
    Q: Array,
    D: Array,
    E: Array,
    a: float,
) -> tuple[float, float, float]:
    """φ(a) = Σ w·ℓ(z(a); y) with z(a) = (P + aD)(Q + aE)ᴴ at the entries, and φ′(a) and φ″(a)."""
    P, Q, D, E = contiguous(P, Q, D, E)
    pointwise, parameter, y, weights = loop_arguments(loss, y, weights, P.dtype)
    fixed = (y, weights, parameter, P, Q, D, E, float(a))
    parts = run(_along(pointwise), [(*span, layout.outer, layout.inner, *fixed) for span in spans_for(layout, P)])
    value, first, second = (float(sum(part)) for part in zip(*parts, strict=True))
    return value, first, second


def quartic(layout: EntryLayout, y: Array, weights: Array, P: Array, Q: Array, D: Array, E: Array) -> Array:
    """c₀ … c₄ with Σ w·½|z(a) − y|² = Σₖ cₖ aᵏ for every a."""
    P, Q, D, E = contiguous(P, Q, D, E)
    fixed = (np.ascontiguousarray(y, P.dtype), np.ascontiguousarray(weights, P.dtype), P, Q, D, E)
    parts = run(_quartic, [(*span, layout.outer, layout.inner, *fixed) for span in spans_for(layout, P)])
    return np.array([sum(part) for part in zip(*parts, strict=True)])


def _accumulated(
    kernel: Any, layout: EntryLayout, fixed: tuple[Any, ...], outer_like: Array, inner_like: Array
) -> tuple[list[Any], Array, Array]:
    """The kernel's sums for every row of the outer and of the inner side, as wide as the given arrays."""
    spans, dtype = spans_for(layout, fixed[3]), outer_like.dtype
    outer = zeros((layout.n_outer, outer_like.shape[1]), dtype)
    private = zeros((len(spans), layout.n_inner, inner_like.shape[1]), dtype)
    pairs = zip(spans, private, strict=True)
    calls = [(*span, layout.outer, layout.inner, *fixed, outer, mine) for span, mine in pairs]
    return run(kernel, calls), outer, total(private)
