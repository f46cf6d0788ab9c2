"""Values for missing cells of a column from predictions of its codes: a best guess, probabilities of levels, a draw.

If the predictions do not help, because the rest of the table says nothing about a column or its levels are too rare,
values come from the distribution of the column alone.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from scipy.special import expit, ndtri, softmax

from bifactor.arrays import Array
from bifactor.data.column_types import ORDINAL
from bifactor.models.imputation.encoding import ClassCode, Code, LevelCode, NumberCode

ROUNDS, SMALL = 50, 1e-6
"""Largest number of Newton steps, and the step length that ends them."""

NARROWEST = 1e-8
"""Smallest distance between thresholds."""

SLOPE, HEAVY = 1.0, 1.0
"""Prior mean of the slope, and its weight in observations."""

BLUNT, MILD = 10.0, 3.0
"""Weights, in observations, of the prior of the common covariance of classes, and of the prior of class means."""


@dataclass(frozen=True, eq=False)
class Frequencies:
    """The shares of levels, whatever the predictions are."""

    shares: Array

    def probabilities(self, z: Array) -> Array:
        return np.tile(self.shares, (len(z), 1))


@dataclass(frozen=True, eq=False)
class ProportionalOdds:
    """P(level ≤ k) = σ(θₖ − bz)."""

    thresholds: Array
    slope: float

    @classmethod
    def of(cls, z: Array, y: Array, size: int) -> Self:
        """Fitted to predictions z of cells with levels y, by Newton's method on the convex −log-likelihood."""
        counts = np.bincount(y, minlength=size) + 0.5
        below = np.cumsum(counts)[:-1] / counts.sum()
        theta, b = np.log(below / (1 - below)), SLOPE
        # Half an observation in each level, at z = 0, keeps thresholds apart if a level does not occur.
        z, y = np.append(z, np.zeros(size)), np.append(y, np.arange(size))
        w = np.append(np.ones(len(z) - size), np.full(size, 0.5))
        value = _loss(theta, b, z, y, w)
        for _ in range(ROUNDS):
            step = np.linalg.solve(*_quadratic(theta, b, z, y, w))
            share = 1.0
            while share > 1e-8:
                there, slope = theta - share * step[:-1], b - share * step[-1]
                if np.all(np.diff(there) > NARROWEST) and (found := _loss(there, slope, z, y, w)) <= value:
                    theta, b, value = there, float(slope), found
                    break
                share /= 2
            if share * np.abs(step).max() < SMALL or share <= 1e-8:
                break
        return cls(theta, b)

    def probabilities(self, z: Array) -> Array:
        ends = np.zeros((len(z), 1))
        below = expit(self.thresholds - self.slope * z[:, None])
        return np.diff(np.concatenate([ends, below, ends + 1], axis=1), axis=1)


def _sides(theta: Array, b: float, z: Array, y: Array) -> tuple[Array, Array]:
    """θ above and below each observation, minus bz; ±40 beyond the last threshold."""
    ends = np.concatenate([[-40.0], theta, [40.0]])
    return ends[y + 1] - b * z, ends[y] - b * z


def _loss(theta: Array, b: float, z: Array, y: Array, w: Array) -> float:
    """−log-likelihood: two logistic observations, and the gap between the thresholds."""
    above, below = _sides(theta, b, z, y)
    cells = np.logaddexp(0, -above) + np.logaddexp(0, below) - np.log(-np.expm1(below - above))
    return float(w @ cells) + HEAVY / 2 * (b - SLOPE) ** 2


def _quadratic(theta: Array, b: float, z: Array, y: Array, w: Array) -> tuple[Array, Array]:
    """Hessian and gradient of the loss in (θ, b)."""
    size = len(theta) + 1
    above, below = _sides(theta, b, z, y)
    p, q, gap = expit(above), expit(below), 1 / np.expm1(np.minimum(above - below, 80))
    up, down, bend = w * (p - 1 - gap), w * (q + gap), w * gap * (1 + gap)
    steep_up, steep_down = w * p * (1 - p), w * q * (1 - q)

    def per_threshold(at_upper: Array, at_lower: Array) -> Array:
        both = np.bincount(y + 1, at_upper, size + 1) + np.bincount(y, at_lower, size + 1)
        return both[1:size]

    H = np.diag(np.append(per_threshold(steep_up + bend, steep_down + bend), 0.0))
    inner = np.arange(size - 2)
    H[inner, inner + 1] = H[inner + 1, inner] = -np.bincount(y, bend, size)[1 : size - 1]
    H[:-1, -1] = H[-1, :-1] = -per_threshold(steep_up * z, steep_down * z)
    H[-1, -1] = (steep_up + steep_down) @ z**2 + HEAVY
    slope = -np.sum((up + down) * z) + HEAVY * (b - SLOPE)
    return H + 1e-10 * np.eye(size), np.append(per_threshold(up, down), slope)


