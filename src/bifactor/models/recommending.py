"""What a fit recommends: the best columns of each row."""

from typing import TYPE_CHECKING, Any

import numpy as np

from bifactor.arrays import Array
from bifactor.errors import InputError
from bifactor.models.orders import Order
from bifactor.models.pairs import Pairs
from bifactor.models.ranking import best_columns, gapped
from bifactor.tables.names import listed
from bifactor.validation import is_count

if TYPE_CHECKING:
    from bifactor.models.fit import Fit


def recommended(fit: "Fit", order: Order, seen: Pairs | None, n: int = 10, items: Any = None) -> tuple[Array, Array]:
    """Names and predictions for rows that are ordered like this, but for what they have `seen`; see `Fit.recommend`."""
    if not is_count(n, 1):
        raise InputError(f"n={n!r} is not an integer ≥ 1. Ask for at least one column.")
    allowed = None if items is None else _allowed(fit, items)
    least = int(np.diff(seen.starts).min()) if seen is not None and len(order.U) else 0
    count = min(int(n), len(fit.cols) - least if allowed is None else int(np.count_nonzero(allowed)))
    skipped = None if seen is None else seen.__getitem__
    columns, z = best_columns(order.U, order.V, count, skipped, allowed, order.margin)
    predicted = fit.model.loss.mean(z + z.dtype.type(fit.model.intercept))
    return gapped(fit.cols[columns], columns < 0), np.where(columns < 0, np.nan, predicted)


def _allowed(fit: "Fit", items: Any) -> Array:
    """Which columns these names are."""
    places = fit.places(items, "column")
    if np.any(places < 0):
        name = listed(np.atleast_1d(items).ravel()[places < 0])[0]
        raise InputError(f"There was no column named {name!r} in the fit. Leave it out of items.")
    allowed = np.zeros(len(fit.cols), bool)
    allowed[places] = True
    return allowed
