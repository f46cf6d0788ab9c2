"""One of the two factors in variational Bayes: the posterior of its rows, its prior, its sums and its rotation."""

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import scipy
from scipy import sparse

from bifactor._compat import cached_property
from bifactor.arrays import Array, inner, inners
from bifactor.blocks import Exact
from bifactor.factors import Factors
from bifactor.kernels.row_blocks_reference import triangle
from bifactor.penalties.base import Penalty
from bifactor.problems.state import Value
from bifactor.solvers.variational.features import Learned, Regression
from bifactor.solvers.variational.moments import DataStatistics, MomentSums, Places, solve_rows
from bifactor.solvers.variational.noise import GammaPrior, Precisions
from bifactor.solvers.variational.posterior import Gaussians


@dataclass(frozen=True)
class Totals(Value, key="variational.totals"):
    """Sums over the rows with measurements, and over features, if any."""

    moments: Array
    """Σ E[(b − f)ᵀ(b − f)] of the unknown columns b with prior means f."""
    volume: float
    """Σ log det of the covariances."""
    seen: int
    """The number of rows."""
    told: int = 0
    """The number of features, whose weights have the same prior."""

    @property
    def drawn(self) -> int:
        """The number of values to which the prior of a column is fitted."""
        return self.seen + self.told

    def best_prior(self, places: Places) -> Array:
        """The best precisions for the columns, or groups of them."""
        numbers = np.bincount(places.groups)
        squares = np.bincount(places.groups, np.diagonal(self.moments))
        prior = (self.drawn * numbers / np.maximum(squares, 1e-300))[places.groups]
        return np.minimum(prior, 1e100)

    def of_components(self, places: Places) -> Array:
        """The moments of columns that are unknown on both sides."""
        return self.moments[places.effects :, places.effects :]

    def turned(self, R: Array) -> "Totals":
        """The sums for components that are multiplied by R."""
        whole = widen_rotation(R, len(self.moments))
        volume = self.volume + self.seen * 2 * float(np.linalg.slogdet(R)[1])
        return replace(self, moments=whole.T @ self.moments @ whole, volume=volume)

    def cost(self, prior: Array) -> float:
        """The divergence from the prior, without that of the weights of features."""
        spread = float(prior @ np.diagonal(self.moments)) - self.volume
        return 0.5 * (spread - self.seen * (prior.size + float(np.sum(np.log(prior)))))


def widen_rotation(R: Array, rank: int) -> Array:
    """R for the last of this many columns; the others are unchanged."""
    whole = np.eye(rank)
    whole[rank - len(R) :, rank - len(R) :] = R
    return whole


# The rotation of factors with covariances that minimises the cost of the priors.

OFTEN, SELDOM = 10, 5
"""Factors are rotated after each of the first OFTEN sweeps, and then after every SELDOM sweeps."""


def is_due(age: int) -> bool:
    """Whether factors are rotated in the sweep of this number."""
    return age < OFTEN or age % SELDOM == 0


def balancing_rotation(left: Array, right: Array, shared: tuple[int, int] | None = None) -> Array | None:
    """R such that RᵀPR and R⁻¹QR⁻ᵀ are diagonal and equal; P and Q are the second moments of the two factors.

    With a precision fitted to each column, the divergence from the priors is ½m·Σ log of the diagonal of P and the same
    for Q, up to terms that no R changes. By Hadamard's inequality it is least if both are diagonal. None if a column
    has vanished, or there is none.

    If all columns of a factor share one precision, `shared` are the numbers of rows: see `_shared_scales`.
    """
    if len(left) == 0:
        return None
    try:
        L = np.linalg.cholesky(left)
    except np.linalg.LinAlgError:
        return None
    values, Q = np.linalg.eigh(L.T @ right @ L)
    values, Q = values[::-1], Q[:, ::-1]
    if not values[-1] > 0:
        return None
    sizes = values**0.25
    return np.linalg.solve(L.T, Q) * (sizes if shared is None else sizes * _shared_scales(sizes**2, *shared))


