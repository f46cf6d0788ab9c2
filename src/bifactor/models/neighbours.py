"""Rows or columns whose factors have similar directions."""

from typing import Any

import numpy as np

from bifactor.arrays import Array
from bifactor.errors import InputError
from bifactor.models.ranking import best_columns, gapped
from bifactor.tables import Names
from bifactor.tables.names import listed
from bifactor.validation import is_count


def nearest(names: Names, factors: Array, asked: Any, n: int, side: str) -> tuple[Array, Array]:
    """For each of these names, the n others with the largest cosines of factors, and these cosines."""
    if not is_count(n, 1):
        raise InputError(f"n={n!r} is not an integer ≥ 1. Ask for at least one.")
    places = names.indices(np.atleast_1d(asked))
    if np.any(places < 0):
        name = listed(np.atleast_1d(asked).ravel()[places < 0])[0]
        raise InputError(f"The fit has no {side} named {name!r}. Check the name.")
    lengths = np.linalg.norm(factors, axis=1, keepdims=True)
    unit = factors / np.where(lengths > 0, lengths, 1)
    found, cosines = best_columns(unit[places], unit, min(int(n), len(unit) - 1), lambda k: places[k : k + 1])
    return gapped(names[found], found < 0), cosines
