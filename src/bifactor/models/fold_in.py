"""Factors of new rows, with those of the columns held: small convex problems, one for each row."""

import numpy as np

from bifactor import kernels
from bifactor.arrays import Array
from bifactor.errors import InputError
from bifactor.kernels import blas, rows_reference
from bifactor.operators import Entries
from bifactor.problems.problem import Problem
from bifactor.validation import require_rows


def fold_in(problem: Problem, V: Array, ridge: float | Array, centre: Array | None = None) -> Array:
    """argmin over U of f(UVᴴ) + ½Σ ρᵢₖ|uᵢₖ − cᵢₖ|², by Newton's method in each row.

    `problem` holds the entries that are known of the new rows, and perhaps `all_cells`. Columns that it fixes stay, as
    in U = [1, b, …]. A row of which nothing is known comes out as zeros, unless all cells say otherwise of it.

    Parameters
    ----------
    ridge : number, or an array
        ρ: one for each column that is looked for, or with a row for each row, or a column of one for each row.
    centre : array, optional
        c, as large as U; by default 0.
    """
    if centre is not None:
        return _around(problem, V, ridge, centre)
    operator = problem.operator
    if not isinstance(operator, Entries):
        raise InputError("Rows are found one by one from their entries only. Use operators.Entries.")
    width, columns = V.shape[1], problem.kind.unknown(V.shape[1])[0]
    U = problem.kind.zero(problem.shape, width - problem.kind.fixed_columns, V.dtype).left
    if columns.size == 0:
        return U
    require_rows(V, problem.shape[1])
    rows = operator.rows
    order = np.argsort(rows, kind="stable")
    fit, loss = problem.f.fit.take(order), problem.loss
    places = np.cumsum(np.bincount(rows, minlength=problem.shape[0])), operator.cols[order]
    first, compiled = int(columns[0]), fit.compiled(U.dtype, width)
    terms = _ridges(ridge, (len(U), columns.size)), *_forms(problem, V)
    if compiled is not None:
        return kernels.compiled("rows").fit(*compiled, *places, U, V, first, *terms, loss.quadratic)
    parts = loss.value, loss.gradient, loss.curvature
    return rows_reference.fit(*parts, *fit.arrays(), *places, U, V, first, *terms)


def _around(problem: Problem, V: Array, ridge: float | Array, centre: Array) -> Array:
    """U = C + E: as columns that are fixed, beside those of E, C counts in f and is free of the ridge."""
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
            f"ridge has the shape {given.shape}, but {shape[0]} rows are looked for, in {shape[1]} columns. "
            "Pass one number, one for each column, or a matrix of one column for each row."
        ) from None


def _forms(problem: Problem, V: Array) -> tuple[Array, Array]:
    """w·VᴴTV of all cells, and s of each row."""
    wide = np.result_type(V.dtype, np.float64)
    cells = problem.f.cells
    forms, shares = np.zeros((len(cells), V.shape[1], V.shape[1]), wide), np.ones((problem.shape[0], len(cells)))
    for k, one in enumerate(cells):
        forms[k] = one.weight * blas.wide_gram(V, V, one.sides[1])
        shares[:, k] = 1.0 if one.given.rows is None else one.given.rows
    return forms, shares
