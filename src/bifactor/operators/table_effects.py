"""Approximate effects of rows or columns of a whole table, as a start for steps that visit every cell.

The loss of a cell that is not stored depends on its line (a row or column) only through the effect t of the line and
the offset q of the other line, ℓ(t + q; rest). So the sum of the slopes over q is one function of t, the same for all
lines: it is tabulated on a grid of t, with the offsets sorted into bins. The contribution of stored cells is taken at
t = 0: if slopes are linear in y, as for canonical links, it is the same for any t.
"""

from itertools import pairwise

import numpy as np

from bifactor.arrays import Array
from bifactor.kernels.sheet import Sheet
from bifactor.losses import Loss

FARTHEST = 30.0
"""The largest effect: beyond it, all labels are equal, and counts are huge or zero."""

GRID, BINS = np.linspace(-FARTHEST, FARTHEST, 481), 256
"""Effects at which the function is tabulated, and the number of bins of offsets."""

STORED = 1_000_000
"""The approximate number of stored cells that are processed together."""


def rough_effects(loss: Loss, sheet: Sheet, side: int, offset: Array, ridge: float) -> Array:
    """Effects of columns (side 1) or rows with a ridge; `offset` has the effects of the lines of the other side."""
    weight = np.asarray(sheet.row_weights, np.float64)
    each, whole = (weight, np.ones(sheet.shape[1])) if side else (np.ones(offset.size), weight)
    stored, missing = _stored(loss, sheet, side, offset)
    whole = whole + missing / each.sum()  # the share of the function for each line
    wanted = -stored / np.maximum(whole, 1e-30)
    return np.interp(wanted, _slopes(loss, sheet.rest, offset, each) + ridge * GRID, GRID)


def _stored(loss: Loss, sheet: Sheet, side: int, offset: Array) -> tuple[Array, Array]:
    """The change of the slope of each line by stored cells, and of its weight by missing cells; some rows at a time."""
    (m, n), slopes, missing = sheet.shape, np.zeros(sheet.shape[side]), np.zeros(sheet.shape[side])
    cuts = np.searchsorted(sheet.indptr, np.arange(0, sheet.y.size, STORED)).tolist()
    for start, stop in pairwise([0, *(cut for cut in cuts if 0 < cut < m), m]):
        part = sheet.part(start, stop)
        rows, own = part.stored_rows, part.weights
        line, count, first = (part.cols, n, 0) if side else (rows, stop - start, start)
        z = (offset[start:stop][rows] if side else offset[part.cols]).astype(part.dtype)
        change = own * (loss.gradient(z, part.y) - loss.gradient(z, np.full_like(z, part.rest)))
        slopes[first : first + count] += np.bincount(line, change, count)
        if part.own.size:
            missing[first : first + count] += np.bincount(line, own - part.row_weights[rows], count)
    return slopes, missing


def _slopes(loss: Loss, rest: float, offset: Array, weight: Array) -> Array:
    """Σ w·ℓ′(t + q; rest) at the points t of the grid."""
    low, high = float(offset.min()), float(offset.max())
    place = np.minimum(((offset - low) / max(high - low, 1e-300) * BINS).astype(int), BINS - 1)
    total = np.bincount(place, weight, BINS)
    used = total > 0
    centre = np.bincount(place, weight * offset, BINS)[used] / total[used]
    z = GRID[:, None] + centre
    return loss.gradient(z, np.full(z.shape, rest)) @ total[used]
