"""The passes of `passes_numba` in NumPy and SciPy, some entries at a time: for complex factors and losses without a
compiled form, and the definition of the compiled passes.

z = PQᴴ at the entries of a layout. A loss is given by its array methods, ℓ, ℓ′ and ℓ″; empty `weights` mean ones.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from bifactor.arrays import Array
from bifactor.kernels import entries_reference, losses_reference
from bifactor.kernels.layout import Layout
from bifactor.kernels.losses_reference import Part

BLOCK = 1 << 16


def fused(
    layout: Layout, value: Part, gradient: Part, y: Array, weights: Array, P: Array, Q: Array
) -> tuple[float, Array, Array]:
    """Σ w·ℓ(z; y), S Q and Sᴴ P with S = w·ℓ′(z; y)."""

    def each(piece: Layout, y: Array, w: Array) -> tuple[float, Array, Array]:
        z = entries_reference.dot(piece, P, Q)
        slope = losses_reference.weighted(gradient(z, y), w)
        return losses_reference.total(value(z, y), w), *entries_reference.both(piece, slope, P, Q)

    f, SQ, SP = _summed(each, layout, y, weights)
    return float(f), SQ, SP


def slopes(
    layout: Layout, gradient: Part, y: Array, weights: Array, P: Array, Q: Array, A: Array, B: Array
) -> tuple[Array, Array]:
    """S B and Sᴴ A with S = w·ℓ′(z; y); either of A and B may have no columns."""

    def each(piece: Layout, y: Array, w: Array) -> tuple[Array, Array]:
        slope = losses_reference.weighted(gradient(entries_reference.dot(piece, P, Q), y), w)
        return entries_reference.both(piece, slope, A, B)

    SB, SA = _summed(each, layout, y, weights)
    return SB, SA


def bent(
    layout: Layout, curvature: Part, y: Array, weights: Array, P: Array, Q: Array, D: Array, E: Array
) -> tuple[Array, Array]:
    """S Q and Sᴴ P with S = w·ℓ″(z; y)·z₁, z₁ = DQᴴ + PEᴴ."""

    def each(piece: Layout, y: Array, w: Array) -> tuple[Array, Array]:
        z, (z1, _) = entries_reference.dot(piece, P, Q), entries_reference.curve(piece, P, Q, D, E)
        return entries_reference.both(piece, losses_reference.weighted(curvature(z, y) * z1, w), P, Q)

    SQ, SP = _summed(each, layout, y, weights)
    return SQ, SP


def along(
    layout: Layout,
    value: Part,
    gradient: Part,
    curvature: Part,
    y: Array,
    weights: Array,
    P: Array,
    Q: Array,
    D: Array,
    E: Array,
    a: float,
) -> tuple[float, float, float]:
    """φ(a) = Σ w·ℓ(z(a); y) with z(a) = (P + aD)(Q + aE)ᴴ at the entries, and φ′(a) and φ″(a)."""

    def each(piece: Layout, y: Array, w: Array) -> tuple[float, ...]:
        return losses_reference.line(value, gradient, curvature, *_moving(piece, P, Q, D, E), y, w, a)

    f, first, second = _summed(each, layout, y, weights)
    return float(f), float(first), float(second)


def quartic(layout: Layout, y: Array, weights: Array, P: Array, Q: Array, D: Array, E: Array) -> Array:
    """c₀ … c₄ with Σ w·½|z(a) − y|² = Σₖ cₖ aᵏ for every a."""

    def each(piece: Layout, y: Array, w: Array) -> tuple[float, ...]:
        return tuple(losses_reference.quartic(*_moving(piece, P, Q, D, E), y, w))

    return np.array(_summed(each, layout, y, weights))


def _moving(piece: Layout, P: Array, Q: Array, D: Array, E: Array) -> tuple[Array, Array, Array]:
    return entries_reference.dot(piece, P, Q), *entries_reference.curve(piece, P, Q, D, E)


def _summed(each: Callable[..., tuple[Any, ...]], layout: Layout, y: Array, weights: Array) -> list[Any]:
    """The sums of the results of `each` over all pieces."""
    if layout.size <= BLOCK:
        return list(each(layout, y, weights))
    sums: list[Any] = []
    for start in range(0, layout.size, BLOCK):
        part = slice(start, start + BLOCK)
        found = each(layout.part(part), y[part], weights[part])
        sums = [a + b for a, b in zip(sums, found, strict=True)] if sums else list(found)
    return sums
