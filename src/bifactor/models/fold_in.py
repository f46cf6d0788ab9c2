"""Factors of new rows, with those of the columns held: small convex problems, one for each row."""

import numpy as np

from bifactor import kernels
from bifactor.arrays import Array
from bifactor.errors import InputError
from bifactor.kernels import rows_reference
from bifactor.operators import Entries
from bifactor.problems.problem import Problem
from bifactor.validation import require_rows


def fold_in(problem: Problem, V: Array, ridge: float | Array) -> Array:
    """argmin over U of f(UVᴴ) + Σ ½ρₖ‖uₖ‖², by Newton's method in each row.

    `problem` holds the entries that are known of the new rows. Columns that it fixes stay, as in U = [1, b, …].
    A row of which nothing is known comes out as zeros.

    Parameters
    ----------
    ridge : number, or one for each column that is looked for
        ρ.
    """
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
    ridges = np.broadcast_to(np.asarray(ridge, np.float64), columns.shape).copy()
    first, compiled = int(columns[0]), fit.compiled(U.dtype, width)
    if compiled is not None:
        return kernels.compiled("rows").fit(*compiled, *places, U, V, first, ridges)
    parts = loss.value, loss.gradient, loss.curvature
    return rows_reference.fit(*parts, *fit.arrays(), *places, U, V, first, ridges)
