"""Explanations of recommendations: the contribution of each chosen column to a score, and similar rows and columns."""

from typing import Any

import numpy as np

from bifactor.arrays import Array
from bifactor.data import Names
from bifactor.data.names import to_python_objects
from bifactor.errors import InputError
from bifactor.models.fit import Fit
from bifactor.models.recommender.rows import click_rows, items_of, without_item_scores
from bifactor.models.top_k import best_columns, names_with_gaps
from bifactor.validation import is_count


def contributions(fit: Fit, row: Any, col: Any, n: int) -> tuple[Array, Array, float]:
    """The n columns that contribute most to the score of `col` for a row, their contributions, and the rest of it."""
    reasons = Reasons(fit)
    if not is_count(n, 1):
        raise InputError(f"n={n!r} is not an integer ≥ 1. Ask for at least one column.")
    if np.ndim(row) or np.ndim(col):
        raise InputError("Only one recommendation can be explained at a time. Pass one row and one column.")
    (i,), (j,) = fit.places(row, "row"), fit.places(col, "column")
    if i < 0 or j < 0:
        side, name = ("row", row) if i < 0 else ("column", col)
        raise InputError(f"The fit has no {side} named {name!r}. Check the name.")
    (chosen,), (added,) = reasons.of(int(i), np.array([j]), int(n))
    (score,) = fit.model.scores(np.array([i]), np.array([j]))
    return fit.cols[chosen], added, float(score - added.sum())


class Reasons:
    """Contributions to the scores of columns, for any row of a fit to clicks."""

    def __init__(self, fit: Fit):
        model, rows = fit.model, click_rows(fit.model)
        self._seen, self._ridge, self._weight = fit.seen, rows.ridge, rows.unobserved
        self._V, self._items = without_item_scores(model).V.astype(np.float64), items_of(model)
        self._asked = model.V[:, self._V.shape[1] :].astype(np.float64)
        part = rows.part(1)
        self._gram = self._weight * (self._V.T @ (self._V if part is None else part[:, None] * self._V))

    def of(self, row: int, columns: Array, n: int) -> tuple[Array, Array]:
        """For each of these columns, the n that contribute most, and their contributions: both columns × n or fewer."""
        V, chosen, sure = self._V, self._seen[row], self._seen.weights_of(row)
        ridge = self._ridge * (sure.sum() + self._weight * len(V))
        M = self._gram + (V[chosen].T * sure) @ V[chosen] + ridge * np.eye(V.shape[1])
        carried = np.linalg.solve(M, V[columns].T) if ridge > 0 else np.linalg.lstsq(M, V[columns].T)[0]
        added = (sure[:, None] * (V[chosen] @ carried)).T
        if self._items is not None:
            beside = self._asked[columns] @ (sure[:, None] * self._items.carried[chosen]).T
            added = (1 - self._items.share) * added + beside
        order = np.argsort(-added, axis=1, kind="stable")[:, :n]
        return chosen[order], np.take_along_axis(added, order, axis=1)


# Rows or columns whose factors have similar directions.


def nearest(names: Names, factors: Array, asked: Any, n: int, side: str) -> tuple[Array, Array]:
    """For each of these names, the n others with the largest cosines of factors, and these cosines."""
    if not is_count(n, 1):
        raise InputError(f"n={n!r} is not an integer ≥ 1. Ask for at least one.")
    places = names.indices(np.atleast_1d(asked))
    if np.any(places < 0):
        name = to_python_objects(np.atleast_1d(asked).ravel()[places < 0])[0]
        raise InputError(f"The fit has no {side} named {name!r}. Check the name.")
    lengths = np.linalg.norm(factors, axis=1, keepdims=True)
    unit = factors / np.where(lengths > 0, lengths, 1)
    found, cosines = best_columns(unit[places], unit, min(int(n), len(unit) - 1), lambda k: places[k : k + 1])
    return names_with_gaps(names[found], found < 0), cosines
