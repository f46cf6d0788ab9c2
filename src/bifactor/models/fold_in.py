"""Factors of new rows for fixed factors of columns: one small convex problem for each row."""

from dataclasses import dataclass

import numpy as np

from bifactor import kernels
from bifactor.arrays import Array
from bifactor.blocks import Exact, Shared
from bifactor.errors import InputError
from bifactor.factors import Free
from bifactor.kernels import blas
from bifactor.kernels.rows_reference import DECREASE, FLOOR, HALVINGS, NEGLIGIBLE_DECREASE, ROUNDING, STEPS, VISIBLE
from bifactor.operators import Entries
from bifactor.operators.full_table import FullTable
from bifactor.problems.objective import Problem
from bifactor.validation import require_rows


def fold_in(problem: Problem, V: Array, ridge: float | Array, centre: Array | None = None) -> Array:
    """argmin over U of f(UVᴴ) + ½Σ ρᵢₖ|uᵢₖ − cᵢₖ|², by Newton's method in each row.

    `problem` contains the known entries of the new rows, and optionally `all_cells`. Its fixed columns do not change,
    as in U = [1, b, …]. A row without known entries gets zeros, unless `all_cells` contribute to it.

    Parameters
    ----------
    ridge : number, or an array
        ρ: a number, one number for each unknown column, a matrix, or a matrix of one column with one number per row.
    centre : array, optional
        c, of the shape of U; by default 0.
    """
    if centre is not None:
        return _around(problem, V, ridge, centre)
    operator = problem.operator
    if not isinstance(operator, Entries):
        raise InputError("Rows can be folded in only from entries. Use operators.Entries.")
    width, columns = V.shape[1], problem.kind.unknown(V.shape[1])[0]
    U = problem.kind.zero(problem.shape, width - problem.kind.fixed_columns, V.dtype).left
    if columns.size == 0:
        return U
    require_rows(V, problem.shape[1])
    rows = operator.rows
    order = np.argsort(rows, kind="stable")
    fit = problem.f.fit.take(order)
    places = np.cumsum(np.bincount(rows, minlength=problem.shape[0])), operator.cols[order]
    kernel = kernels.get("rows", U, fit.loop_size, width)
    terms = _ridges(ridge, (len(U), columns.size)), *_forms(problem, V)
    return kernel.fit(problem.loss, *fit.arrays(), *places, U, V, int(columns[0]), *terms)


def _around(problem: Problem, V: Array, ridge: float | Array, centre: Array) -> Array:
    """U = C + E: as fixed columns in addition to those of E, C enters f without a ridge."""
    unknown = problem.kind.unknown(V.shape[1])[0]
    start = problem.kind.zero(problem.shape, V.shape[1] - problem.kind.fixed_columns, V.dtype).left
    start[:, unknown] += centre[:, unknown]
    wider = problem.with_fixed(start, None)
    start[:, unknown] += fold_in(wider, np.hstack([V, V[:, unknown]]), ridge)[:, V.shape[1] :]
    return start


def _ridges(ridge: float | Array, shape: tuple[int, int]) -> Array:
    given = np.asarray(ridge, np.float64)
    try:
        return np.broadcast_to(given, shape).copy()
    except ValueError:
        raise InputError(
            f"ridge has shape {given.shape}, but there are {shape[0]} rows and {shape[1]} unknown columns. "
            "Pass one number, one for each column, or a matrix of one column with one for each row."
        ) from None


def _forms(problem: Problem, V: Array) -> tuple[Array, Array]:
    """w·VᴴTV of `all_cells`, and s of each row."""
    wide = np.result_type(V.dtype, np.float64)
    cells = problem.f.cells
    forms, shares = np.zeros((len(cells), V.shape[1], V.shape[1]), wide), np.ones((problem.shape[0], len(cells)))
    for k, one in enumerate(cells):
        forms[k] = one.weight * blas.wide_gram(V, V, one.sides[1])
        shares[:, k] = 1.0 if one.given.rows is None else one.given.rows
    return forms, shares


# Factors of the rows of a whole table for fixed factors of columns: one small convex problem for each row.

NUMBERS = 20_000_000
"""Largest number of numbers in the curvature blocks of rows at a time."""

CELLS, FOLDS = 4_000_000, 5
"""Cells that are cross-validated at a time, and the number of folds."""


def best_rows(table: FullTable, V: Array, first: int, ridge: float) -> Array:
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


def left_out_loss(table: FullTable, V: Array, first: int, ridge: float) -> float:
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


def _newton(table: FullTable, U: Array, V: Array, first: int, ridge: float) -> Array:
    """Newton's method with separate step lengths for rows; rows that have converged are left alone."""
    eps = float(np.finfo(U.dtype).eps)
    enough = max(NEGLIGIBLE_DECREASE, eps**2)
    U, busy, left, start = np.array(U), np.arange(len(U)), table, np.zeros(len(U))
    for k in range(STEPS):
        here, slopes, step = _step(left, U[busy], V, first, ridge)
        promised: Array = np.sum(slopes * step, axis=1, dtype=np.float64)  # type: ignore[assignment]
        start = np.abs(here) + promised if k == 0 else start
        goes = promised > enough * np.maximum(VISIBLE * start[busy], np.abs(here))
        if not goes.any():
            break
        busy, left = busy[goes], left.take(np.flatnonzero(goes))
        line = RowLineSearch(left, U[busy], V, first, ridge, step[goes], here[goes], promised[goes])
        U[busy], lower = line.shortened(max(ROUNDING, eps / 10))
        busy, left = busy[lower], left.take(np.flatnonzero(lower))
        if busy.size == 0:
            break
    return U


def _step(table: FullTable, U: Array, V: Array, first: int, ridge: float) -> tuple[Array, Array, Array]:
    """The objective of each row, its gradient, and Newton's step."""
    values, slopes, packed = table.passes.rows(Free().pair(U, V), first)
    own = U[:, first:]
    slopes = slopes + own * own.dtype.type(ridge)
    blocks = (Exact(packed, own.shape[1]) + Shared((), float(ridge))).lifted(FLOOR, 0.0)
    return values + 0.5 * ridge * np.sum(own**2, axis=1, dtype=np.float64), slopes, blocks.divide(slopes)


@dataclass(frozen=True)
class RowLineSearch:
    """Rows U, steps to subtract from their columns from `first` on, the objectives here, and the promised decreases."""

    table: FullTable
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
