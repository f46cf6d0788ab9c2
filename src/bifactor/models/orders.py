"""Ranking criteria for the columns of a row: the mean of z, a bound that holds with some probability, or a draw."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy

from bifactor.arrays import Array, generator
from bifactor.errors import InputError
from bifactor.models.model import Model
from bifactor.models.settings import seed_of
from bifactor.solvers.variational.posterior import Posterior, variance_table

BY = ("mean", "lower", "draw")
"""Names of the ranking criteria."""


@dataclass(frozen=True, eq=False)
class Margin:
    """Margin subtracted from z of some rows: a multiple of its standard deviation."""

    posterior: Posterior
    rows: Array
    multiple: float

    def __call__(self, part: slice) -> Array:
        """Margin of a part of the rows, in all columns."""
        some = self.posterior.rows.take(self.rows[part])
        return self.multiple * np.sqrt(variance_table(some, self.posterior.cols))


@dataclass(frozen=True, eq=False)
class Order:
    """Columns are ranked by UVᵀ minus a margin."""

    U: Array
    V: Array
    margin: Margin | None = None

    def part(self, rows: slice) -> "Order":
        """The order for some of its rows."""
        margin = None if self.margin is None else replace(self.margin, rows=self.margin.rows[rows])
        return Order(self.U[rows], self.V, margin)


def order(model: Model, rows: Array | None, by: str, level: float, random_state: Any) -> Order:
    """Ranking criterion for rows given by index, or for all if None. See `Fit.recommend`."""
    if by not in BY:
        raise InputError(f"by={by!r} is unknown. Pass one of {', '.join(map(repr, BY))}.")
    if by == "mean":
        return Order(model.U if rows is None else model.U[rows], model.V)
    if model.posterior is None:
        raise InputError(f"by={by!r} needs a posterior, but this fit has a ridge. Fit numbers without alpha.")
    places = np.arange(len(model.U)) if rows is None else rows
    if by == "draw":
        return _drawn(model, model.posterior, places, random_state)
    if isinstance(level, bool) or not isinstance(level, (int, float)) or not 0 < level < 1:
        raise InputError(f"level={level!r} is not between 0 and 1. Pass a probability such as 0.9.")
    return Order(model.U[places], model.V, Margin(model.posterior, places, float(scipy.special.ndtri(level))))


def _drawn(model: Model, posterior: Posterior, places: Array, random_state: Any) -> Order:
    """Rank by one draw of the factors, which is the same for repeated rows."""
    rng, dtype = generator(seed_of(random_state)), model.U.dtype
    V = posterior.cols.sample(rng)  # first, so that it does not depend on the rows
    once, back = np.unique(places, return_inverse=True)
    U = posterior.rows.take(once).sample(rng)[back]
    return Order(U.astype(dtype), V.astype(dtype))
