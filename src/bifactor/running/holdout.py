"""Held-out measurements, which show how well a fit predicts."""

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


class HeldOutStatistics:
    """Statistics of held-out measurements, with their weights."""

    weights: Array

    def mean(self, losses: Array) -> float:
        return float(np.average(losses, weights=self.weights))

    def standard_error(self, differences: Array) -> float:
        """The standard error of their weighted mean."""
        w = self.weights
        spread = np.average((differences - np.average(differences, weights=w)) ** 2, weights=w) ** 0.5
        return float(spread * np.sum(w**2) ** 0.5 / np.sum(w))


class Holdout(HeldOutStatistics):
    """A problem without a tenth of its measurements, and that tenth.

    Attributes
    ----------
    train : Problem
        The problem with weight 0 for the measurements held out.
    """

    def __init__(self, problem: Problem, rng: np.random.Generator):
        size = int(problem.y.shape[0])
        weights = np.ones(size) if problem.weights is None else to_numpy(problem.weights)
        usable = weights > 0
        index = np.flatnonzero(usable)
        count = int(FRACTION * index.size)
        if count < FEWEST:
            raise InputError(
                f"{pluralize(index.size, 'measurement')}: too few to hold some out. Pass a rank, not rank='auto'."
            )
        self.problem = problem
        self.held = np.zeros(size, bool)
        self.held[rng.choice(index, count, replace=False)] = True
        self.train = problem.reweighted(to_device_of(np.where(self.held, 0.0, weights), problem.f.like))
        self.weights = weights[self.held].astype(np.float64)

    def losses(self, U: Array, V: Array) -> Array:
        """ℓ at every measurement held out."""
        return to_numpy(self.problem.f.fit.losses(self.problem.operator.forward(U, V)))[self.held]


class LineHoldout:
    """A problem of entries without those of a tenth of the rows and of a tenth of the columns, and these.

    Attributes
    ----------
    train : Problem
        The problem with weight 0 for the entries held out.
    """

    def __init__(self, problem: Problem, rng: np.random.Generator):
        operator = problem.operator
        assert isinstance(operator, Entries)
        places = operator.rows, operator.cols
        weights = np.ones(problem.y.size) if problem.weights is None else to_numpy(problem.weights)
        self.hidden = []
        for side in places:
            seen = np.unique(side[weights > 0])
            chosen = rng.choice(seen, int(FRACTION * seen.size), replace=False)
            self.hidden.append(np.isin(side, chosen) & (weights > 0))
        left = np.where(self.hidden[0] | self.hidden[1], 0.0, weights)
        self.leaves_some = bool(np.any(left > 0))
        self.train = problem.reweighted(to_device_of(left, problem.f.like))
        self.places, self.y, self.weights = places, to_numpy(problem.y), weights.astype(np.float64)

    def of(self, side: int) -> Array:
        """The entries of rows (side 0) or columns (1) held out, in columns, or rows, that are not."""
        return np.flatnonzero(self.hidden[side] & ~self.hidden[1 - side])


class CellHoldout(HeldOutStatistics):
    """A problem without a tenth of the cells of its table, or `MOST_CELLS` if that is less, and these cells.

    Attributes
    ----------
    train : Objective
        The problem with weight 0 for the cells held out.
    """

    def __init__(self, problem: Objective, rng: np.random.Generator):
        table = problem.f
        assert isinstance(table, FullTable)
        m, n = table.shape
        drawn = np.unique(rng.integers(0, m * n, min(int(FRACTION * m * n) + 1, MOST_CELLS)))
        self.places = np.divmod(drawn, n)
        self.y, self.weights = table.sheet.at(*self.places)
        counts = self.weights > 0
        if not counts.any():
            raise InputError(f"Too few of the {m}×{n} cells are known to hold some out. Pass ridge.")
        self.places = self.places[0][counts], self.places[1][counts]
        self.y, self.weights = self.y[counts], self.weights[counts]
        self.operator, self.table = Entries(*self.places, table.shape), table
        self.train = problem.with_f(table.without(*self.places))

    def losses(self, U: Array, V: Array) -> Array:
        """ℓ at every cell held out."""
        z = self.operator.forward(U, V) + self.table.offset[self.places[0]]
        return self.table.loss.value(z, self.y.astype(z.dtype))
