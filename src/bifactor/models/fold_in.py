"""Factors of new rows for fixed factors of columns: one small convex problem for each row."""

import numpy as np

from bifactor import kernels
from bifactor.arrays import Array
from bifactor.errors import InputError
from bifactor.kernels import blas, rows_reference
from bifactor.operators import Entries
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
    fit, loss = problem.f.fit.take(order), problem.loss
    places = np.cumsum(np.bincount(rows, minlength=problem.shape[0])), operator.cols[order]
    first, compiled = int(columns[0]), fit.compiled(U.dtype, width)
    terms = _ridges(ridge, (len(U), columns.size)), *_forms(problem, V)
    if compiled is not None:
        return kernels.compiled("rows").fit(*compiled, *places, U, V, first, *terms, loss.quadratic)
    parts = loss.value, loss.gradient, loss.curvature
    return rows_reference.fit(*parts, *fit.arrays(), *places, U, V, first, *terms)


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
