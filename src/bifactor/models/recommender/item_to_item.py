"""Low-rank item-to-item scores: each column of choices is explained by the others.

The B with zero diagonal that minimises ‖X − XB‖² + Σₖⱼ λₖbₖⱼ² is bₖⱼ = −pₖⱼ/pⱼⱼ with P = (XᵀX + Λ)⁻¹ (H. Steck,
Embarrassingly shallow autoencoders for sparse data, WWW 2019). Let σ and W be the leading singular values and right
vectors of XΛ^-½, and s = σ²/(σ² + 1). Then P ≈ Λ^-½(I − W diag(s)Wᵀ)Λ^-½, and off the diagonal B ≈ ACᵀ with

    A = Λ^-½ W diag(s)^½,    C = diag(1/(1 − h)) Λ^½ W diag(s)^½,    hⱼ = Σₖ sₖwⱼₖ².

So a row with the choices x has the factors xA, and column j has cⱼ. The division by 1 − h replaces the zero diagonal:
without it a column would be explained by itself.
"""

from dataclasses import dataclass, replace

import numpy as np

from bifactor.arrays import Array
from bifactor.data import Observations
from bifactor.models.model import Model
from bifactor.models.recommender.rows import ItemToItem, WithItemScores
from bifactor.models.rows import with_ones
from bifactor.operators import Entries
from bifactor.svd import truncated_svd

EXPONENT, LEAST = 0.5, 0.2
"""λⱼ is this power of how often column j is chosen relative to the mean, which is at least LEAST."""

TOL, RESTARTS = 1e-3, 3
"""Tolerance and restarts of singular vectors. Those of small singular values have little weight."""


@dataclass(frozen=True, eq=False)
class Cooccurrence:
    """The leading singular values and right vectors of XΛ₁^-½, where Λ₁ is the Λ of λ = 1."""

    ridges: Array
    values: Array
    vectors: Array
    unit: float
    """X is the matrix of weights divided by this, so that λ does not depend on the unit of weights."""

    @classmethod
    def of(cls, data: Observations, rank: int, begin: Model) -> "Cooccurrence":
        """From entries and their weights, started from the factors of a model of the same entries."""
        weights = np.ones(data.values.size, begin.V.dtype) if data.weights is None else data.weights
        unit = float(np.sqrt(np.mean(np.square(weights, dtype=np.float64))))
        often = np.bincount(data.cols, np.square(weights / unit), data.shape[1])
        ridges = np.maximum(often / often.mean(), LEAST) ** EXPONENT
        scaled = (weights / unit * ridges[data.cols] ** -0.5).astype(begin.V.dtype)
        X = Entries(data.rows, data.cols, data.shape).adjoint(scaled)
        start = begin.U, begin.V * ridges[:, None] ** 0.5
        rng = np.random.default_rng(0)
        _, values, vectors = truncated_svd(X, min(rank, *data.shape), rng, TOL, RESTARTS, start)
        return cls(ridges, np.asarray(values, np.float64), vectors, unit)

    def regression(self, ridge: float) -> tuple[Array, Array]:
        """A, for weights in their original unit, and C."""
        s = self.values**2 / (self.values**2 + ridge)
        root = (ridge * self.ridges)[:, None] ** 0.5
        part = self.vectors * np.sqrt(s)
        left = 1 - np.sum(np.square(part, dtype=np.float64), axis=1)
        carried, asked = part / (root * self.unit), part * root / np.maximum(left, 1e-3)[:, None]
        return carried.astype(part.dtype), asked.astype(part.dtype)


def with_items(model: Model, data: Observations, found: Cooccurrence, odds: float, ridge: float) -> Model:
    """A model of clicks with item-to-item scores added to its own, weighted `odds` to 1."""
    carried, asked = found.regression(ridge)
    share = odds / (1 + odds)
    items = ItemToItem(share, ridge, carried)
    rows = WithItemScores(model.rows, items)
    V = np.hstack([(1 - share) * model.V, share * asked]).astype(model.V.dtype)
    return replace(model, factors=with_ones(rows.joined(model.U, data), V, (0, 0)), rows=rows)
