"""Factors of the rows of a whole table for fixed factors of columns: one small convex problem for each row."""

from dataclasses import dataclass

import numpy as np

from bifactor.arrays import Array
from bifactor.blocks import Exact, Shared
from bifactor.factors import Free
from bifactor.kernels.rows_reference import DECREASE, ENOUGH, FLOOR, HALVINGS, ROUNDING, STEPS, VISIBLE
from bifactor.operators.full_table import Table

NUMBERS = 20_000_000
"""Largest number of numbers in the curvature blocks of rows at a time."""

CELLS, FOLDS = 4_000_000, 5
"""Cells that are cross-validated at a time, and the number of folds."""


def best_rows(table: Table, V: Array, first: int, ridge: float) -> Array:
    """argmin over the columns of U from `first` on of f(UVᵀ) + ½ρ‖U‖²; the others are ones. Newton's method per row."""
    m, width = table.shape[0], V.shape[1]
    U = np.zeros((m, width), V.dtype)
    U[:, :first] = 1
    if width == first:
        return U
    height = max(1, 2 * NUMBERS // width**2)
    for start in range(0, m, height):
        stop = min(start + height, m)
        U[start:stop] = _newton(table.part(start, stop), U[start:stop], V, first, ridge)
    return U


def left_out_loss(table: Table, V: Array, first: int, ridge: float) -> float:
    """Σ w·ℓ over all cells; a fifth of them at a time is predicted by rows fitted to the other four fifths."""
    m, n = table.shape
    rng, total, height = np.random.default_rng(0), 0.0, max(1, CELLS // n)
    for start in range(0, m, height):
        part = table.part(start, min(start + height, m))
        fold = rng.permutation(part.shape[0] * n) % FOLDS
        for k in range(FOLDS):
            at = np.divmod(np.flatnonzero(fold == k), n)
            if at[0].size == 0:
                continue
            U = best_rows(part.without(*at), V, first, ridge)
            z = np.einsum("tk,tk->t", U[at[0]], V[at[1]]) + part.offset[at[0]]
            y, w = part.sheet.at(*at)
            total += float(np.sum(w * table.loss.value(z, y.astype(z.dtype)), dtype=np.float64))
    return total


def _newton(table: Table, U: Array, V: Array, first: int, ridge: float) -> Array:
    """Newton's method with separate step lengths for rows; rows that have converged are left alone."""
    eps = float(np.finfo(U.dtype).eps)
    enough = max(ENOUGH, eps**2)
    U, busy, left, start = np.array(U), np.arange(len(U)), table, np.zeros(len(U))
    for k in range(STEPS):
        here, slopes, step = _step(left, U[busy], V, first, ridge)
        promised: Array = np.sum(slopes * step, axis=1, dtype=np.float64)  # type: ignore[assignment]
        start = np.abs(here) + promised if k == 0 else start
        goes = promised > enough * np.maximum(VISIBLE * start[busy], np.abs(here))
        if not goes.any():
            break
        busy, left = busy[goes], left.take(np.flatnonzero(goes))
        line = Line(left, U[busy], V, first, ridge, step[goes], here[goes], promised[goes])
        U[busy], lower = line.shortened(max(ROUNDING, eps / 10))
        busy, left = busy[lower], left.take(np.flatnonzero(lower))
        if busy.size == 0:
            break
    return U


def _step(table: Table, U: Array, V: Array, first: int, ridge: float) -> tuple[Array, Array, Array]:
    """The objective of each row, its gradient, and Newton's step."""
    values, slopes, packed = table.passes.rows(Free().pair(U, V), first)
    own = U[:, first:]
    slopes = slopes + own * own.dtype.type(ridge)
    blocks = (Exact(packed, own.shape[1]) + Shared((), float(ridge))).lifted(FLOOR, 0.0)
    return values + 0.5 * ridge * np.sum(own**2, axis=1, dtype=np.float64), slopes, blocks.divide(slopes)


@dataclass(frozen=True)
class Line:
    """Rows U, steps to subtract from their columns from `first` on, the objectives here, and the promised decreases."""

    table: Table
    U: Array
    V: Array
    first: int
    ridge: float
    step: Array
    here: Array
    promised: Array

    def shortened(self, rounding: float) -> tuple[Array, Array]:
        """The rows after steps that lower their objectives, halved if necessary; and which rows have such a step."""
        found, pending, a, left = np.array(self.U), np.arange(len(self.U)), 1.0, self.table
        done = np.ones(len(self.U), bool)
        for _ in range(HALVINGS):
            trial = np.array(self.U[pending])
            trial[:, self.first :] -= self.step[pending] * self.step.dtype.type(a)
            with np.errstate(over="ignore", invalid="ignore"):  # a step that is too long is halved
                reached = left.passes.row_values(Free().pair(trial, self.V))
                reached += 0.5 * self.ridge * np.sum(trial[:, self.first :] ** 2, axis=1, dtype=np.float64)
            before = self.here[pending]
            # Losses of a row may cancel, so that their sum is small compared with its rounding error.
            noise = rounding * (np.abs(before) + self.table.shape[1])
            lower = reached <= before - DECREASE * a * self.promised[pending] + noise
            found[pending[lower]] = trial[lower]
            pending, a = pending[~lower], a / 2
            if pending.size == 0:
                break
            left = left.take(np.flatnonzero(~lower))
        done[pending] = False
        return found, done
