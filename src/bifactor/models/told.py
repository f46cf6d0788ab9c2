"""Results for pairs of a row and a column."""

from typing import Any

import numpy as np

from bifactor.arrays import Array

KNOWN = ("neither", "row", "column", "both")
"""Which names of a pair are known, indexed by 1 for the row plus 2 for the column."""


def single_or_all(told: Array, rows: Any, cols: Any) -> Array:
    """Results for pairs; a scalar if both sides are single names."""
    return told[0] if np.ndim(rows) == np.ndim(cols) == 0 else told


def known(i: Array, j: Array) -> Array:
    """Which names of pairs of indices are known."""
    return np.array(KNOWN)[(i >= 0) + 2 * (j >= 0)]
