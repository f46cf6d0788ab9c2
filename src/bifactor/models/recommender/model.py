"""Implicit feedback: entries that were chosen, a weak statement that all others were not, and new users."""

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from bifactor.arrays import Array
from bifactor.data import Dataset
from bifactor.data.seen_items import Pairs
from bifactor.errors import InputError
from bifactor.executors import Executor
from bifactor.losses import Squared
from bifactor.models.model import Model
from bifactor.models.recommender.rows import ClickRows, WithItemScores
from bifactor.models.recommender.weights import chosen_entries
from bifactor.models.side_information import ScaledFeatures
from bifactor.models.top_k import best_columns
from bifactor.operators.all_cells import all_cells
from bifactor.penalties import Ridge
from bifactor.problems.objective import Objective, objective_of
from bifactor.ranking import Split, by_entry, evaluate


def clicks_problem(
    data: Dataset,
    rows: ClickRows,
    sides: ScaledFeatures | None = None,
    executor: Executor | None = None,
) -> Objective:
    f = data.bind(Squared(), executor=executor)
    a, b = ridge_weights(data, rows.unobserved)
    if sides is not None:
        f, a, b = sides.wrap(f), sides.weights(0, a), sides.weights(1, b)
    penalty = Ridge(rows.ridge, rows=a, cols=b) if rows.ridge > 0 else None
    return objective_of(f, penalty) + all_cells(rows.unobserved, rows.part(0), rows.part(1))


def ridge_weights(data: Dataset, unobserved: float) -> tuple[Array, Array]:
    """a and b, the ridge weights of rows and columns."""
    (m, n), (rows, cols) = data.shape, data.weight_sums()
    return rows + unobserved * n, cols + unobserved * m


@dataclass(frozen=True)
class ColdUserRecommender:
    """Recommends to new users from their histories."""

    model: Model
    own: Array | None = None
    """Factors of these users without item-to-item scores, if already known."""

    def factors(self, rows: sparse.csr_array, features: sparse.csr_array | None = None) -> Array:
        """Factors for each row of weighted choices, with optional features."""
        data = replace(chosen_entries(rows), row_features=features)
        if self.own is None:
            return self.model.fold_in(data).factors
        assert isinstance(self.model.rows, WithItemScores)
        return self.model.rows.joined(self.own, data)

    def recommend(self, rows: sparse.csr_array, n: int, /) -> tuple[Array, Array]:
        """The n best columns for each row of weighted choices that are not among these."""
        seen = Pairs.stored(rows).__getitem__
        return best_columns(self.factors(rows), self.model.V, min(n, rows.shape[1]), seen)


def held_out_ranking(model: Model, histories: sparse.csr_array, depth: int = 10) -> float:
    """NDCG of a held-out fifth of each history, ranked by factors computed from the rest."""
    parts = by_entry(histories, (4, 1), seed=0)
    if parts.test.nnz == 0:
        raise InputError("No row has two entries, so none can be held out. Pass rows with at least two.")
    judged = np.flatnonzero(np.diff(parts.test.indptr))
    strangers = Split(parts.train, parts.known[judged], parts.test[judged])
    return evaluate(ColdUserRecommender(model), strangers, depth)[f"ndcg@{depth}"]
