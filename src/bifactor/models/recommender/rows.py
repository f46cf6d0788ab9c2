"""How a model of clicks finds the factors of new rows: unknown entries count as 0, items chosen together add scores."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy import sparse

from bifactor.arrays import Array
from bifactor.data import Observations
from bifactor.errors import InputError
from bifactor.factors import Factors
from bifactor.models.link import Link
from bifactor.models.model import Model
from bifactor.models.rows import Addition, NewRows, RidgeRows, RowModel, WrappedRows, with_ones
from bifactor.operators.all_cells import all_cells
from bifactor.problems.objective import Problem
from bifactor.solvers.variational.posterior import Gaussians


@dataclass(frozen=True, eq=False)
class ClickRows(RidgeRows):
    """All entries count as 0, and the ridge of a row grows with its known entries."""

    unobserved: float = field(kw_only=True)
    """The weight of all entries, w₀."""
    known: tuple[Array, Array] | None = None
    """Masks of the rows and columns with choices; None for all. Entries of others have no weight."""

    def part(self, side: int) -> Array | None:
        """Mask of the rows (side 0), or columns (1), whose entries count as not chosen, as numbers; None for all."""
        return None if self.known is None or self.known[side].all() else self.known[side].astype(np.float64)

    def extended(self, added: Addition, gaussians: Gaussians | None) -> "ClickRows":
        if self.known is None:
            return self
        known = np.zeros(added.count, bool)
        known[: self.known[added.side].size] = self.known[added.side]
        known[added.seen] = True
        return replace(self, known=(self.known[0], known) if added.side else (known, self.known[1]))

    def transposed(self) -> "ClickRows":
        return self if self.known is None else replace(self, known=self.known[::-1])

    @property
    def card(self) -> dict[str, Any]:
        return super().card | {"unobserved": self.unobserved}

    def _terms(self, problem: Problem, x: Factors, new: Observations) -> tuple[Problem, Array, float | Array]:
        weight, counts = self.unobserved, np.bincount(new.rows, new.weights, new.shape[0])
        problem = problem + all_cells(weight, rows=_rows_with(counts), cols=self.part(1))
        return problem, x.right, self.ridge * (counts + weight * new.shape[1])[:, None]


def _rows_with(counts: Array) -> Array | None:
    """Mask of rows with entries, as numbers; None for all. Rows without entries had no opportunity to choose."""
    return None if np.all(counts > 0) else (counts > 0).astype(np.float64)


@dataclass(frozen=True, eq=False)
class ItemToItem:
    """Scores from items chosen together, in the last columns of the factors: see `item_to_item`."""

    share: float
    """Their share in the scores, at least 0 and below 1."""
    ridge: float
    """The ridge of the regression."""
    carried: Array
    """Contribution of each column to the last factors of the rows that have chosen it."""

    @property
    def rank(self) -> int:
        return int(self.carried.shape[1])

    def rows(self, data: Observations) -> Array:
        """The last factors of rows, from their choices."""
        weights = np.ones(data.values.size, self.carried.dtype) if data.weights is None else data.weights
        chosen = sparse.csr_array((weights, (data.rows, data.cols)), shape=(data.shape[0], len(self.carried)))
        return chosen @ self.carried


@dataclass(frozen=True, eq=False)
class WithItemScores(WrappedRows):
    """Rows whose last factors are item-to-item scores, which are 0 for new columns."""

    items: ItemToItem

    def solve(self, x: Factors, link: Link, new: Observations, side: int) -> NewRows:
        own = self.inner.solve(self.without_items(x), link, new, side).factors
        if side == 0:
            return NewRows(self.joined(own, new))
        nothing = np.zeros((len(own), self.items.rank))
        return NewRows(np.hstack([(1 - self.items.share) * own, nothing]).astype(own.dtype))

    def joined(self, own: Array, new: Observations) -> Array:
        """Factors of rows, followed by those of item-to-item scores."""
        return np.hstack([own, self.items.rows(new)]).astype(own.dtype)

    def without_items(self, x: Factors) -> Factors:
        """The factors without item-to-item scores."""
        own = x.width - self.items.rank
        return with_ones(x.left[:, :own], x.right[:, :own] / np.dtype(x.dtype).type(1 - self.items.share), (0, 0))

    def extended(self, added: Addition, gaussians: Gaussians | None) -> RowModel:
        inner, items = self.inner.extended(added, gaussians), self.items
        if added.side:
            carried = np.pad(items.carried, ((0, added.count - len(items.carried)), (0, 0)))
            items = replace(items, carried=carried)
        return WithItemScores(inner, items)

    @property
    def card(self) -> dict[str, Any]:
        return super().card | {"item_share": self.items.share, "item_ridge": self.items.ridge}

    @property
    def arrays(self) -> dict[str, Array]:
        return {"carried": self.items.carried}


def items_of(model: Model) -> ItemToItem | None:
    """The item-to-item scores of a model; None without."""
    return model.rows.items if isinstance(model.rows, WithItemScores) else None


def without_item_scores(model: Model) -> Model:
    """The model without item-to-item scores."""
    rows = model.rows
    if not isinstance(rows, WithItemScores):
        return model
    return replace(model, factors=rows.without_items(model.factors), rows=rows.inner)


def click_rows(model: Model) -> ClickRows:
    """The weight of items not chosen, and the ridge; raises `InputError` unless the model is one of clicks."""
    base = model.rows.base
    if not isinstance(base, ClickRows):
        raise InputError("Only recommendations from clicks can be explained. Fit a Recommender (--implicit).")
    return base


def with_known(rows: RowModel, known: tuple[Array, Array]) -> RowModel:
    """Rows of clicks with masks of the rows and columns with choices."""
    if isinstance(rows, WrappedRows):
        return replace(rows, inner=with_known(rows.inner, known))
    assert isinstance(rows, ClickRows)
    return replace(rows, known=known)
