"""What is told of pairs of a row and a column."""

from typing import Any

import numpy as np

from bifactor.arrays import Array

KNOWN = ("neither", "row", "column", "both")
"""What is known of a pair, by 1 for the row plus 2 for the column."""


def single_or_all(told: Array, rows: Any, cols: Any) -> Array:
    """What is told of pairs: a single value where both sides are a single name."""
    return told[0] if np.ndim(rows) == np.ndim(cols) == 0 else told


def known(i: Array, j: Array) -> Array:
    """What is known of pairs of places."""
    return np.array(KNOWN)[(i >= 0) + 2 * (j >= 0)]