def _shared_scales(sizes: Array, m: int, n: int) -> Array:
    """The s for moments diag(sizes·s²) of U and diag(sizes/s²) of V that minimises the cost of shared priors.

    The cost is ½mr·log Σ sizes·s² + ½nr·log Σ sizes/s² − (m − n)·Σ log s, which is convex in log s; at its minimum, the
    derivative with respect to R is zero, too.
    """
    logs, r = np.log(sizes), sizes.size

    def cost(t: Array) -> tuple[float, Array]:
        parts = logs + t, logs - t
        value = m * r * scipy.special.logsumexp(parts[0]) + n * r * scipy.special.logsumexp(parts[1])
        slope = m * r * scipy.special.softmax(parts[0]) - n * r * scipy.special.softmax(parts[1])
        return (value - (m - n) * np.sum(t)) / (m + n), (slope - (m - n)) / (m + n)

    return np.exp(scipy.optimize.minimize(cost, np.zeros(r), jac=True, method="BFGS").x / 2)


# The contribution of uncertain factors to expected squared errors.


@dataclass(frozen=True, eq=False)
class GaussianPrior:
    """½Σᵢₖ aₖ(uᵢₖ − mᵢₖ)²: a prior with precisions a and means m."""

    precision: Array
    means: Array

    def slope(self, rows: Array) -> Array:
        return (rows - self.means) * self.precision

    def value(self, rows: Array) -> float:
        return 0.5 * inner(rows - self.means, self.slope(rows))


class RowMatrices(Protocol):
    """A matrix Mᵢ for each row, given by its products."""

    def times(self, rows: Array) -> Array:
        """aᵢ·Mᵢ for each row aᵢ; `Exact` is such a form."""


@dataclass(frozen=True, eq=False)
class Uncertainty(Penalty):
    """½Σᵢ uᵢAᵢuᵢᵀ + ½Σⱼ vⱼBⱼvⱼᵀ + constant, with a matrix for each row of U and of V, and priors for both.

    The result of `solvers.Variational` has one: if factors have covariances, E‖z − y‖² is ‖z − y‖² at their means plus
    such a form, in which Aᵢ collects the covariances of the columns observed in row i, and the prior if its mean is 0.
    """

    left: RowMatrices
    right: RowMatrices
    constant: float
    priors: tuple[GaussianPrior, GaussianPrior] | None = None
    """The priors whose means are not 0, if any."""

    def evaluate(self, x: Factors) -> tuple[float, Factors]:
        g = self._times(x)
        value = self.constant + 0.5 * sum(inners((x.left, g[0]), (x.right, g[1])))
        if self.priors is None:
            return value, x.gradient(*g)
        first, second = self.priors
        value += first.value(x.left) + second.value(x.right)
        return value, x.gradient(g[0] + first.slope(x.left), g[1] + second.slope(x.right))

    def hessian(self, x: Factors, d: Factors) -> Factors:
        g = self._times(d)
        if self.priors is not None:
            g = g[0] + self.priors[0].precision * d.left, g[1] + self.priors[1].precision * d.right
        return x.gradient(*g)

    def _times(self, x: Factors) -> tuple[Array, Array]:
        return self.left.times(x.left), self.right.times(x.right)


Matrices = tuple[sparse.csr_array, ...]
"""Features, one matrix for each regression."""

VAGUE = 0.01
"""The covariances of a start, as a share of the prior covariance."""


@dataclass(frozen=True)
class FactorSpread(Value, key="variational.factor"):
    """The posterior of a factor besides its means."""

    covariance: Array
    """The covariance of the unknown columns of each row, packed."""
    volume: float
    """Σ log det of the covariances, over the rows with measurements."""
    prior: Array
    """The prior precision of each unknown column."""
    noise: Precisions
    """The precision of the measurements of each row, relative to the others."""
    learned: tuple[Learned, ...] = ()
    """The fitted regressions on features, if any."""


