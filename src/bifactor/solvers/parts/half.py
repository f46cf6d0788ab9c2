"""One factor of two in variational Bayes: its posterior row by row, prior and noise."""

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from bifactor.arrays import Array
from bifactor.blocks import Exact
from bifactor.caching import cached_property
from bifactor.factors import Factors
from bifactor.kernels.blocks_reference import triangle
from bifactor.penalties.uncertainty import Around
from bifactor.problems.state import Value
from bifactor.solvers.parts.gamma import Precisions, fitted_precisions
from bifactor.solvers.parts.gaussians import Gaussians
from bifactor.solvers.parts.moments import Data, Places, Sums, solved
from bifactor.solvers.parts.regression import Learned, Regression

Matrices = tuple[sparse.csr_array, ...]
"""Features, one matrix for each regression."""

VAGUE = 0.01
"""Covariances of a start, in shares of the prior's."""


@dataclass(frozen=True)
class Side(Value):
    """What is known of a factor beside its means."""

    covariance: Array
    """Of the unknown columns of each row, packed."""
    volume: float
    """Σ log det of it, over the rows with measurements."""
    prior: Array
    """The precision of each unknown column before the data."""
    noise: Precisions
    """That of the measurements of each row, relative to the others."""
    learned: tuple[Learned, ...] = ()
    """What features tell of the rows, where there are any."""


