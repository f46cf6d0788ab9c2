"""Variational Bayes sweeps, and those whose entries, means and covariances are all in memory."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

import numpy as np

from bifactor.arrays import Array, cast
from bifactor.blocks import Exact
from bifactor.factors import Factors
from bifactor.problems.objective import Objective, Problem
from bifactor.problems.state import Fitted, Fitting, Phase, Point, State, Value
from bifactor.solvers.variational.factor_posterior import (
    FactorPosterior,
    FactorSpread,
    Matrices,
    Uncertainty,
    balancing_rotation,
    is_due,
)
from bifactor.solvers.variational.features import FeatureMatrix, ones
from bifactor.solvers.variational.moments import DataStatistics, EntrySums, MomentSums, entries_of
from bifactor.solvers.variational.noise import Noise, Precisions
from bifactor.solvers.variational.posterior import Gaussians, Posterior

STILL = 3
"""The number of consecutive sweeps that must move predictions by less than the tolerance."""

Own = TypeVar("Own", bound=Value)


class Sweeps(ABC, Generic[Own]):
    """The posterior of one problem, sweep by sweep; `shared` says whether components share a prior."""

    about: DataStatistics

    def __init__(self, problem: Objective, noise: Noise, shared: bool, tol: float):
        self.problem, self.noise, self.shared, self.tol = problem, noise, shared, tol

    @abstractmethod
    def init(self, x: Factors) -> State[Own]:
        """The state around a start."""

    @abstractmethod
    def step(self, state: State[Own]) -> State[Own]:
        """The state after one more sweep."""

    @abstractmethod
    def current(self, state: State[Own]) -> Objective:
        """Least squares in the means, plus the contribution of the covariances."""

    @abstractmethod
    def posterior(self, state: State[Own]) -> Posterior:
        """The posterior of the factors."""

    def rested(self, moved: float, still: int) -> tuple[int, Phase]:
        """The number of consecutive sweeps that have hardly moved predictions, and the resulting phase."""
        count = still + 1 if moved <= self.tol else 0
        return count, Fitted() if count >= STILL else Fitting()


# The posterior of factors whose entries, means and covariances are all in memory.


@dataclass(frozen=True)
class Inferred(Value, key="variational"):
    """The posteriors of both factors, the noise, and the sums for the rows of U with which the next sweep begins."""

    rows: FactorSpread
    cols: FactorSpread
    variance: float
    packed: Array
    linear: Array
    squares: Array
    trust: Precisions | None = None
    """The precision of each entry, if these differ."""
    age: int = 0
    still: int = 0
    """The number of consecutive sweeps that have hardly moved predictions."""

    @property
    def sums(self) -> MomentSums:
        return MomentSums(self.packed, self.linear, self.squares)


class EntrySweeps(Sweeps[Inferred]):
    """Sweeps on entries, with features of rows and columns, if any, and the pattern of entries if `implicit`."""

    def __init__(
        self,
        problem: Objective,
        noise: Noise,
        shared: bool,
        tol: float,
        features: tuple[FeatureMatrix | None, FeatureMatrix | None],
        implicit: bool,
    ):
        super().__init__(problem, noise, shared, tol)
        self.features, self.implicit = features, implicit

    @property
    def about(self) -> DataStatistics:  # type: ignore[override]
        return self._data().about

    def init(self, x: Factors) -> State[Inferred]:
        data = self._data()
        variance = data.about.variance(2 * float(self.problem.f.value(x)))
        rows, cols = (
            FactorPosterior.initial(
                x, side, data.counts[side], data.about.mean_square, self.shared, self._features(data, side)
            )
            for side in (0, 1)
        )
        trust = Precisions(np.ones(data.y.size)) if self.noise.per_entry else None
        slope = cols.slope(data.sums(1, *rows.known), variance)
        return self._state(data, rows, cols, variance, slope, trust)

    def step(self, state: State[Inferred]) -> State[Inferred]:
        own, data = state.own, self._data(state)
        rows, cols = self._halves(data, state)
        sums, trust, variance = own.sums, own.trust, own.variance
        if trust is not None:
            trust = self._trust(data, rows, cols, trust, variance)
            data = EntrySums(data.bound, trust.mean)
            sums = data.sums(0, *cols.known)
        rows, variance = rows.fitted(sums, data.about, variance, self.noise.rows)
        sums = data.sums(1, *rows.known)
        cols, variance = cols.fitted(sums, data.about, variance, self.noise.columns)
        slope = cols.slope(sums, variance)
        if is_due(own.age):
            rows, cols, slope = _turned(rows, cols, slope, self.problem.kind.fixed_columns, self.shared)
        new = self._state(data, rows, cols, variance, slope, trust)
        still, phase = self.rested(data.moved(state.point.z, new.point.z, variance), own.still)
        return State(new.point, replace(new.own, age=own.age + 1, still=still), phase)

    def current(self, state: State[Inferred]) -> Objective:
        data, trust = self._data(state), state.own.trust
        cost = 0.0 if trust is None else trust.cost
        return _conditional(self.problem, data, *self._halves(data, state), state.own.variance, cost)

    def posterior(self, state: State[Inferred]) -> Posterior:
        own, data = state.own, self._data(state)
        halves = self._halves(data, state)
        first, second = (
            self._with_cold(half, data.sums(side, *halves[1 - side].known), side, own.variance)
            for side, half in enumerate(halves)
        )
        trust = None if own.trust is None else own.trust.strength
        noise = self.noise.with_strengths(halves[0].noise.strength, halves[1].noise.strength, trust)
        return Posterior(first, second, own.variance, noise, data.about.mean_weight)

    def _data(self, state: State[Inferred] | None = None) -> EntrySums:
        trust = None if state is None else state.own.trust
        return EntrySums(entries_of(self.problem), None if trust is None else trust.mean)

    def _trust(
        self, data: EntrySums, rows: FactorPosterior, cols: FactorPosterior, before: Precisions, variance: float
    ) -> Precisions:
        """The precision of each entry."""
        assert self.noise.entries is not None
        errors = data.errors(rows.known[:2], cols.known[:2])
        return self.noise.entries.at(before.strength).fit((data.given > 0).astype(float), errors / variance)

    def _with_cold(self, half: FactorPosterior, sums: MomentSums, side: int, variance: float) -> Gaussians:
        """The rows of a factor with what predicts new ones; rows without measurements are predicted, too."""
        rows, given = half.rows, self.features[side]
        features = None if given is None else given.with_ones
        if half.regressions:
            told = [one.weights for one in half.regressions]
            rows = replace(rows, weights=(told[0], told[1] if self.implicit else None))
        before = rows.before(half.means, features).means[:, half.places.free]
        return replace(rows, cold=half.pooled(sums, variance, before)).with_cold(half.counts, features)

    def _halves(self, data: EntrySums, state: State[Inferred]) -> tuple[FactorPosterior, FactorPosterior]:
        x, sides = state.point.x, (state.own.rows, state.own.cols)
        rows, cols = (
            FactorPosterior.of(x, k, data.counts[k], sides[k], self.shared, self._features(data, k)) for k in (0, 1)
        )
        return rows, cols

    def _features(self, data: EntrySums, side: int) -> Matrices:
        """The regressors of the prior means: features with a column of ones, and the pattern of entries."""
        given = self.features[side]
        if given is None and not self.implicit:
            return ()
        known = ones(data.shape[side]) if given is None else given.with_ones
        return (known, data.pattern(side)) if self.implicit else (known,)

    def _state(
        self,
        data: EntrySums,
        rows: FactorPosterior,
        cols: FactorPosterior,
        variance: float,
        slope: Array,
        trust: Precisions | None,
    ) -> State[Inferred]:
        """The state at these posteriors; `slope` is that of the means of columns."""
        sums = data.sums(0, *cols.known)
        errors = float(np.sum(rows.rows.precision * rows.errors(sums)))
        value = data.about.normalisation(variance) + errors / (2 * variance) + rows.cost + cols.cost
        value += 0.0 if trust is None else trust.cost
        pair = [cast(half.means, self.problem.dtype) for half in (rows, cols)]
        x = self.problem.kind.pair(*pair)
        gradient = x.gradient(rows.slope(sums, variance) + rows.prior_gradient, slope + cols.prior_gradient)
        z = data.bound.operator.forward(x.left, x.right) if x.width else np.zeros(data.y.size, self.problem.dtype)
        point = Point(x, value, z, value, gradient, (value, gradient))
        return State(point, Inferred(rows.side, cols.side, variance, *sums, trust))


def _turned(
    rows: FactorPosterior, cols: FactorPosterior, slope: Array, fixed: int, shared: bool
) -> tuple[FactorPosterior, FactorPosterior, Array]:
    """The factors of the same X that fit the priors best, and the slope of the columns there."""
    together = (rows.totals.drawn, cols.totals.drawn) if shared else None
    left, right = (half.totals.of_components(half.places) for half in (rows, cols))
    R = balancing_rotation(left, right, together)
    if R is None:
        return rows, cols, slope
    back = np.linalg.inv(R).T
    turned = slope.copy()
    turned[:, fixed:] = slope[:, fixed:] @ R
    return rows.turned(R, fixed), cols.turned(back, fixed), turned


def _conditional(
    problem: Objective, data: EntrySums, rows: FactorPosterior, cols: FactorPosterior, variance: float, cost: float
) -> Objective:
    """The negative bound as a function of the means alone; `cost` is the part of the precisions of entries."""
    assert isinstance(problem, Problem)
    operator = data.bound.operator
    halves, means = (rows, cols), [half.rows.precision for half in (rows, cols)]
    spreads = [half.rows.spread for half in halves]
    blocks = []
    for side in (0, 1):
        other = 1 - side
        packed = data.sums(side, 0 * halves[other].means, spreads[other], means[other]).packed
        blocks.append(packed * (means[side] / variance)[:, None])
    constant = cost + data.about.normalisation(variance) + sum(half.cost_of_spread for half in halves)
    constant += 0.5 * rows.traces(blocks[0])
    priors = (rows.gaussian_prior, cols.gaussian_prior) if rows.regressions or cols.regressions else None
    for half, packed in zip(halves, blocks, strict=True):
        if priors is None:
            packed[:, half.places.pairs[half.places.diagonal]] += half.rows.prior
    width = rows.places.width
    term = Uncertainty(Exact(blocks[0], width), Exact(blocks[1], width), constant, priors)
    weights = means[0][operator.rows] * means[1][operator.cols] / variance
    weights *= 1.0 if data.weights is None else data.weights
    return problem.reweighted(cast(weights, problem.dtype)).penalized(term)
