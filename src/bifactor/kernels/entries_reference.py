"""Sampled products, and passes that compute z = PQᴴ when it is needed, in NumPy and SciPy: for small problems, complex
factors and losses without a compiled form, and the definition of the compiled kernels.

With S the sparse matrix that holds `w` at the layout's coordinates:
`dot` = (PQᴴ) at those coordinates, `curve` = (DQᴴ + PEᴴ, DEᴴ) at them, `left` = S Q, `right` = Sᴴ P,
`both` = (S Q, Sᴴ P). If most entries are known, PQᴴ and S are formed.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from bifactor.arrays import Array, conj
from bifactor.kernels import losses_reference
from bifactor.kernels.entry_layout import EntryLayout
from bifactor.kernels.losses_reference import LossFunctions

BLOCK = 1 << 16


def dot(layout: EntryLayout, P: Array, Q: Array) -> Array:
    if layout.places is not None:
        return (P @ conj(Q).T).take(layout.places)
    z = np.empty(layout.size, dtype=np.result_type(P, Q))
    for start in range(0, layout.size, BLOCK):
        part = slice(start, start + BLOCK)
        z[part] = _rowwise(P.take(layout.outer[part], 0), Q.take(layout.inner[part], 0))
    return z


def curve(layout: EntryLayout, P: Array, Q: Array, D: Array, E: Array) -> tuple[Array, Array]:
    if layout.places is not None:
        D, P, Q, E = (F.astype(np.result_type(P, Q, D, E), copy=False) for F in (D, P, Q, E))
        both = np.hstack([D, P]) @ conj(np.hstack([Q, E])).T
        return both.take(layout.places), (D @ conj(E).T).take(layout.places)
    z1, z2 = (np.empty(layout.size, dtype=np.result_type(P, Q, D, E)) for _ in range(2))
    for start in range(0, layout.size, BLOCK):
        part = slice(start, start + BLOCK)
        i, j = layout.outer[part], layout.inner[part]
        d, e = D.take(i, 0), E.take(j, 0)  # `take` is three times as fast as indexing
        z1[part] = _rowwise(d, Q.take(j, 0)) + _rowwise(P.take(i, 0), e)
        z2[part] = _rowwise(d, e)
    return z1, z2


def left(layout: EntryLayout, w: Array, Q: Array) -> Array:
    return _matrix(layout, w) @ Q


def right(layout: EntryLayout, w: Array, P: Array) -> Array:
    return _matrix(layout, conj(w)).T @ P


def both(layout: EntryLayout, w: Array, P: Array, Q: Array) -> tuple[Array, Array]:
    S = _matrix(layout, w)
    return S @ Q, (S if S.dtype.kind != "c" else S.conj()).T @ P


def _rowwise(P: Array, Q: Array) -> Array:
    return np.einsum("ik,ik->i", P, conj(Q))


def _matrix(layout: EntryLayout, w: Array) -> Array:
    shape = layout.n_outer, layout.n_inner
    if layout.places is not None and w.dtype.kind != "c":
        return np.bincount(layout.places, w, shape[0] * shape[1]).astype(w.dtype, copy=False).reshape(shape)
    if layout.starts is not None:
        return sparse.csr_array((w, layout.inner, layout.starts), shape=shape)
    return sparse.coo_array((w, (layout.outer, layout.inner)), shape=shape)


# Passes over the entries, some of them at a time. z = PQᴴ at the entries of a layout; empty `weights` mean ones.

PASS_BLOCK = 1 << 16


def fused(
    layout: EntryLayout, loss: LossFunctions, y: Array, weights: Array, P: Array, Q: Array
) -> tuple[float, Array, Array]:
    """Σ w·ℓ(z; y), S Q and Sᴴ P with S = w·ℓ′(z; y)."""

    def each(piece: EntryLayout, y: Array, w: Array) -> tuple[float, Array, Array]:
        f, slope = losses_reference.evaluate(loss, dot(piece, P, Q), y, w)
        return f, *both(piece, slope, P, Q)

    f, SQ, SP = _summed(each, layout, y, weights)
    return float(f), SQ, SP


def slopes(
    layout: EntryLayout, loss: LossFunctions, y: Array, weights: Array, P: Array, Q: Array, A: Array, B: Array
) -> tuple[Array, Array]:
    """S B and Sᴴ A with S = w·ℓ′(z; y); either of A and B may have no columns."""

    def each(piece: EntryLayout, y: Array, w: Array) -> tuple[Array, Array]:
        slope = losses_reference.weighted(loss.gradient(dot(piece, P, Q), y), w)
        return both(piece, slope, A, B)

    SB, SA = _summed(each, layout, y, weights)
    return SB, SA


def bent(
    layout: EntryLayout, loss: LossFunctions, y: Array, weights: Array, P: Array, Q: Array, D: Array, E: Array
) -> tuple[Array, Array]:
    """S Q and Sᴴ P with S = w·ℓ″(z; y)·z₁, z₁ = DQᴴ + PEᴴ."""

    def each(piece: EntryLayout, y: Array, w: Array) -> tuple[Array, Array]:
        z, (z1, _) = dot(piece, P, Q), curve(piece, P, Q, D, E)
        return both(piece, losses_reference.weighted(loss.curvature(z, y) * z1, w), P, Q)

    SQ, SP = _summed(each, layout, y, weights)
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

    def each(piece: EntryLayout, y: Array, w: Array) -> tuple[float, ...]:
        return losses_reference.line(loss, *_moving(piece, P, Q, D, E), y, w, a)

    f, first, second = _summed(each, layout, y, weights)
    return float(f), float(first), float(second)


def quartic(layout: EntryLayout, y: Array, weights: Array, P: Array, Q: Array, D: Array, E: Array) -> Array:
    """c₀ … c₄ with Σ w·½|z(a) − y|² = Σₖ cₖ aᵏ for every a."""

    def each(piece: EntryLayout, y: Array, w: Array) -> tuple[float, ...]:
        return tuple(losses_reference.quartic(*_moving(piece, P, Q, D, E), y, w))

    return np.array(_summed(each, layout, y, weights))


def _moving(piece: EntryLayout, P: Array, Q: Array, D: Array, E: Array) -> tuple[Array, Array, Array]:
    return dot(piece, P, Q), *curve(piece, P, Q, D, E)


def _summed(each: Callable[..., tuple[Any, ...]], layout: EntryLayout, y: Array, weights: Array) -> list[Any]:
    """The sums of the results of `each` over all pieces."""
    if layout.size <= PASS_BLOCK:
        return list(each(layout, y, weights))
    sums: list[Any] = []
    for start in range(0, layout.size, PASS_BLOCK):
        part = slice(start, start + PASS_BLOCK)
        found = each(layout.part(part), y[part], weights[part])
        sums = [a + b for a, b in zip(sums, found, strict=True)] if sums else list(found)
    return sums