@dataclass(frozen=True)
class Half:
    """One factor of two: the posterior of its rows, how often they are measured, and its part in the bound."""

    rows: Gaussians
    counts: Array
    volume: float
    noise: Precisions
    regressions: tuple[Regression, ...] = ()
    """By which features tell where rows are expected, where there are any."""

    @classmethod
    def of(cls, x: Factors, which: int, counts: Array, side: Side, shared: bool, features: Matrices) -> "Half":
        means, places = np.asarray((x.left, x.right)[which], np.float64), Places.of(x, which, shared)
        rows = Gaussians(means, side.covariance, places, side.prior, side.noise.mean)
        pairs = zip(features, side.learned, strict=True) if side.learned else ()
        told = tuple(Regression(matrix, counts > 0, learned) for matrix, learned in pairs)
        return cls(rows, counts, side.volume, side.noise, told)

    @classmethod
    def vague(
        cls, x: Factors, which: int, counts: Array, mean_square: float, shared: bool, features: Matrices
    ) -> "Half":
        """Around a start: some doubt about each number, and priors by which the columns share what y² is on average.

        Where they are of the size of the start instead, and that is small, all columns can die before they have begun.
        """
        means, places = np.array((x.left, x.right)[which], np.float64), Places.of(x, which, shared)
        means[np.ix_(counts == 0, places.free)] = 0  # nothing is known of them
        prior = np.full(places.rank, (places.rank / mean_square) ** 0.5)
        covariance = np.zeros((len(means), places.rank * (places.rank + 1) // 2))
        covariance[:, places.diagonal] = VAGUE / prior
        volume = int(np.count_nonzero(counts)) * float(np.sum(np.log(VAGUE / prior)))
        alike = Precisions(np.ones(len(means)))
        told = tuple(Regression.vague(one, counts > 0, prior, places.effects) for one in features if places.rank)
        return cls(Gaussians(means, covariance, places, prior, alike.mean), counts, volume, alike, told)

    @property
    def side(self) -> Side:
        assert self.rows.covariance is not None
        learned = tuple(one.learned for one in self.regressions)
        return Side(self.rows.covariance, self.volume, self.rows.prior, self.noise, learned)

    @property
    def means(self) -> Array:
        return self.rows.means

    @property
    def places(self) -> Places:
        return self.rows.places

    @cached_property
    def moments(self) -> Array:
        """E[bᵀb] of each row, packed."""
        return self.rows.moments

    @property
    def known(self) -> tuple[Array, Array, Array]:
        """What sums for the other factor are made from."""
        return self.means, self.moments, self.rows.precision

    def errors(self, sums: Sums) -> Array:
        """Σ E(y − z)² over the measurements of each row, weighted by the precisions of the other factor."""
        return sums.expected_errors(self.means, self.moments)

    def fitted(self, sums: Sums, data: Data, variance: float, varies: bool) -> tuple["Half", float]:
        """The best posterior for these sums, then noise, prior and the variance of all noise that go with it."""
        new = self
        if self.places.rank:
            precision = self.rows.precision / variance
            means, inverse = solved(sums, self.means, self.places, self.rows.prior, precision, self.expected)
            volume = -float(np.sum(inverse.log_determinants()[self.counts > 0]))
            rows = replace(self.rows, means=means, covariance=inverse.inverse().packed)
            new = replace(self, rows=rows, volume=volume)
        errors = new.errors(sums)
        if varies:
            noise = fitted_precisions(self.counts, errors / variance, self.noise.strength)
            new = replace(new, rows=replace(new.rows, precision=noise.mean), noise=noise)
        mean = float(np.sum(new.rows.precision * errors)) / max(data.size, 1)
        return new.with_best_weights().with_best_prior(), max(mean, data.least_noise)

    @cached_property
    def expected(self) -> Array | None:
        """Where the unknown columns of each row are before the data; None where that is 0."""
        return np.sum([one.expected for one in self.regressions], axis=0) if self.regressions else None

    def with_best_weights(self) -> "Half":
        """With features used as well as they can be; rows without measurements are where these say."""
        found, free = list(self.regressions), self.places.free
        if not found:
            return self
        for k, one in enumerate(found):
            others = sum(other.expected for other in found if other is not one)
            found[k] = one.fitted(self.means[:, free] - others, self.rows.prior)
        new, cold, means = replace(self, regressions=tuple(found)), self.counts == 0, self.means.copy()
        means[np.ix_(cold, free)] = new.around.means[np.ix_(cold, free)]
        return replace(new, rows=replace(self.rows, means=means))

    def with_best_prior(self) -> "Half":
        """With the precisions that fit the columns, or groups of them."""
        groups = self.places.groups
        numbers, squares = np.bincount(groups), np.bincount(groups, self.squares)
        prior = (self.drawn * numbers / np.maximum(squares, 1e-300))[groups]
        return replace(self, rows=replace(self.rows, prior=np.minimum(prior, 1e100)))

    @property
    def squares(self) -> Array:
        """Σ E of the square of each unknown column, over the rows with measurements, and of the weights of features."""
        if not self.regressions:
            return np.sum(self.rows.squares[self.counts > 0], axis=0)
        return np.diagonal(self._moments)

    @property
    def drawn(self) -> int:
        """Numbers that a prior is fitted to: rows with measurements, and features."""
        return self.seen + sum(one.count for one in self.regressions)

    @cached_property
    def _moments(self) -> Array:
        """Σ E[(b − fA)ᵀ(b − fA)] of the unknown columns, over the rows with measurements, and that of the weights."""
        seen, free = self.counts > 0, self.places.free
        apart = (self.means[:, free] - self.expected)[seen]
        first, second = triangle(self.places.rank)
        whole = apart.T @ apart + sum(one.moments for one in self.regressions)
        spread = np.sum(self.side.covariance[seen], axis=0)
        whole[first, second] += spread
        whole[second, first] = whole[first, second]
        return whole

    def slope(self, sums: Sums, variance: float) -> Array:
        """The derivative of the expected errors, halved, in units of the noise: all of the bound but the prior."""
        change = Exact(sums.packed, self.places.width).times(self.means) - sums.linear
        return (self.rows.precision / variance)[:, None] * change

    @property
    def pulled(self) -> Array:
        """The derivative of what the prior adds."""
        pull = np.zeros_like(self.means)
        pull[:, self.places.free] = self.means[:, self.places.free] * self.rows.prior
        if self.expected is not None:
            pull[:, self.places.free] -= self.expected * self.rows.prior
        return pull

    @property
    def around(self) -> Around:
        """The prior as a function of the means."""
        precision, means = np.zeros(self.places.width), np.zeros_like(self.means)
        precision[self.places.free] = self.rows.prior
        if self.expected is not None:
            means[:, self.places.free] = self.expected
        return Around(precision, means)

    def traces(self, packed: Array) -> float:
        """Σ tr(CᵢMᵢ) over the rows, for a matrix M of all columns for each of them."""
        first, second = triangle(self.places.rank)
        double = np.where(first == second, 1.0, 2.0)
        return float(np.sum(self.side.covariance * packed[:, self.places.pairs] * double))

    def component_moments(self, fixed: int) -> Array:
        """Σ E[bᵀb] of the columns behind the fixed ones and their partners, over the rows with measurements."""
        if self.regressions:
            return self._moments[self.places.effects :, self.places.effects :]
        total = np.sum(self.moments[self.counts > 0], axis=0)
        whole = np.zeros((self.places.width,) * 2)
        first, second = triangle(self.places.width)
        whole[first, second] = whole[second, first] = total
        return whole[fixed:, fixed:]

    def turned(self, R: Array, fixed: int) -> "Half":
        """With those columns multiplied by R, and the prior that is best then."""
        means = self.means.copy()
        means[:, fixed:] = self.means[:, fixed:] @ R
        whole = np.eye(self.places.rank)
        whole[-len(R) :, -len(R) :] = R
        volume = self.volume + self.seen * 2 * float(np.linalg.slogdet(R)[1])
        covariance = Exact(self.side.covariance, len(whole)).turned(whole).packed
        rows, told = replace(self.rows, means=means, covariance=covariance), self.regressions
        new = replace(self, rows=rows, volume=volume, regressions=tuple(one.turned(whole) for one in told))
        return new.with_best_prior()

    @property
    def cost_of_spread(self) -> float:
        """The cost but for what the means pay to the prior."""
        seen = self.counts > 0
        if self.expected is None:
            return self.cost - 0.5 * float(np.sum(self.means[seen] * self.pulled[seen]))
        around = self.around
        return self.cost - replace(around, means=around.means[seen]).value(self.means[seen])

    @property
    def cost(self) -> float:
        """The divergence from the prior, and the part of the noise."""
        prior, d = self.rows.prior, self.places.rank
        spread = float(np.sum(prior * self.squares)) - self.volume
        told = sum(one.cost(prior) for one in self.regressions)
        return 0.5 * (spread - self.seen * (d + float(np.sum(np.log(prior))))) + self.noise.cost + told

    @property
    def seen(self) -> int:
        """Rows with measurements."""
        return int(np.count_nonzero(self.counts))
