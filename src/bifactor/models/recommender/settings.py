"""Settings of a model of clicks, and how they were chosen."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from bifactor.arrays import Array
from bifactor.data import Observations
from bifactor.errors import InputError
from bifactor.validation import is_at_least_zero, is_count


@dataclass(frozen=True)
class Trial:
    """Settings of a model of clicks, and how well it ranked held-out choices."""

    unobserved: float
    ridge: float
    item_share: float
    item_ridge: float
    ndcg: float
    users: int
    """Number of held-out users; first guesses are evaluated with some of them."""


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
    tried: tuple[Trial, ...] = ()
    """How it was chosen."""
    interrupted: bool = False
    """Whether the choice was interrupted from the keyboard."""
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


def require_click_settings(n_components: Any, unobserved: Any, ridge: Any, item_share: Any, item_ridge: Any) -> None:
    """Raise `InputError` unless these are valid settings of a `Recommender`."""
    if unobserved != "auto" and not (is_at_least_zero(unobserved) and float(unobserved) > 0):
        raise InputError(f"unobserved={unobserved!r} is not a number above 0. Pass such a number, or 'auto'.")
    if ridge is None:
        raise InputError("ridge=None is for numbers with a posterior. Pass a number ≥ 0, or 'auto'.")
    if item_share != "auto" and not (is_at_least_zero(item_share) and float(item_share) < 1):
        raise InputError(f"item_share={item_share!r} is not a number ≥ 0 and < 1. Pass such a number, or 'auto'.")
    if item_ridge != "auto" and not (is_at_least_zero(item_ridge) and float(item_ridge) > 0):
        raise InputError(f"item_ridge={item_ridge!r} is not a number above 0. Pass such a number, or 'auto'.")
    if not is_count(n_components, 1):
        raise InputError(f"n_components={n_components!r} is not an integer ≥ 1. Pass the number of components.")
