"""The best columns of each row: by the mean of z, a bound or a draw; the most popular ones for rows without entries."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy

from bifactor.arrays import Array, generator
from bifactor.data.names import INT64, to_python_objects
from bifactor.data.seen_items import Pairs, SeenItems
from bifactor.errors import InputError
from bifactor.kernels.blas import matmul
from bifactor.models.completion.fitting import seed_of
from bifactor.models.model import Model
from bifactor.solvers.variational.posterior import Posterior, variance_table
from bifactor.validation import is_count, pluralize

if TYPE_CHECKING:
    from bifactor.models.fit import Fit

SCORES_PER_BLOCK = 2_000_000
"""Largest number of scores in memory at a time; blocks ten times as large took 1.1 to 1.5 times as long."""

SCORE = 32
"""Bytes for each of these scores: the scores, a copy, an index to sort them by, and the scores of the last block."""

SeenColumns = Callable[[int], Array]
"""Maps the number of a row to the columns that are left out."""


def best_columns(
    U: Array,
    V: Array,
    count: int,
    seen: SeenColumns | None = None,
    allowed: Array | None = None,
    margin: Callable[[slice], Array] | None = None,
) -> tuple[Array, Array]:
    """For each row of U, the `count` columns with the largest u·v, best first, and these numbers.

    `margin` returns numbers to subtract from u·v, for some rows and all columns. `count` must not exceed the number of
    columns. Columns that are `seen` in a row, or not `allowed`, are left out; if fewer remain, the rest is -1, with NaN
    for numbers.
    """
    columns, scores = np.empty((len(U), count), np.int64), np.empty((len(U), count), U.dtype)
    step = max(1, SCORES_PER_BLOCK // V.shape[0])
    for first in range(0, len(U) if count else 0, step):
        z = matmul(U[first : first + step], V.T)
        if margin is not None:
            z -= margin(slice(first, first + step))
        if allowed is not None:
            z[:, ~allowed] = -np.inf
        if seen is not None:
            for k in range(len(z)):
                z[k, seen(first + k)] = -np.inf
        top = np.argpartition(-z, count - 1, axis=1)[:, :count]
        values = np.take_along_axis(z, top, axis=1)
        rank = np.argsort(-values, axis=1, kind="stable")
        scores[first : first + step] = np.take_along_axis(values, rank, axis=1)
        columns[first : first + step] = np.take_along_axis(top, rank, axis=1)
    none = np.isneginf(scores)
    columns[none], scores[none] = -1, np.nan
    return columns, scores


def names_with_gaps(names: Array, none: Array) -> Array:
    """Names with gaps marked by their type: -1 for integers, NaN for numbers, NaT for dates, otherwise None."""
    kind = names.dtype.kind
    if not none.any():
        return names
    if kind in "iu" and int(names.max()) <= INT64.max:
        return np.where(none, -1, names.astype(np.int64))
    if kind in "fmM":
        return np.where(none, np.array("nan" if kind == "f" else "NaT", names.dtype), names)
    return np.where(none, np.array(None), names)


# Ranking criteria for the columns of a row: the mean of z, a bound that holds with some probability, or a draw.

RANKING_MODES = ("mean", "lower", "draw")
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
class RankingCriterion:
    """Columns are ranked by UVᵀ minus a margin."""

    U: Array
    V: Array
    margin: Margin | None = None

    def part(self, rows: slice) -> "RankingCriterion":
        """The order for some of its rows."""
        margin = None if self.margin is None else replace(self.margin, rows=self.margin.rows[rows])
        return RankingCriterion(self.U[rows], self.V, margin)


def make_criterion(model: Model, rows: Array | None, by: str, level: float, random_state: Any) -> RankingCriterion:
    """Ranking criterion for rows given by index, or for all if None. See `Fit.recommend`."""
    if by not in RANKING_MODES:
        raise InputError(f"by={by!r} is unknown. Pass one of {', '.join(map(repr, RANKING_MODES))}.")
    if by == "mean":
        return RankingCriterion(model.U if rows is None else model.U[rows], model.V)
    if model.posterior is None:
        raise InputError(f"by={by!r} needs a posterior, but this fit has a ridge. Fit numbers without ridge.")
    places = np.arange(len(model.U)) if rows is None else rows
    if by == "draw":
        return _drawn(model, model.posterior, places, random_state)
    if isinstance(level, bool) or not isinstance(level, (int, float)) or not 0 < level < 1:
        raise InputError(f"level={level!r} is not between 0 and 1. Pass a probability such as 0.9.")
    return RankingCriterion(
        model.U[places], model.V, Margin(model.posterior, places, float(scipy.special.ndtri(level)))
    )


def _drawn(model: Model, posterior: Posterior, places: Array, random_state: Any) -> RankingCriterion:
    """Rank by one draw of the factors, which is the same for repeated rows."""
    rng, dtype = generator(seed_of(random_state)), model.U.dtype
    V = posterior.cols.sample(rng)  # first, so that it does not depend on the rows
    once, back = np.unique(places, return_inverse=True)
    U = posterior.rows.take(once).sample(rng)[back]
    return RankingCriterion(U.astype(dtype), V.astype(dtype))


class TopColumns(NamedTuple):
    """Lists of column indices, best first, padded with -1; one line for each row."""

    columns: Array
    predicted: Array
    popular: Array
    """Mask of rows without known entries, which get the most popular columns."""


def recommend_names(
    fit: "Fit", order: RankingCriterion, known: Pairs, n: int = 10, filter_seen: bool = True, items: Any = None
) -> tuple[Array, Array]:
    """Names and predictions, clipped, for rows with this order and these known entries; see `Fit.recommend`."""
    if not is_count(n, 1):
        raise InputError(f"n={n!r} is not an integer ≥ 1. Ask for at least one column.")
    columns, predicted, strangers = top_columns(fit, order, known, int(n), filter_seen, allowed_columns(fit, items))
    if strangers.any():
        warnings.warn(
            f"{pluralize(int(strangers.sum()), 'row')} without any choice: the most popular columns are recommended, "
            "with the shares of rows that chose them as scores.",
            UserWarning,
            stacklevel=3,
        )
    return names_with_gaps(fit.cols[columns], columns < 0), predicted


def top_columns(
    fit: "Fit", order: RankingCriterion, known: Pairs, n: int, filter_seen: bool, allowed: Array | None
) -> TopColumns:
    """The same by index; `allowed` is a mask of columns that may be recommended."""
    model = fit.model
    least = int(known.counts.min()) if filter_seen and len(order.U) else 0
    count = min(n, len(fit.cols) - least if allowed is None else int(np.count_nonzero(allowed)))
    seen = known.__getitem__ if filter_seen else None
    columns, z = best_columns(order.U, order.V, count, seen, allowed, order.margin)
    predicted = np.where(columns < 0, np.nan, model.link.mean(z + z.dtype.type(model.link.intercept)))
    strangers = (known.counts == 0) & model.link.of_choices & ~np.any(order.U, axis=1)  # features may give factors
    if strangers.any():
        columns[strangers], predicted[strangers] = popular_columns(fit.seen, len(fit.cols), count, allowed)
    return TopColumns(columns, predicted, strangers)


def popular_columns(known: SeenItems, columns: int, count: int, allowed: Array | None = None) -> tuple[Array, Array]:
    """The most popular columns, best first, and the share of the rows with any choice that chose each."""
    shares = known.popularity(columns) / max(1, int(np.count_nonzero(known.counts)))
    among = np.arange(columns) if allowed is None else np.flatnonzero(allowed)
    best = among[np.argsort(-shares[among], kind="stable")[:count]]
    return best, shares[best]


def allowed_columns(fit: "Fit", items: Any) -> Array | None:
    """Mask of the columns with these names; None for all."""
    if items is None:
        return None
    places = fit.places(items, "column")
    if np.any(places < 0):
        name = to_python_objects(np.atleast_1d(items).ravel()[places < 0])[0]
        raise InputError(f"The fit has no column named {name!r}. Leave it out of items.")
    if places.size == 0:
        raise InputError("items is empty. Pass at least one column.")
    allowed = np.zeros(len(fit.cols), bool)
    allowed[places] = True
    return allowed
