"""Values for missing cells of a column from predictions of its codes: a best guess, probabilities of levels, a draw.

If the predictions do not help, because the rest of the table says nothing about a column or its levels are too rare,
values come from the distribution of the column alone.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from bifactor.arrays import Array
from bifactor.models.table.codes import ClassCode, Code, LevelCode, NumberCode
from bifactor.models.table.links import Discriminant, Frequencies, ProportionalOdds
from bifactor.tables.forms import ORDINAL

PARTS = 4
"""Number of parts of the known cells: each part is judged by links fitted to the others."""


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


@dataclass(frozen=True, eq=False)
class MeanAnswer(Answer):
    """The mean of a column of numbers, and draws from its distribution, whatever the predictions are."""

    code: NumberCode

    def value(self, middle: Array) -> Array:
        return self.code.decode(np.zeros(len(middle)))

    def drawn(self, middle: Array, error: Array, uniform: Array, offset: Array | None) -> Array:
        return self.code.decode(self.code.undo_scores(ndtri(uniform)))


@dataclass(frozen=True, eq=False)
class LevelAnswer(Answer):
    """The median of grades, or the most probable level."""

    code: LevelCode | ClassCode
    link: ProportionalOdds | Discriminant | Frequencies

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


def _quantile(levels: Array, share: Array) -> Array:
    below = np.cumsum(levels, axis=1)
    return (below < share[:, None]).sum(axis=1).clip(0, levels.shape[1] - 1)


def answer_of(
    code: Code, middle: Array, x: Array, shrinkage: float, rng: np.random.Generator
) -> tuple[Answer, Score | None]:
    """The answer of a column, fitted to predictions of known cells and their values, and its score.

    That is the answer from predictions, unless the distribution alone is as accurate in known cells. For levels, the
    sum of the gains must be larger than its standard error. (Without this margin, errors of tables of 120 to 600 rows
    with many rare levels were 2 to 7 % larger.) The standard error of squared errors may be due to a few outliers.
    """
    plain = _plain(code)
    if x.size < 2:
        return plain, None
    part, told, simple = rng.permutation(x.size) % PARTS, np.empty(x.size), plain.value(middle)
    for k in range(PARTS):
        here = part == k
        if here.any():
            told[here] = _informed(code, middle[~here], x[~here], shrinkage).value(middle[here])
    losses, without = _losses(code, told, x), _losses(code, simple, x)
    gains, baseline = without - losses, _mean(code, without)
    if gains.sum() <= (0 if isinstance(code, NumberCode) else np.sqrt(gains @ gains)):
        return plain, Score(baseline, baseline, x.size)
    return _informed(code, middle, x, shrinkage), Score(_mean(code, losses), baseline, x.size)


def _plain(code: Code) -> Answer:
    if isinstance(code, NumberCode):
        return MeanAnswer(code)
    assert isinstance(code, LevelCode | ClassCode)
    return LevelAnswer(code, Frequencies(code.shares))


def _informed(code: Code, middle: Array, x: Array, shrinkage: float) -> Answer:
    if isinstance(code, NumberCode):
        return NumberAnswer(code, shrinkage)
    y = x.astype(np.int64)
    if isinstance(code, ClassCode):
        return LevelAnswer(code, Discriminant.of(middle, code.classes[y], len(code.shares)))
    assert isinstance(code, LevelCode)
    return LevelAnswer(code, ProportionalOdds.of(middle[:, 0], y, code.size))


def _losses(code: Code, told: Array, truth: Array) -> Array:
    """Squared errors of numbers in units of the spread, absolute errors of grades, 1 for wrong classes."""
    if isinstance(code, NumberCode):
        return np.asarray(((told - truth) / code.spread) ** 2)
    return np.asarray(np.abs(told - truth) if code.kind == ORDINAL else told != truth, np.float64)


def _mean(code: Code, losses: Array) -> float:
    """The mean loss of a column in its units; of numbers, its root."""
    mean = float(np.mean(losses))
    return code.spread * mean**0.5 if isinstance(code, NumberCode) else mean