@dataclass(frozen=True)
class FactorPosterior:
    """One of the two factors: the posterior of its rows, their numbers of measurements, and its part of the bound."""

    rows: Gaussians
    counts: Array
    volume: float
    noise: Precisions
    regressions: tuple[Regression, ...] = ()
    """The regressions on features that give the prior means of rows, if any."""

    @classmethod
    def of(
        cls, x: Factors, which: int, counts: Array, side: FactorSpread, shared: bool, features: Matrices
    ) -> "FactorPosterior":
        means, places = np.asarray((x.left, x.right)[which], np.float64), Places.of(x, which, shared)
        rows = Gaussians(means, side.covariance, places, side.prior, side.noise.mean)
        pairs = zip(features, side.learned, strict=True) if side.learned else ()
        told = tuple(Regression(matrix, counts > 0, learned) for matrix, learned in pairs)
        return cls(rows, counts, side.volume, side.noise, told)

    @classmethod
    def initial(
        cls, x: Factors, which: int, counts: Array, mean_square: float, shared: bool, features: Matrices
    ) -> "FactorPosterior":
        """Around a start: small covariances, and priors with which the columns together explain the mean of y².

        With priors of the size of a small start, all columns could vanish in the first sweeps.
        """
        means, places = np.array((x.left, x.right)[which], np.float64), Places.of(x, which, shared)
        means[np.ix_(counts == 0, places.free)] = 0  # they have no data
        prior = vague_prior(places, mean_square)
        covariance = np.zeros((len(means), places.rank * (places.rank + 1) // 2))
        covariance[:, places.diagonal] = VAGUE / prior
        volume = int(np.count_nonzero(counts)) * float(np.sum(np.log(VAGUE / prior)))
        alike = Precisions(np.ones(len(means)))
        told = tuple(Regression.initial(one, counts, prior, places.effects) for one in features if places.rank)
        return cls(Gaussians(means, covariance, places, prior, alike.mean), counts, volume, alike, told)

    @property
    def side(self) -> FactorSpread:
        assert self.rows.covariance is not None
        learned = tuple(one.learned for one in self.regressions)
        return FactorSpread(self.rows.covariance, self.volume, self.rows.prior, self.noise, learned)

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
        """The quantities needed for the sums of the other factor."""
        return self.means, self.moments, self.rows.precision

    def errors(self, sums: MomentSums) -> Array:
        """Σ E(y − z)² over the measurements of each row, weighted by the precisions of the other factor."""
        return sums.expected_errors(self.means, self.moments)

    def solve_rows(self, sums: MomentSums, variance: float) -> "FactorPosterior":
        """The best posterior of the rows for these sums."""
        if not self.places.rank:
            return self
        precision = self.rows.precision / variance
        means, inverse = solve_rows(sums, self.means, self.places, self.rows.prior, precision, self.expected)
        volume = -float(np.sum(inverse.log_determinants()[self.counts > 0]))
        rows = replace(self.rows, means=means, covariance=inverse.inverse().packed)
        return replace(self, rows=rows, volume=volume)

    def fitted(
        self, sums: MomentSums, about: DataStatistics, variance: float, prior: GammaPrior | None
    ) -> tuple["FactorPosterior", float]:
        """The best posterior for these sums, then the corresponding noise, prior and overall variance of the noise.

        `prior` is that of the precisions of rows, if these differ.
        """
        new = self.solve_rows(sums, variance)
        errors = new.errors(sums)
        if prior is not None:
            noise = prior.at(self.noise.strength).fit(self.counts, errors / variance)
            new = replace(new, rows=replace(new.rows, precision=noise.mean), noise=noise)
        total = float(np.sum(new.rows.precision * errors))
        return new.with_best_weights().with_best_prior(), about.variance(total)

    @cached_property
    def expected(self) -> Array | None:
        """The prior means of the unknown columns of each row; None if they are 0."""
        return np.sum([one.expected for one in self.regressions], axis=0) if self.regressions else None

    def pooled(self, sums: MomentSums, variance: float, told: Array | float = 0.0) -> Array:
        """The unknown columns of one row that best explain the measurements of all, besides what features tell of each.

        A row without measurements is predicted by it. The mean of all rows would be that of rows with few measurements:
        films that few people have seen are rated lower, but most ratings are of others.
        """
        rows = self.means.copy()
        rows[:, self.places.free] = told
        return pooled_row(pooled_sums(sums, rows), self.places, self.rows.prior, variance)

    def with_best_weights(self) -> "FactorPosterior":
        """The same with the best weights of features; rows without measurements get the means that these predict."""
        found, free = list(self.regressions), self.places.free
        if not found:
            return self
        for k, one in enumerate(found):
            others = sum(other.expected for other in found if other is not one)
            found[k] = one.fitted(self.means[:, free] - others, self.rows.prior)
        new, cold, means = replace(self, regressions=tuple(found)), self.counts == 0, self.means.copy()
        means[np.ix_(cold, free)] = new.gaussian_prior.means[np.ix_(cold, free)]
        return replace(new, rows=replace(self.rows, means=means))

    def with_best_prior(self) -> "FactorPosterior":
        """The same with the best precisions for the columns, or groups of them."""
        return replace(self, rows=replace(self.rows, prior=self.totals.best_prior(self.places)))

    @cached_property
    def totals(self) -> Totals:
        seen, free = (self.counts > 0).astype(np.float64), self.places.free
        apart = self.means[:, free] if self.expected is None else self.means[:, free] - self.expected
        first, second = triangle(self.places.rank)
        whole = (apart * seen[:, None]).T @ apart + sum(one.moments for one in self.regressions)
        whole[first, second] += seen @ self.side.covariance
        whole[second, first] = whole[first, second]
        told = sum(one.count for one in self.regressions)
        return Totals(whole, self.volume, int(np.count_nonzero(seen)), told)

    def slope(self, sums: MomentSums, variance: float) -> Array:
        """The derivative of half the expected errors, in units of the noise: all of the bound except the prior."""
        change = Exact(sums.packed, self.places.width).times(self.means) - sums.linear
        return (self.rows.precision / variance)[:, None] * change

    @property
    def prior_gradient(self) -> Array:
        """The derivative of the contribution of the prior."""
        pull = np.zeros_like(self.means)
        pull[:, self.places.free] = self.means[:, self.places.free] * self.rows.prior
        if self.expected is not None:
            pull[:, self.places.free] -= self.expected * self.rows.prior
        return pull

    @property
    def gaussian_prior(self) -> GaussianPrior:
        """The prior as a function of the means."""
        precision, means = np.zeros(self.places.width), np.zeros_like(self.means)
        precision[self.places.free] = self.rows.prior
        if self.expected is not None:
            means[:, self.places.free] = self.expected
        return GaussianPrior(precision, means)

    def traces(self, packed: Array) -> float:
        """Σ tr(CᵢMᵢ) over the rows, for matrices Mᵢ of all columns."""
        first, second = triangle(self.places.rank)
        double = np.where(first == second, 1.0, 2.0)
        return float(np.sum(self.side.covariance * packed[:, self.places.pairs] * double))

    def turned(self, R: Array, fixed: int) -> "FactorPosterior":
        """The same with the components, which come last, multiplied by R, and with the best prior for them."""
        means = self.means.copy()
        means[:, fixed:] = self.means[:, fixed:] @ R
        whole = widen_rotation(R, self.places.rank)
        covariance = Exact(self.side.covariance, len(whole)).turned(whole).packed
        rows, told = replace(self.rows, means=means, covariance=covariance), self.regressions
        volume = self.totals.turned(R).volume
        new = replace(self, rows=rows, volume=volume, regressions=tuple(one.turned(whole) for one in told))
        return new.with_best_prior()

    @property
    def cost_of_spread(self) -> float:
        """The cost without the contribution of the means to the prior."""
        seen = self.counts > 0
        if self.expected is None:
            return self.cost - 0.5 * float(np.sum(self.means[seen] * self.prior_gradient[seen]))
        around = self.gaussian_prior
        return self.cost - replace(around, means=around.means[seen]).value(self.means[seen])

    @property
    def cost(self) -> float:
        """The divergence from the prior, and the part of the noise."""
        told = sum(one.cost(self.rows.prior) for one in self.regressions)
        return self.totals.cost(self.rows.prior) + self.noise.cost + told


def pooled_sums(sums: MomentSums, rows: Array) -> MomentSums:
    """The sums of all rows together, for the difference from `rows`."""
    left = sums.linear - Exact(sums.packed, rows.shape[1]).times(rows)
    return MomentSums(sums.packed.sum(axis=0)[None], left.sum(axis=0)[None], np.zeros(1))


def pooled_row(sums: MomentSums, places: Places, prior: Array, variance: float) -> Array:
    """The unknown columns of the best row for pooled sums."""
    if not places.rank:
        return np.zeros(0)
    found, _ = solve_rows(sums, np.zeros((1, places.width)), places, prior, np.array([1 / variance]))
    return found[0, places.free]


def vague_prior(places: Places, mean_square: float) -> Array:
    """The precisions with which the unknown columns of both factors together explain the mean of y².

    The partner of an effect is 1, so an effect has the unit of y; a component has that of its root.
    """
    prior = np.full(places.rank, (places.rank / mean_square) ** 0.5)
    prior[: places.effects] = places.rank / mean_square
    return prior
