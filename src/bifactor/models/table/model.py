"""A fitted table: imputation of missing cells, probabilities of levels, and draws."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np

from bifactor.arrays import Array
from bifactor.models.table.answers import Answer, LevelAnswer, Score, answer_of
from bifactor.models.table.draws import Drawing
from bifactor.models.table.factors import OnRound, TableFactors
from bifactor.models.table.forests import FEWEST, Forests
from bifactor.models.table.held_out import HeldOut
from bifactor.models.table.layout import Layout, Schema
from bifactor.models.table.stack import Stack

FAST, FULL = "fast", "full"
EFFORTS = FAST, FULL

ROUNDS, TOLERANCE = 100, 5e-3
"""Defaults for the factors. A fifth of the tolerance changed errors by less than 0.5 %, and took twice as long."""

CHUNK = 1 << 14
"""Rows filled in at a time."""


@dataclass(frozen=True, eq=False)
class Predictor:
    """Factors of a table and corrections to their predictions."""

    factors: TableFactors
    forests: Forests | None
    stack: Stack

    def predict(self, X: Array, column: int | None = None) -> Array:
        """Predictions of missing cells, in standard deviations; with `column`, corrected in that column only."""
        plain, scores = self.factors.encoded(X)
        guess = self.factors.guess(plain, scores)
        corrections = [guess.apart[:, :, None]]
        if self.forests is not None:
            holes = np.isnan(plain)
            wanted = holes if column is None else holes & (self.factors.layout.own == column)
            completed = np.where(holes, guess.middle, plain)
            corrections.append(self.forests.told(completed, guess.middle, wanted))
        return self.stack.corrected(guess.middle, np.concatenate(corrections, axis=2))


@dataclass(frozen=True, eq=False)
class TableModel:
    """A predictor of all columns that vary, and an answer for each of them."""

    layout: Layout
    schema: Schema
    constants: Array
    """Values of constant columns, NaN for others."""
    predictor: Predictor | None
    """None if no column varies."""
    answers: dict[int, Answer]
    scores: dict[int, Score]

    @classmethod
    def fit(
        cls,
        X: Array,
        schema: Schema,
        effort: str = FULL,
        *,
        seed: int = 0,
        max_iter: int = ROUNDS,
        tol: float = TOLERANCE,
        on_round: OnRound = lambda *_: False,
    ) -> Self:
        """Fit to X, n × p with NaN for missing cells: numbers, or indices of levels in columns of any other kind."""
        layout = Layout.of(X, schema)
        first = X[np.isnan(X).argmin(axis=0), np.arange(X.shape[1])]
        constants = np.where([code is None for code in layout.codes], first, np.nan)
        if layout.width == 0:
            return cls(layout, schema, constants, None, {}, {})
        factors = TableFactors.of(layout, X, effort == FULL, seed, max_iter, tol, on_round)
        rng = np.random.default_rng(seed)
        held_out = HeldOut.of(factors, X, rng)
        forests, corrections = None, [held_out.apart[:, :, None]]
        if effort == FULL and len(held_out.rows) >= FEWEST:
            forests, told = Forests.of(layout, held_out, seed)
            corrections.append(told)
        stack, predicted = Stack.of(layout, held_out, np.concatenate(corrections, axis=2), rng)
        answers, scores = {}, {}
        for j, code, span in layout.places:
            rows = held_out.mask[:, span.start]
            middle, x = predicted[rows, span], X[held_out.rows[rows], j]
            answers[j], score = answer_of(code, middle, x, _shrinkage(held_out, predicted, span.start), rng)
            if score is not None:
                scores[j] = score
        return cls(layout, schema, constants, Predictor(factors, forests, stack), answers, scores)

    def fill(self, X: Array) -> Array:
        """The table with missing cells filled in, except in columns that were empty in the fit."""
        found = np.where(np.isnan(X), self.constants, X)
        for rows, middle in self._chunks(X):
            for j, holes, span in self._holes(X[rows]):
                found[rows[holes], j] = self.answers[j].value(middle[holes, span])
        return found

    def probabilities(self, X: Array, column: int) -> Array:
        """Probabilities of the levels of a column from the rest of each row; its own cells are not used."""
        found = np.zeros((len(X), self.schema.sizes[column]))
        answer = self.answers.get(column)
        if not isinstance(answer, LevelAnswer):
            if np.isnan(self.constants[column]):
                return found + 1 / found.shape[1]
            found[:, int(self.constants[column])] = 1
            return found
        hidden = X.copy()
        hidden[:, column] = np.nan
        for rows, middle in self._chunks(hidden, column):
            found[rows] = answer.levels(middle[:, self.layout.spans[column]])
        return found

    def draws(self, X: Array, count: int, seed: int) -> Iterator[Array]:
        """Tables with missing cells drawn at random, jointly, each with its own draw of loadings."""
        rng = np.random.default_rng(seed)
        chunks = list(self._chunks(X))
        for _ in range(count):
            found = np.where(np.isnan(X), self.constants, X)
            drawing = None if self.predictor is None else Drawing.of(self.predictor.factors, rng)
            for rows, middle in chunks:
                assert drawing is not None
                numbers, uniform, offsets = drawing.errors(X[rows], rng)
                for j, holes, span in self._holes(X[rows]):
                    at = holes, span.start
                    offset = None if offsets is None else offsets[at]
                    found[rows[holes], j] = self.answers[j].drawn(middle[holes, span], numbers[at], uniform[at], offset)
            yield found

    def _chunks(self, X: Array, column: int | None = None) -> Iterator[tuple[Array, Array]]:
        """Rows with missing cells, some at a time, and predictions of their codes."""
        rows = np.flatnonzero(np.isnan(X).any(axis=1))
        for start in range(0, len(rows) if self.predictor is not None else 0, CHUNK):
            assert self.predictor is not None
            part = rows[start : start + CHUNK]
            yield part, self.predictor.predict(X[part], column)

    def _holes(self, X: Array) -> Iterator[tuple[int, Array, slice]]:
        """Columns with missing cells in these rows, masks of these cells, and the encoded columns."""
        for j, _, span in self.layout.places:
            holes = np.isnan(X[:, j])
            if holes.any():
                yield j, holes, span


def _shrinkage(held_out: HeldOut, predicted: Array, place: int) -> float:
    """Factor by which corrections reduce the standard deviation of the errors of draws, in hidden cells."""
    rows = held_out.mask[:, place]
    truth, drawn = held_out.known[rows, place], held_out.middle[rows, place] + held_out.apart[rows, place] / 2
    before, after = np.mean((truth - drawn) ** 2), np.mean((truth - predicted[rows, place]) ** 2)
    return float(np.sqrt(np.clip(after / before, 0.04, 1))) if before > 0 else 1.0
