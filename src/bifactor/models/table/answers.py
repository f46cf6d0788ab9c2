"""Values for missing cells of a column from predictions of its codes: a best guess, probabilities of levels, a draw."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bifactor.arrays import Array
from bifactor.models.table.codes import ClassCode, Code, LevelCode, NumberCode
from bifactor.models.table.links import Discriminant, ProportionalOdds
from bifactor.tables.forms import ORDINAL


class Score(NamedTuple):
    """Quality of the predictions of known cells of a column from the rest of their rows."""

    error: float
    """Root mean square error of numbers, mean absolute error of grades, share of wrong classes."""
    baseline: float
    """The same with the mean, the median, or the most frequent class as the prediction."""
    cells: int


class Answer(ABC):
    """Values of one column from predictions. `middle` is n × width, in standard deviations."""

    @abstractmethod
    def value(self, middle: Array) -> Array:
        """The best guess."""

    @abstractmethod
    def drawn(self, middle: Array, error: Array, uniform: Array, offset: Array | None) -> Array:
        """A draw, from an error and an offset as in `draws.Errors`, or from a number between 0 and 1."""

    @abstractmethod
    def score(self, middle: Array, truth: Array) -> Score:
        """Score of known cells."""


@dataclass(frozen=True, eq=False)
class NumberAnswer(Answer):
    """The mean."""

    code: NumberCode
    shrinkage: float
    """Factor by which corrections reduce the standard deviation of errors."""

    def value(self, middle: Array) -> Array:
        return self.code.decode(middle[:, 0])

    def drawn(self, middle: Array, error: Array, uniform: Array, offset: Array | None) -> Array:
        """Draw values; errors are added to normal scores, so that frequent values, such as 0, are drawn as often."""
        if offset is None:
            return self.code.decode(middle[:, 0] + self.shrinkage * error)
        scores = self.code.score_of(middle[:, 0]) + offset + self.shrinkage * error
        return self.code.decode(self.code.undo_scores(scores))

    def score(self, middle: Array, truth: Array) -> Score:
        scale = self.code.spread  # so that squares are finite
        error = np.sqrt(np.mean(((self.value(middle) - truth) / scale) ** 2))
        return Score(scale * float(error), scale * float(np.std((truth - self.code.mean) / scale)), truth.size)


@dataclass(frozen=True, eq=False)
class LevelAnswer(Answer):
    """The median of grades, or the most probable level."""

    code: LevelCode | ClassCode
    link: ProportionalOdds | Discriminant

    def levels(self, middle: Array) -> Array:
        """Probabilities, n × K."""
        if isinstance(self.code, ClassCode):
            return self.link.probabilities(middle)[:, self.code.classes] * self.code.within
        return self.link.probabilities(middle[:, 0])

    def value(self, middle: Array) -> Array:
        levels = self.levels(middle)
        if self.code.kind == ORDINAL:
            return _quantile(levels, np.full(len(levels), 0.5))
        return levels.argmax(axis=1)

    def drawn(self, middle: Array, error: Array, uniform: Array, offset: Array | None) -> Array:
        return _quantile(self.levels(middle), uniform)

    def score(self, middle: Array, truth: Array) -> Score:
        told = self.value(middle)
        if self.code.kind == ORDINAL:
            error, baseline = np.abs(told - truth), np.abs(truth - np.median(truth))
        else:
            error, baseline = told != truth, truth != np.bincount(truth.astype(np.int64)).argmax()
        return Score(float(error.mean()), float(baseline.mean()), truth.size)


def _quantile(levels: Array, share: Array) -> Array:
    below = np.cumsum(levels, axis=1)
    return (below < share[:, None]).sum(axis=1).clip(0, levels.shape[1] - 1)


def answer_of(code: Code, middle: Array, x: Array, shrinkage: float) -> Answer:
    """The answer of a column, fitted to predictions of known cells and their values."""
    if isinstance(code, NumberCode):
        return NumberAnswer(code, shrinkage)
    y = x.astype(np.int64)
    if isinstance(code, ClassCode):
        return LevelAnswer(code, Discriminant.of(middle, code.classes[y], len(code.shares)))
    assert isinstance(code, LevelCode)
    return LevelAnswer(code, ProportionalOdds.of(middle[:, 0], y, code.size))
