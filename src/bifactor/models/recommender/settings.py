"""Settings of a model of clicks."""

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from bifactor.arrays import Array
from bifactor.data import Observations
from bifactor.running.search import Search


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


@dataclass(frozen=True)
class ImplicitFeedback:
    """All entries count as 0, and the ridge of a row grows with its known entries."""

    unobserved: float
    """The weight of all entries, w₀."""
    search: Search | None = None
    """How it was chosen; None if it was given, or if there were too few data."""
    items: ItemToItem | None = None
    known: tuple[Array, Array] | None = None
    """Masks of the rows and columns with choices; None for all. Entries of others have no weight."""

    def part(self, side: int) -> Array | None:
        """Mask of the rows (side 0), or columns (1), whose entries count as not chosen, as numbers; None for all."""
        return None if self.known is None or self.known[side].all() else self.known[side].astype(np.float64)

    def with_known(self, side: int, count: int, places: Array) -> "ImplicitFeedback":
        """The same with `count` rows or columns, of which those at `places` are known as well."""
        if self.known is None:
            return self
        known = np.zeros(count, bool)
        known[: self.known[side].size] = self.known[side]
        known[places] = True
        return replace(self, known=(self.known[0], known) if side else (known, self.known[1]))

    def with_columns(self, count: int) -> "ImplicitFeedback":
        """The same for a matrix with more columns, without known entries."""
        if self.items is None:
            return self
        more = count - len(self.items.carried)
        carried = np.pad(self.items.carried, ((0, more), (0, 0)))
        return replace(self, items=replace(self.items, carried=carried))
