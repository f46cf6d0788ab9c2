"""Implicit feedback: entries that were chosen, and a weak statement that all others were not.

½Σ_S w(z − 1)² + ½w₀Σᵢⱼ zᵢⱼ² + (λ/2)(Σᵢ aᵢ‖uᵢ‖² + Σⱼ bⱼ‖vⱼ‖²), aᵢ = Σ w over row i + w₀n, bⱼ = Σ w over column j + w₀m
(Rendle, Krichene, Zhang and Koren 2021, with ν = 1).
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from bifactor.arrays import Array
from bifactor.errors import InputError
from bifactor.models.chosen import Clicks
from bifactor.models.model import Model
from bifactor.models.pairs import Pairs
from bifactor.models.ranking import best_columns
from bifactor.models.side import Sides
from bifactor.operators import Entries, Operator
from bifactor.operators.cells import all_cells
from bifactor.penalties import Ridge
from bifactor.problems.problem import Problem
from bifactor.ranking import Split, by_entry, evaluate
from bifactor.tables import Observations


def clicks_problem(data: Observations, clicks: Clicks, alpha: float, sides: Sides | None = None) -> Problem:
    rows, cols = paid(data, clicks.unobserved)
    operator: Operator = Entries(data.rows, data.cols, data.shape)
    if sides is not None:
        operator, rows, cols = sides.seen_by(operator), sides.weights(0, rows), sides.weights(1, cols)
    penalty = Ridge(alpha, rows=rows, cols=cols) if alpha > 0 else None
    cells = all_cells(clicks.unobserved, clicks.part(0), clicks.part(1))
    return Problem("squared", operator, data.values, data.weights, penalty) + cells


def paid(data: Observations, unobserved: float) -> tuple[Array, Array]:
    """a and b, what each row and each column pays."""
    weights = np.ones(data.values.size) if data.weights is None else data.weights
    m, n = data.shape
    rows = np.bincount(data.rows, weights, m) + unobserved * n
    return rows, np.bincount(data.cols, weights, n) + unobserved * m


def as_choices(data: Observations) -> Observations:
    """Each entry once, as 1, with the weight that its count stands for: 1 + log r above 1. Pairs count as 1."""
    values = data.values if data.values.size == data.rows.size else np.ones(data.rows.size)
    counts = sparse.csr_array((values, (data.rows, data.cols)), shape=data.shape)
    if np.any(counts.data < 0):
        raise InputError(f"A value is {counts.data.min():g}, but what was chosen counts above 0. Leave it out.")
    counts.eliminate_zeros()
    weights = np.where(counts.data > 1, 1 + np.log(np.maximum(counts.data, 1)), counts.data)
    if data.weights is not None:
        weighed = sparse.csr_array((values * data.weights, (data.rows, data.cols)), shape=data.shape)
        weights *= weighed[counts.nonzero()] / counts.data
    counts.data = weights.astype(counts.dtype, copy=False)
    found = chosen_entries(counts)
    return replace(
        found,
        row_names=data.row_names,
        column_names=data.column_names,
        origin=data.origin,
        row_features=data.row_features,
        column_features=data.column_features,
    )


def chosen_entries(weights: sparse.csr_array) -> Observations:
    """The stored entries of a matrix, as ones that are so sure."""
    rows, cols = weights.tocoo().coords
    shape = (int(weights.shape[0]), int(weights.shape[1]))
    return Observations(rows.astype(np.int64), cols.astype(np.int64), np.ones_like(weights.data), shape, weights.data)


@dataclass(frozen=True)
class Strangers:
    """Recommends to users by their histories."""

    model: Model
    own: Array | None = None
    """The factors of all who are asked for, item-to-item scores aside, where they are known."""

    def factors(self, rows: sparse.csr_array, features: sparse.csr_array | None = None) -> Array:
        """Of each row of chosen entries, with their weights, and perhaps features."""
        data = replace(chosen_entries(rows), row_features=features)
        return self.model.rows(data) if self.own is None else self.model.with_item_scores(self.own, data)

    def recommend(self, rows: sparse.csr_array, n: int, /) -> tuple[Array, Array]:
        """For each row of chosen entries, with their weights, the n best columns that are not among these."""
        seen = Pairs.stored(rows).__getitem__
        return best_columns(self.factors(rows), self.model.V, min(n, rows.shape[1]), seen)


def held_out_ranking(model: Model, histories: sparse.csr_array, depth: int = 10) -> float:
    """NDCG of a fifth of each history, held out and ranked by factors that are found from the rest."""
    parts = by_entry(histories, (4, 1), seed=0)
    if parts.test.nnz == 0:
        raise InputError("No row has two entries, so none can be held out. Pass rows with at least two.")
    strangers = Split(parts.train, parts.known, parts.test)
    return evaluate(Strangers(model), strangers, depth)[f"ndcg@{depth}"]