@dataclass(frozen=True, eq=False)
class Discriminant:
    """Classes as normal distributions of the predictions with a common covariance, so that log odds are linear."""

    slopes: Array
    offsets: Array

    @classmethod
    def of(cls, Z: Array, y: Array, size: int) -> Self:
        n, width = Z.shape
        counts = np.bincount(y, minlength=size)
        sums = np.zeros((size, width))
        np.add.at(sums, y, Z)
        apart = Z - (sums / np.maximum(counts, 1)[:, None])[y]
        scatter = apart.T @ apart
        blunt = max(float(np.trace(scatter)) / (width * max(n, 1)), 1e-12)
        precision = np.linalg.inv((scatter + BLUNT * blunt * np.eye(width)) / (n + BLUNT))
        means = (sums + MILD * Z.mean(axis=0)) / (counts + MILD)[:, None]
        slopes = means @ precision
        offsets = np.log(counts + 0.5) - 0.5 * np.sum(slopes * means, axis=1)
        return cls(slopes, offsets)

    def probabilities(self, Z: Array) -> Array:
        return softmax(Z @ self.slopes.T + self.offsets, axis=1)


PARTS = 4
"""Number of parts of the known cells: each part is judged by links fitted to the others."""


class Score(NamedTuple):
    """Quality of the predictions of known cells of a column from the rest of their rows."""

    error: float
    """Root mean square error of numbers, mean absolute error of grades, share of wrong classes."""
    baseline: float
    """The same with the mean, the median, or the most frequent class as the prediction."""
    cells: int


class ColumnDecoder(ABC):
    """Values of one column from predictions. `middle` is n × width, in standard deviations."""

    @abstractmethod
    def value(self, middle: Array) -> Array:
        """The best guess."""

    @abstractmethod
    def drawn(self, middle: Array, error: Array, uniform: Array, offset: Array | None) -> Array:
        """A draw, from an error and an offset as in `draws.Errors`, or from a number between 0 and 1."""


@dataclass(frozen=True, eq=False)
class NumberDecoder(ColumnDecoder):
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
class MeanDecoder(ColumnDecoder):
    """The mean of a column of numbers, and draws from its distribution, whatever the predictions are."""

    code: NumberCode

    def value(self, middle: Array) -> Array:
        return self.code.decode(np.zeros(len(middle)))

    def drawn(self, middle: Array, error: Array, uniform: Array, offset: Array | None) -> Array:
        return self.code.decode(self.code.undo_scores(ndtri(uniform)))


@dataclass(frozen=True, eq=False)
class LevelDecoder(ColumnDecoder):
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


def fit_decoder(
    code: Code, middle: Array, x: Array, shrinkage: float, rng: np.random.Generator
) -> tuple[ColumnDecoder, Score | None]:
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


def _plain(code: Code) -> ColumnDecoder:
    if isinstance(code, NumberCode):
        return MeanDecoder(code)
    assert isinstance(code, LevelCode | ClassCode)
    return LevelDecoder(code, Frequencies(code.shares))


def _informed(code: Code, middle: Array, x: Array, shrinkage: float) -> ColumnDecoder:
    if isinstance(code, NumberCode):
        return NumberDecoder(code, shrinkage)
    y = x.astype(np.int64)
    if isinstance(code, ClassCode):
        return LevelDecoder(code, Discriminant.of(middle, code.classes[y], len(code.shares)))
    assert isinstance(code, LevelCode)
    return LevelDecoder(code, ProportionalOdds.of(middle[:, 0], y, code.size))


def _losses(code: Code, told: Array, truth: Array) -> Array:
    """Squared errors of numbers in units of the spread, absolute errors of grades, 1 for wrong classes."""
    if isinstance(code, NumberCode):
        return np.asarray(((told - truth) / code.spread) ** 2)
    return np.asarray(np.abs(told - truth) if code.kind == ORDINAL else told != truth, np.float64)


def _mean(code: Code, losses: Array) -> float:
    """The mean loss of a column in its units; of numbers, its root."""
    mean = float(np.mean(losses))
    return code.spread * mean**0.5 if isinstance(code, NumberCode) else mean
