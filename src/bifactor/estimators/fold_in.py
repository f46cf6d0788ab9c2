"""Factors of new rows, with those of the columns held: small convex problems, one for each row."""

import numpy as np

from bifactor.arrays import Array, epsilon
from bifactor.errors import InputError
from bifactor.operators import Entries
from bifactor.penalties import Ridge
from bifactor.problem import Problem
from bifactor.solvers.least_squares import Half

STEPS, HALVINGS = 50, 40
"""Newton steps, and how often one is halved."""

DECREASE = 1e-4
"""Of a step, the share of the decrease it promises."""


def fold_in(problem: Problem, V: Array, ridge: float) -> Array:
    """argmin over U of f(UVᴴ) + (ridge/2)‖U‖², by Newton's method in each row.

    `problem` holds the entries that are known of the new rows. Columns that it fixes stay, as in U = [1, b, …].
    A row of which nothing is known comes out as zeros.
    """
    columns, rest = problem.kind.unknown(V.shape[1])[0], V.shape[1] - problem.kind.fixed_columns
    U = problem.kind.zero(problem.shape, rest, V.dtype).left
    half = Half(problem.penalized(Ridge(ridge) if ridge > 0 else None), np.ascontiguousarray(V[:, columns]), left=True)
    z = problem.measure(U, V)
    values = _values(problem, z, U[:, columns], ridge)
    for _ in range(STEPS):
        S = problem.entrywise(z)
        if S is None:
            raise InputError("Rows are found one by one from their entries only. Use operators.Entries.")
        missing = -half.pull_back(problem.evaluate(z)[1], U[:, columns])
        D = half.divided(S, missing)
        promised = np.sum(missing * D, axis=1)
        active = promised > 1e2 * epsilon(V) * (np.abs(values) + promised)
        if not active.any():
            break
        step = np.where(active, 1.0, 0.0).astype(V.dtype)
        for _ in range(HALVINGS):
            trial = U.copy()
            trial[:, columns] += step[:, None] * D
            z = problem.measure(trial, V)
            reached = _values(problem, z, trial[:, columns], ridge)
            high = ~(reached <= values - DECREASE * step * promised + epsilon(V) * np.abs(values)) & (step > 0)
            if not high.any():
                break
            step[high] /= 2
        U, values = trial, reached
    return U


def _values(problem: Problem, z: Array, moving: Array, ridge: float) -> Array:
    """The objective of each row."""
    assert isinstance(problem.operator, Entries)
    losses = problem.loss.value(z, problem.y).astype(np.float64)
    if problem.weights is not None:
        losses = problem.weights * losses
    total = np.bincount(problem.operator.rows, weights=losses, minlength=problem.shape[0])
    return total + ridge / 2 * np.sum(moving.astype(np.float64) ** 2, axis=1)
