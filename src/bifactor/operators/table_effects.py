"""Effects of rows or columns of a whole table, about: where to begin with steps that look at every cell.

A cell that is not stored has a loss that depends on its line, a row or column, only through the effect t of it and the
offset q of the other line, ℓ(t + q; rest). So Σ over q of its slopes is one function of t, the same for all lines: it
is written down at some t, with the offsets sorted into bins. What stored cells change of it is taken at t = 0: where
slopes are linear in y, as with links that go with their losses, it is the same at any t.
"""

import numpy as np

from bifactor.arrays import Array
from bifactor.kernels.sheet import Sheet
from bifactor.losses import Loss

FARTHEST = 30.0
"""Of effects: beyond, labels are all alike and counts without end, or zero."""

GRID, BINS = np.linspace(-FARTHEST, FARTHEST, 481), 256
"""Effects at which the function is written down, and bins of offsets."""


def rough_effects(loss: Loss, sheet: Sheet, side: int, offset: Array, ridge: float) -> Array:
    """Effects of columns (side 1) or rows under a ridge; `offset` has those of the lines of the other side."""
    count, rows = sheet.shape[side], sheet.stored_rows
    weight = np.asarray(sheet.row_weights, np.float64)
    line, other = (sheet.cols, rows) if side else (rows, sheet.cols)
    each, whole = (weight, np.ones(count)) if side else (np.ones(offset.size), weight)
    z, own = offset[other].astype(sheet.dtype), sheet.weights
    stored = own * (loss.gradient(z, sheet.y) - loss.gradient(z, np.full(z.shape, sheet.rest, z.dtype)))
    if sheet.own.size:  # holes and other weights change the share of the function that a line has
        whole = whole + np.bincount(line, own - weight[rows], count) / each.sum()
    wanted = -np.bincount(line, stored, count) / np.maximum(whole, 1e-30)
    return np.interp(wanted, _slopes(loss, sheet.rest, offset, each) + ridge * GRID, GRID)


def _slopes(loss: Loss, rest: float, offset: Array, weight: Array) -> Array:
    """Σ w·ℓ′(t + q; rest) at the points t of the grid."""
    low, high = float(offset.min()), float(offset.max())
    place = np.minimum(((offset - low) / max(high - low, 1e-300) * BINS).astype(int), BINS - 1)
    total = np.bincount(place, weight, BINS)
    used = total > 0
    centre = np.bincount(place, weight * offset, BINS)[used] / total[used]
    z = GRID[:, None] + centre
    return loss.gradient(z, np.full(z.shape, rest)) @ total[used]
