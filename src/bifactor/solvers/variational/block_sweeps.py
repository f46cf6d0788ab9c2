"""The posterior of factors of data in blocks: one pass over the blocks for each sweep.

The longer side is `tall` here. Only the means of its rows are kept, m·r numbers; covariances are computed in a pass,
and again when they are needed. Of the shorter side everything is kept, n·r² numbers. A sweep begins with the shorter
side, whose sums were computed in the last pass, rotates the factors, and finds the rows of the longer side in the next
pass.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from bifactor.arrays import Array, cast, is_foreign, to_numpy
from bifactor.blocks import Exact
from bifactor.executors import row_array
from bifactor.executors.row_array import RowArray
from bifactor.factors import Factors
from bifactor.operators import Partitioned
from bifactor.problems.objective import Objective
from bifactor.problems.state import Point, State, Value
from bifactor.solvers.variational import block_pass as tasks
from bifactor.solvers.variational.factor_posterior import (
    FactorPosterior,
    FactorSpread,
    Totals,
    Uncertainty,
    balancing_rotation,
    is_due,
    pooled_row,
    vague_prior,
)
from bifactor.solvers.variational.moments import DataStatistics, MomentSums, Places, weight_by_precision
from bifactor.solvers.variational.noise import STRENGTH, GammaPrior, Noise, PrecisionStats
from bifactor.solvers.variational.posterior import Again, Gaussians, Posterior
from bifactor.solvers.variational.sweeps import Sweeps


@dataclass(frozen=True)
class Tall(Value, key="variational.blocks.rows"):
    """The posterior of the longer side besides its means."""

    totals: Totals
    prior: Array
    precision: Array | None
    """The precision of the measurements of each row, relative to the others; None if all are equal."""
    strength: float
    cost: float
    """The contribution of the precisions to the negative bound."""
    found_with: tuple[Array, float, Array | None]
    """The prior, the noise and the precisions with which the rows were found; these determine their covariances."""


@dataclass(frozen=True)
class Swept(Value, key="variational.blocks"):
    """The posterior, the noise, and the sums for the shorter side with which the next sweep begins."""

    tall: Tall
    short: FactorSpread
    variance: float
    packed: Array
    linear: Array
    squares: Array
    age: int = 0
    still: int = 0
    """The number of consecutive sweeps that have hardly moved predictions."""

    @property
    def sums(self) -> MomentSums:
        return MomentSums(self.packed, self.linear, self.squares)


class BlockSweeps(Sweeps[Swept]):
    """Sweeps on an objective whose f is `Partitioned`."""

    def __init__(self, problem: Objective, noise: Noise, shared: bool, tol: float):
        super().__init__(problem, noise, shared, tol)
        assert isinstance(problem.f, Partitioned)  # checked by the solver
        self.bound = problem.f
        self.sides = self.bound.sides(0, 1)
        """The numbers of the longer and of the shorter factor."""
        self.precisions: tuple[GammaPrior | None, GammaPrior | None] = self.bound.sides(*noise.sides)
        """The priors of the precisions of the rows of both factors."""
        self.about, self.counts = data_statistics(self.bound)

    def init(self, x: Factors) -> State[Swept]:
        """After half a sweep: the rows of the longer side are found."""
        tall, short = self.sides
        variance = self.about.variance(2 * float(self.problem.f.value(x)))
        half = FactorPosterior.initial(x, short, self.counts, self.about.mean_square, self.shared, ())
        prior = vague_prior(Places.of(x, tall, self.shared), self.about.mean_square)
        precision = None if self.precisions[0] is None else np.ones(self.problem.shape[tall])
        return self._found(x, half, (prior, variance, precision), STRENGTH)[0]

    def step(self, state: State[Swept]) -> State[Swept]:
        own = state.own
        sums = MomentSums(*map(to_numpy, own.sums))
        short, variance = self._half(state).fitted(sums, self.about, own.variance, self.precisions[1])
        prior = own.tall.prior
        if is_due(own.age):
            short, prior = self._turned(state, short)
        found, moved = self._found(state.point.x, short, (prior, variance, own.tall.precision), own.tall.strength)
        still, phase = self.rested(moved, own.still)
        return State(found.point, replace(found.own, age=own.age + 1, still=still), phase)

    def current(self, state: State[Swept]) -> Objective:
        own, short, problem = state.own, self._half(state), self.problem
        tall, how = own.tall, self._finding(state)
        precisions = () if tall.precision is None else (tall.found_with[2], tall.precision)
        known = weight_by_precision(*short.known)
        means = self._sides_of(state.point.x)[0]
        (packed,), q = (
            self.bound.run_pass(tasks.spreads, (means, *precisions), known, (how,)).sums,
            short.rows.precision,
        )
        blocks = packed * (q / own.variance)[:, None]
        constant = self.about.normalisation(own.variance) + tall.totals.cost(tall.prior) + tall.cost
        constant += short.cost_of_spread + 0.5 * short.traces(blocks)
        squares = means.total(tasks.squares) if isinstance(means, RowArray) else tasks.squares(means)
        constant -= 0.5 * float(tall.prior @ squares[how.places.free])
        blocks[:, short.places.pairs[short.places.diagonal]] += short.rows.prior
        left = SpreadInBlocks(self.bound, short.rows, tall, how.places, own.variance)
        term = Uncertainty(*self.bound.sides(left, Exact(blocks, short.places.width)), constant)
        weights = 1 / own.variance if tall.precision is None else to_numpy(tall.precision) / own.variance
        return problem.with_f(self.bound.reweighted(*self.bound.sides(weights, q))).penalized(term)

    def posterior(self, state: State[Swept]) -> Posterior:
        own, short, means = state.own, self._half(state), to_numpy(self._sides_of(state.point.x)[0])
        tall, places = own.tall, self._finding(state).places
        precision = np.broadcast_to(1.0, len(means)) if tall.precision is None else to_numpy(tall.precision)
        rows = Gaussians(means, None, places, tall.prior, precision, again=self._again(state, short, means))
        fixed = means.copy()
        fixed[:, places.free] = 0
        known = weight_by_precision(*short.known)
        (counts,), (packed, linear), _ = self.bound.run_pass(tasks.pool_block, (fixed,), known)
        pooled = MomentSums(packed, linear, np.zeros(1))
        cold = pooled_row(pooled, places, tall.prior, own.variance), short.pooled(own.sums, own.variance)
        found = replace(rows, cold=cold[0]).with_cold(to_numpy(counts), None)
        others = replace(short.rows, cold=cold[1]).with_cold(short.counts, None)
        noise = self.noise.with_strengths(*self.bound.sides(tall.strength, short.noise.strength))
        return Posterior(*self.bound.sides(found, others), own.variance, noise, self.about.mean_weight)

    def _again(self, state: State[Swept], short: FactorPosterior, means: Array) -> Again:
        """A function that computes covariances of rows of the longer side, by a pass over their blocks."""
        bound, how, precision = self.bound, self._finding(state), state.own.tall.found_with[2]
        others, used = short.rows, None if precision is None else to_numpy(precision)

        def again(index: Array) -> Array:
            wanted = np.zeros(len(means), bool)
            wanted[index] = True
            parts = [part for part in bound.store.parts if np.any(wanted[part.start : part.stop])]
            if is_foreign(bound.like) and parts:
                parts = list(bound.store.parts)  # distributed arrays are divided like the blocks
            if not parts:
                return np.empty((0, how.places.rank * (how.places.rank + 1) // 2))
            arrays = (means, wanted) if used is None else (means, used, wanted)
            known = weight_by_precision(*others.known)
            passed = bound.executor.run_pass(parts, bound.recipe, tasks.covariances, arrays, known, (how,))
            found: Array = np.concatenate(passed.each)[(np.cumsum(wanted) - 1)[index]]
            return found

        return again

    def _found(
        self, x: Factors, short: FactorPosterior, found_with: tuple[Array, float, Array | None], strength: float
    ) -> tuple[State[Swept], float]:
        """The state with the rows of the longer side found from the shorter side, and the change of z."""
        prior, variance, precision = found_with
        places = Places.of(x, self.sides[0], self.shared)
        noise = None if self.precisions[0] is None else self.precisions[0].at(strength)
        how = tasks.RowSettings(places, prior, variance, noise)
        before, inner = self._sides_of(x)
        after = cast(short.means, self.problem.dtype)
        arrays = (before,) if precision is None else (before, precision)
        shared = *weight_by_precision(*short.known), inner, after
        (means, *rest), (*sums, errors, moments, volume, seen, told, moved), _ = self.bound.run_pass(
            tasks.sweep_block, arrays, shared, (how,)
        )
        totals, cost = Totals(moments, volume, seen), 0.0
        if noise is not None:
            stats = PrecisionStats(*told)
            strength = noise.refit(stats).strength
            cost = stats.cost(strength)
        tall = Tall(totals, totals.best_prior(places), rest[0] if rest else None, strength, cost, found_with)
        variance = self.about.variance(errors)
        point = self._point(means, after, tall, short, MomentSums(*sums), variance, errors)
        own = Swept(tall, short.side, variance, *sums)
        return State(point, own), self.about.moved(moved, variance)

    def _point(
        self,
        means: Array,
        after: Array,
        tall: Tall,
        short: FactorPosterior,
        sums: MomentSums,
        variance: float,
        errors: float,
    ) -> Point:
        value = self.about.normalisation(variance) + errors / (2 * variance)
        value += tall.totals.cost(tall.prior) + tall.cost + short.cost
        x = self.problem.kind.pair(*self.bound.sides(means, after))
        slopes = self._slope(means, tall, x, variance), short.slope(sums, variance) + short.prior_gradient
        gradient = x.gradient(*self.bound.sides(*slopes))
        return Point(x, value, None, value, gradient, (value, gradient))

    def _slope(self, means: Array, tall: Tall, x: Factors, variance: float) -> Array:
        """The gradient in the longer side; it was 0 for the prior and the noise with which the rows were found."""
        prior, before, precision = tall.found_with
        free = Places.of(x, self.sides[0], self.shared).free
        precisions = () if precision is None else (tall.precision, precision)
        return map_tall(tasks.slopes, means, *precisions, free=free, prior=tall.prior, before=prior * before / variance)

    def _turned(self, state: State[Swept], short: FactorPosterior) -> tuple[FactorPosterior, Array]:
        """The shorter side, and the prior of the longer one, for the factors of the same X that fit the priors best."""
        totals, places = state.own.tall.totals, Places.of(state.point.x, self.sides[0], self.shared)
        together = (totals.drawn, short.totals.drawn) if self.shared else None
        R = balancing_rotation(totals.of_components(places), short.totals.of_components(short.places), together)
        if R is None:
            return short, state.own.tall.prior
        return short.turned(np.linalg.inv(R).T, self.problem.kind.fixed_columns), totals.turned(R).best_prior(places)

    def _half(self, state: State[Swept]) -> FactorPosterior:
        side = state.own.short
        side = replace(
            side, covariance=to_numpy(side.covariance), noise=replace(side.noise, mean=to_numpy(side.noise.mean))
        )
        return FactorPosterior.of(state.point.x, self.sides[1], self.counts, side, self.shared, ())

    def _finding(self, state: State[Swept]) -> tasks.RowSettings:
        """The settings with which the rows of a state were found."""
        prior, variance, _ = state.own.tall.found_with
        return tasks.RowSettings(Places.of(state.point.x, self.sides[0], self.shared), prior, variance)

    def _sides_of(self, x: Factors) -> tuple[Array, Array]:
        tall, short = self.bound.sides(x.left, x.right)
        return tall, to_numpy(short)


@dataclass(frozen=True, eq=False)
class SpreadInBlocks:
    """uᵢ·Aᵢ for each row of the longer side, A the sum of the covariances of the shorter side and of the prior."""

    bound: Partitioned
    short: Gaussians
    tall: Tall
    places: Places
    variance: float

    def times(self, rows: Array) -> Array:
        q = self.short.precision / self.variance
        found: Array = self.bound.run_pass(tasks.spread_times, (rows,), (q[:, None] * self.short.spread,)).tall[0]
        precisions = () if self.tall.precision is None else (self.tall.precision,)
        return map_tall(tasks.with_prior, found, rows, *precisions, free=self.places.free, prior=self.tall.prior)


_known: WeakKeyDictionary[Partitioned, tuple[DataStatistics, Array]] = WeakKeyDictionary()


def data_statistics(bound: Partitioned) -> tuple[DataStatistics, Array]:
    """The statistics of data that do not depend on factors, and the entries of each row of the shorter side; cached."""
    if bound not in _known:
        *about, counts = bound.run_pass(tasks.summarise_block).sums
        _known[bound] = DataStatistics(*about), counts
    return _known[bound]


def map_tall(function: Callable[..., Array], *tall: Any, **settings: Any) -> Array:
    """The function of tall arrays, row by row, applied where they are stored; settings are small."""
    if isinstance(tall[0], RowArray):
        found: Any = row_array.map_parts(partial(function, **settings), *tall)
        return found
    return function(*tall, **settings)
