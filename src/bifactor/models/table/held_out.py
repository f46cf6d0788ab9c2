"""Predictions of known cells from the rest of their rows, with columns as they were fitted."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from bifactor.arrays import Array
from bifactor.models.table.factors import TableFactors

FOLDS = 5

JUDGES = 1500
"""Rows at most."""


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Some rows of a table; each of their known cells is hidden once, with a fifth of the others of its row."""

    rows: Array
    """Their places in the table."""
    known: Array
    """n × q: their codes."""
    fold: Array
    """n × q: when a cell was hidden; −1 for holes."""
    middle: Array
    """n × q: what factors said of it then; 0 for holes."""
    apart: Array
    completed: Array
    """folds × n × q: the rows with holes filled in, and what was hidden then."""

    @classmethod
    def of(cls, factors: TableFactors, X: Array, rng: np.random.Generator) -> Self:
        n = len(X)
        rows = np.arange(n) if n <= JUDGES else np.sort(rng.choice(n, JUDGES, replace=False))
        X, own = X[rows], factors.layout.own
        holes = np.isnan(X)
        order = np.argsort(np.where(holes, 2.0, rng.random(X.shape)), axis=1)
        turn = np.argsort(order, axis=1) % FOLDS  # cells of a row, in random order, are dealt out in turn
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
        """Cells that are known."""
        return self.fold >= 0
