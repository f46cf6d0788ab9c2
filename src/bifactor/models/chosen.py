"""What makes a model one of clicks, and how it was chosen."""

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from bifactor.arrays import Array
from bifactor.tables import Observations


@dataclass(frozen=True)
class Trial:
    """Settings of a model of clicks, and how well it ranked what was held out."""

    unobserved: float
    alpha: float
    item_share: float
    item_alpha: float
    ndcg: float
    users: int
    """How many were held out; first guesses are judged by some of them."""


@dataclass(frozen=True, eq=False)
class ItemToItem:
    """Scores by what was chosen together, in the last columns of the factors: see `models.item_regression`."""

    share: float
    """Of these in the scores, from 0 to below 1."""
    alpha: float
    """The ridge of the regression."""
    carried: Array
    """What each column adds to the last factors of the rows that have chosen it."""

    @property
    def rank(self) -> int:
        return int(self.carried.shape[1])

    def rows(self, data: Observations) -> Array:
        """The last factors of rows, by what they have chosen."""
        weights = np.ones(data.values.size, self.carried.dtype) if data.weights is None else data.weights
        chosen = sparse.csr_array((weights, (data.rows, data.cols)), shape=(data.shape[0], len(self.carried)))
        return chosen @ self.carried


@dataclass(frozen=True)
class Clicks:
    """All entries count as 0, and a row's ridge grows with what is known of it."""

    unobserved: float
    """The weight of all entries, w₀."""
    tried: tuple[Trial, ...] = ()
    """How it was chosen."""
    interrupted: bool = False
    """Whether the choice was ended from the keyboard."""
    items: ItemToItem | None = None
    known: tuple[Array, Array] | None = None
    """Of each row and of each column, whether something was chosen there; None for all. Of others nothing is said."""

    def part(self, side: int) -> Array | None:
        """The rows (side 0), or columns (1), whose entries count as not chosen, as numbers; None for all."""
        return None if self.known is None or self.known[side].all() else self.known[side].astype(np.float64)

    def with_known(self, side: int, count: int, places: Array) -> "Clicks":
        """With `count` rows or columns, of which these are known as well."""
        if self.known is None:
            return self
        known = np.zeros(count, bool)
        known[: self.known[side].size] = self.known[side]
        known[places] = True
        return replace(self, known=(self.known[0], known) if side else (known, self.known[1]))

    def with_columns(self, count: int) -> "Clicks":
        """For a matrix with more columns, of which nothing is known."""
        if self.items is None:
            return self
        more = count - len(self.items.carried)
        carried = np.pad(self.items.carried, ((0, more), (0, 0)))
        return replace(self, items=replace(self.items, carried=carried))
