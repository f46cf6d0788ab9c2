"""Held-out measurements, which show how well a fit predicts."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np

from bifactor.arrays import Array, to_device_of, to_numpy
from bifactor.errors import InputError
from bifactor.operators import Entries
from bifactor.operators.full_table import FullTable
from bifactor.problems.objective import Objective, Problem
from bifactor.validation import pluralize

FRACTION = 0.1
"""The fraction of the measurements that is held out."""

FEWEST = 2

MOST_CELLS = 1_000_000
"""The largest number of cells of a table that are held out."""


@dataclass(frozen=True, eq=False)
class Holdout:
    """A problem without some of its measurements, and these."""

    problem: Objective
    train: Objective
    """The problem with weight 0 for the measurements held out."""
    weights: Array
    """Weights of the measurements held out."""
    losses: Callable[[Array, Array], Array]
    """ℓ at every measurement held out, from U and V."""

    @classmethod
    def at_random(cls, problem: Objective, rng: np.random.Generator) -> Self:
        """Hold out a tenth of the measurements, or of the cells of a table, but at most `MOST_CELLS` of these."""
        if isinstance(problem.f, FullTable):
            m, n = problem.shape
            drawn = np.unique(rng.integers(0, m * n, min(int(FRACTION * m * n) + 1, MOST_CELLS)))
            return cls.of_cells(problem, *np.divmod(drawn, n))
        assert isinstance(problem, Problem)
        index = np.arange(problem.y.shape[0]) if problem.weights is None else np.flatnonzero(weights_of(problem) > 0)
        count = int(FRACTION * index.size)
        if count < FEWEST:
            raise InputError(
                f"{pluralize(index.size, 'measurement')}: too few to hold some out. Pass a rank, not rank='auto'."
            )
        held = np.zeros(int(problem.y.shape[0]), bool)
        held[rng.choice(index, count, replace=False)] = True
        return cls.of_measurements(problem, held)

    @classmethod
    def of_measurements(cls, problem: Problem, held: Array) -> Self:
        """Hold out the measurements where a mask is True."""
        weights = weights_of(problem)
        train = problem.reweighted(to_device_of(np.where(held, 0.0, weights), problem.f.like))

        def losses(U: Array, V: Array) -> Array:
            return to_numpy(problem.f.fit.losses(problem.operator.forward(U, V)))[held]

        return cls(problem, train, weights[held].astype(np.float64), losses)

    @classmethod
    def of_cells(cls, problem: Objective, rows: Array, cols: Array) -> Self:
        """Hold out those of some cells of a table that are known."""
        table = problem.f
        assert isinstance(table, FullTable)
        y, weights = table.sheet.at(rows, cols)
        known = weights > 0
        if not known.any():
            m, n = table.shape
            raise InputError(f"Too few of the {m}×{n} cells are known to hold some out. Pass ridge.")
        rows, cols, y = rows[known], cols[known], y[known]
        operator = Entries(rows, cols, table.shape)

        def losses(U: Array, V: Array) -> Array:
            z = operator.forward(U, V) + table.offset[rows]
            return table.loss.value(z, y.astype(z.dtype))

        return cls(problem, problem.with_f(table.without(rows, cols)), weights[known], losses)

    def mean(self, losses: Array) -> float:
        return float(np.average(losses, weights=self.weights))

    def standard_error(self, differences: Array) -> float:
        """The standard error of their weighted mean."""
        w = self.weights
        spread = np.average((differences - np.average(differences, weights=w)) ** 2, weights=w) ** 0.5
        return float(spread * np.sum(w**2) ** 0.5 / np.sum(w))


def weights_of(problem: Problem) -> Array:
    """The weights of all measurements."""
    return np.ones(int(problem.y.shape[0])) if problem.weights is None else to_numpy(problem.weights)
