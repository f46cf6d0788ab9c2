"""Predictions of known cells from the rest of their rows, for fixed fitted columns."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from bifactor.arrays import Array
from bifactor.models.table.factors import TableFactors

FOLDS = 5

JUDGES = 1500
"""Largest number of rows."""


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Some rows of a table; each of their known cells is hidden once, together with a fifth of its row."""

    rows: Array
    """Indices of the rows in the table."""
    known: Array
    """Codes of the rows, n × q."""
    fold: Array
    """Fold in which a cell is hidden, n × q; −1 for missing cells."""
    middle: Array
    """Predictions of the factors for the hidden cell, n × q; 0 for missing cells."""
    apart: Array
    completed: Array
    """Rows with missing and hidden cells filled in, folds × n × q."""

    @classmethod
    def of(cls, factors: TableFactors, X: Array, rng: np.random.Generator) -> Self:
        n = len(X)
        rows = np.arange(n) if n <= JUDGES else np.sort(rng.choice(n, JUDGES, replace=False))
        X, own = X[rows], factors.layout.own
        holes = np.isnan(X)
        order = np.argsort(np.where(holes, 2.0, rng.random(X.shape)), axis=1)
        turn = np.argsort(order, axis=1) % FOLDS  # cells of a row, in random order, go to the folds in turn
        turn[holes] = -1
        fold, (plain, scores) = turn[:, own], factors.encoded(X)
        middle, apart = np.zeros(plain.shape), np.zeros(plain.shape)
        completed = np.empty((FOLDS, *plain.shape))
        for k in range(FOLDS):
            hidden = fold == k
            shown = np.where(hidden, np.nan, plain)
            guess = factors.guess(shown, None if scores is None else np.where(hidden, np.nan, scores))
            middle[hidden], apart[hidden] = guess.middle[hidden], guess.apart[hidden]
            completed[k] = np.where(np.isnan(shown), guess.middle, shown)
        return cls(rows, plain, fold, middle, apart, completed)

    @property
    def mask(self) -> Array:
        """Mask of known cells."""
        return self.fold >= 0
