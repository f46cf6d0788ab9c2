"""Recommendations of a fit: the best columns of each row, or the most popular ones for rows without known entries."""

import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bifactor.arrays import Array
from bifactor.errors import InputError
from bifactor.models.orders import Order
from bifactor.models.pairs import Pairs
from bifactor.models.ranking import best_columns, gapped
from bifactor.models.stored_pairs import Seen
from bifactor.tables.names import listed
from bifactor.validation import counted, is_count

if TYPE_CHECKING:
    from bifactor.models.fit import Fit


class Served(NamedTuple):
    """Lists of column indices, best first, padded with -1; one line for each row."""

    columns: Array
    predicted: Array
    popular: Array
    """Mask of rows without known entries, which get the most popular columns."""


def recommended(
    fit: "Fit", order: Order, known: Pairs, n: int = 10, filter_seen: bool = True, items: Any = None
) -> tuple[Array, Array]:
    """Names and predictions, clipped, for rows with this order and these known entries; see `Fit.recommend`."""
    if not is_count(n, 1):
        raise InputError(f"n={n!r} is not an integer ≥ 1. Ask for at least one column.")
    columns, predicted, strangers = served(fit, order, known, int(n), filter_seen, allowed_columns(fit, items))
    if strangers.any():
        warnings.warn(
            f"{counted(int(strangers.sum()), 'row')} without any choice: the most popular columns are recommended, "
            "with the shares of rows that chose them as scores.",
            UserWarning,
            stacklevel=3,
        )
    return gapped(fit.cols[columns], columns < 0), predicted


def served(fit: "Fit", order: Order, known: Pairs, n: int, filter_seen: bool, allowed: Array | None) -> Served:
    """The same by index; `allowed` is a mask of columns that may be recommended."""
    model = fit.model
    least = int(known.counts.min()) if filter_seen and len(order.U) else 0
    count = min(n, len(fit.cols) - least if allowed is None else int(np.count_nonzero(allowed)))
    seen = known.__getitem__ if filter_seen else None
    columns, z = best_columns(order.U, order.V, count, seen, allowed, order.margin)
    predicted = np.where(columns < 0, np.nan, model.predicted(z + z.dtype.type(model.intercept)))
    strangers = (known.counts == 0) & (model.clicks is not None) & ~np.any(order.U, axis=1)  # features may give factors
    if strangers.any():
        columns[strangers], predicted[strangers] = popular(fit.seen, len(fit.cols), count, allowed)
    return Served(columns, predicted, strangers)


def popular(known: Seen, columns: int, count: int, allowed: Array | None = None) -> tuple[Array, Array]:
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
        name = listed(np.atleast_1d(items).ravel()[places < 0])[0]
        raise InputError(f"The fit has no column named {name!r}. Leave it out of items.")
    if places.size == 0:
        raise InputError("items is empty. Pass at least one column.")
    allowed = np.zeros(len(fit.cols), bool)
    allowed[places] = True
    return allowed
