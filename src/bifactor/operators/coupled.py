"""The curvature of a function in rows with common features."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from bifactor.arrays import Array, beside, dtype_of, epsilon, herm, host, namespace
from bifactor.blocks import Blocks, Shared, Weight
from bifactor.kernels.blas import matmul
from bifactor.operators.features import Features


@dataclass(frozen=True, eq=False)
class Coupled(Shared):
    """Blocks of the rows of [Ũ; A] with U = Ũ + FA: for a row those of U, Mᵢ, and for a feature cΣᵢ fᵢ²Mᵢ.

    Here c is `Features.joint`: features that rows have in common add up. In addition, a change of A affects all rows
    that have the feature. With terms on Ũ and A, such as a ridge R, the Hessian is [M + R, MF; FᵀM, FᵀMF + R′].
    Division by it uses its Schur complement R′ + Fᵀ(M − M(M + R)⁻¹M)F, with the same diagonal in place of FᵀF. Without
    this, rows with many observations would take hundreds of iterations to find their common features.
    """

    features: Features | None = None
    own: Shared = Shared()
    """The blocks Mᵢ of the rows of U."""
    terms: Shared = Shared()
    """R and R′."""

    def __add__(self, other: Shared) -> Self:
        both = super().__add__(other)
        return replace(self, pairs=both.pairs, ridge=both.ridge, terms=self.terms + other)

    def __rmul__(self, number: float) -> Self:
        both = super().__rmul__(number)
        return replace(self, pairs=both.pairs, ridge=both.ridge, own=number * self.own, terms=number * self.terms)

    def damped(self, damping: float) -> Self:
        return replace(self, pairs=super().damped(damping).pairs, own=self.own.damped(damping))

    def at(self, chosen: Array) -> Self:
        return replace(self, pairs=super().at(chosen).pairs, own=self.own.at(chosen), terms=self.terms.at(chosen))

    def divide_among(self, rows: Array, chosen: Array) -> Array:
        if len(chosen) < rows.shape[1]:
            return Blocks.divide_among(self, rows, chosen)
        F, first = self.features, _ridge(self.terms)
        assert F is not None
        if F.matrix.nnz == 0 or not np.any(first > 0):
            return super().divide_among(rows, chosen)
        R = self.terms.part(slice(F.rows))
        M, own, shared = self.own + R, rows[: F.rows, :], rows[F.rows :, :]
        u, product = M.divide(own), F.map(rows)
        a = self._features_divided(shared - product.rmatmul(own - R.times(u)), first)
        moved = product.matmul(a)
        return namespace(rows).concat([u - moved + M.divide(R.times(moved)), a])

    def _features_divided(self, rows: Array, ridge: Array) -> Array:
        """Rows of features divided by R′ + cΣᵢ fᵢ²(Mᵢ − Mᵢ(Mᵢ + R)⁻¹Mᵢ), by the means of M and R over their rows."""
        F = self.features
        assert F is not None
        means = [float(np.mean(host(a))) for a, _ in self.own.pairs]
        values, Q = np.linalg.eigh(_total([mean * B for mean, (_, B) in zip(means, self.own.pairs, strict=True)]))
        sizes = np.array([mean * float(np.trace(B).real) for mean, (_, B) in zip(means, self.own.pairs, strict=True)])
        shares = np.divide(sizes, sizes.sum() * np.array(means), out=np.zeros_like(sizes), where=sizes > 0)
        own = _total([share * host(a)[F.rows :] for share, (a, _) in zip(shares, self.pairs, strict=False)])
        M = np.multiply.outer(own, np.maximum(values, 0.0))
        R = (F.joint * np.asarray(F.sums(np.broadcast_to(ridge, F.lines)[: F.rows]))[F.rows :])[:, None]
        left = np.divide(M * R, M + R, out=np.zeros_like(M), where=M + R > 0)
        S = left + LEAST * M + np.broadcast_to(ridge, F.lines)[F.rows :, None]
        S = np.maximum(S, epsilon(rows) * max(float(S.max(initial=0.0)), 1e-300))
        S = beside(S.astype(np.finfo(dtype_of(rows)).dtype), rows)
        turn, back = (beside(one.astype(dtype_of(rows)), rows) for one in (Q, herm(Q)))
        return matmul(matmul(rows, turn) / S, back)


LEAST = 1e-3
"""The smallest share of the curvature of rows that their features have."""


def coupled(features: Features, blocks: Shared, cold: Array | None = None) -> Coupled:
    """The blocks of the rows of [Ũ; A] from those of the rows of U.

    Rows that are `cold` have no curvature of their own: terms keep them in place while their features move. A feature
    that no observed row has counts as an average row.
    """
    own = blocks
    if cold is not None:
        own = Shared(tuple((_without(a, cold), B) for a, B in blocks.pairs), blocks.ridge)
    nothing = isinstance(blocks.ridge, float) and blocks.ridge == 0
    pairs = tuple((_lines(features, a), B) for a, B in blocks.pairs)
    return Coupled(pairs, 0.0 if nothing else features.sums(blocks.ridge), features, own)


def _lines(features: Features, a: Weight) -> Array:
    """(a, cΣᵢ fᵢ²aᵢ)."""
    total = features.sums(a)
    own, shared = np.split(host(total), [features.rows])
    shared = np.where(shared > 0, shared * features.joint, host(total).mean())
    return beside(np.concatenate([own, shared]).astype(own.dtype), total)


def _without(a: Weight, cold: Array) -> Weight:
    if isinstance(a, float):
        return np.where(cold, 0.0, a)
    return beside(np.where(cold, 0.0, host(a)), a)


def _total(parts: list[Array]) -> Array:
    return sum(parts[1:], parts[0])


def _ridge(terms: Shared) -> Array:
    """The mean of the terms over columns: one number for each row, or one for all rows."""
    total = np.asarray(host(terms.ridge), np.float64)
    for a, B in terms.pairs:
        total = total + host(a) * (float(np.trace(B).real) / len(B))
    return total
