"""Item-to-item scores of low rank: each column of what was chosen explained by the others.

The B with a diagonal of zeros that minimises ‖X − XB‖² + Σₖⱼ λₖbₖⱼ² is bₖⱼ = −pₖⱼ/pⱼⱼ with P = (XᵀX + Λ)⁻¹ (H. Steck,
Embarrassingly shallow autoencoders for sparse data, WWW 2019). Of XΛ^-½ take the leading singular values σ and right
vectors W, and s = σ²/(σ² + 1). Then P ≈ Λ^-½(I − W diag(s)Wᵀ)Λ^-½, and off the diagonal B ≈ ACᵀ with

    A = Λ^-½ W diag(s)^½,    C = diag(1/(1 − h)) Λ^½ W diag(s)^½,    hⱼ = Σₖ sₖwⱼₖ².

So a row that has chosen x has the factors xA, and column j has cⱼ. The division by 1 − h is what is left of the zeros
on the diagonal: without it a column would be explained by itself.
"""

from dataclasses import dataclass, replace

import numpy as np

from bifactor.arrays import Array
from bifactor.models.chosen import ItemToItem
from bifactor.models.model import Model
from bifactor.operators import Entries
from bifactor.svd import truncated_svd
from bifactor.tables import Observations

EXPONENT, LEAST = 0.5, 0.2
"""λⱼ grows with this power of how often column j is chosen beside the mean, which counts as so much at least."""

TOL, RESTARTS = 1e-3, 3
"""Of singular vectors. Small ones have little weight."""


@dataclass(frozen=True, eq=False)
class Cooccurrence:
    """The leading singular values and right vectors of XΛ₁^-½, where Λ₁ is the Λ of λ = 1."""

    ridges: Array
    values: Array
    vectors: Array
    unit: float
    """X is what was chosen over this, so that λ means the same whatever weights are measured in."""

    @classmethod
    def of(cls, data: Observations, rank: int, begin: Model) -> "Cooccurrence":
        """From entries and their weights; factors of a model of these tell where to begin."""
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
        """A, for weights as they are given, and C."""
        s = self.values**2 / (self.values**2 + ridge)
        root = (ridge * self.ridges)[:, None] ** 0.5
        part = self.vectors * np.sqrt(s)
        left = 1 - np.sum(np.square(part, dtype=np.float64), axis=1)
        carried, asked = part / (root * self.unit), part * root / np.maximum(left, 1e-3)[:, None]
        return carried.astype(part.dtype), asked.astype(part.dtype)


def with_items(model: Model, data: Observations, found: Cooccurrence, odds: float, ridge: float) -> Model:
    """A model of clicks with item-to-item scores beside its own, which weigh `odds` to 1."""
    assert model.clicks is not None
    carried, asked = found.regression(ridge)
    share = odds / (1 + odds)
    items = ItemToItem(share, ridge, carried)
    U = np.hstack([model.U, items.rows(data)])
    V = np.hstack([(1 - share) * model.V, share * asked]).astype(model.V.dtype)
    return replace(model, U=U.astype(model.U.dtype), V=V, clicks=replace(model.clicks, items=items))
