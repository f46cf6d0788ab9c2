"""The posterior of the factors, row by row: means, covariances, priors and noise."""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import scipy

from bifactor.arrays import Array, generator
from bifactor.blocks import Exact
from bifactor.errors import InputError
from bifactor.factors import Factors
from bifactor.kernels.blocks_reference import chunks, transposed, triangle
from bifactor.operators import Entries
from bifactor.problems.state import Value
from bifactor.solvers.parts.gamma import Precisions, fitted_precisions
from bifactor.solvers.parts.moments import Data, Places, Sums, second_moments, solved
from bifactor.solvers.parts.turn import turned_covariances

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


@dataclass(frozen=True)
class Half:
    """One factor of two: its means, which of its columns are unknown, how often its rows are measured, and the rest."""

    means: Array
    places: Places
    counts: Array
    side: Side

    @classmethod
    def of(cls, x: Factors, which: int, counts: Array, side: Side, shared: bool) -> "Half":
        means = np.asarray((x.left, x.right)[which], np.float64)
        return cls(means, Places.of(x, which, shared), counts, side)

    @classmethod
    def vague(cls, x: Factors, which: int, counts: Array, mean_square: float, shared: bool) -> "Half":
        """Around a start: some doubt about each number, and priors by which the columns share what y² is on average.

        Where they are of the size of the start instead, and that is small, all columns can die before they have begun.
        """
        means, places = np.array((x.left, x.right)[which], np.float64), Places.of(x, which, shared)
        means[np.ix_(counts == 0, places.free)] = 0  # nothing is known of them
        prior = np.full(places.rank, (places.rank / mean_square) ** 0.5)
        covariance = np.zeros((len(means), places.rank * (places.rank + 1) // 2))
        covariance[:, places.diagonal] = VAGUE / prior
        volume = int(np.count_nonzero(counts)) * float(np.sum(np.log(VAGUE / prior)))
        return cls(means, places, counts, Side(covariance, volume, prior, Precisions(np.ones(len(means)))))

    @property
    def moments(self) -> Array:
        """E[bᵀb] of each row, packed."""
        return second_moments(self.means, self.side.covariance, self.places)

    @property
    def known(self) -> tuple[Array, Array, Array]:
        """What sums for the other factor are made from."""
        return self.means, self.moments, self.side.noise.mean

    def errors(self, sums: Sums) -> Array:
        """Σ E(y − z)² over the measurements of each row, weighted by the precisions of the other factor."""
        return sums.expected_errors(self.means, self.moments)

    def fitted(self, sums: Sums, data: Data, variance: float, varies: bool) -> tuple["Half", float]:
        """The best posterior for these sums, then noise, prior and the variance of all noise that go with it."""
        side, new = self.side, self
        if self.places.rank:
            means, inverse = solved(sums, self.means, self.places, side.prior, side.noise.mean / variance)
            volume = -float(np.sum(inverse.log_determinants()[self.counts > 0]))
            new = replace(self, means=means, side=replace(side, covariance=inverse.inverse().packed, volume=volume))
        errors = new.errors(sums)
        noise = fitted_precisions(self.counts, errors / variance, side.noise.strength) if varies else side.noise
        new = replace(new, side=replace(new.side, noise=noise))
        mean = float(np.sum(noise.mean * errors)) / max(data.size, 1)
        return new.with_best_prior(), max(mean, data.least_noise)

    def with_best_prior(self) -> "Half":
        """With the precisions that fit the columns, or groups of them."""
        groups = self.places.groups
        numbers, squares = np.bincount(groups), np.bincount(groups, self.squares)
        prior = (self.seen * numbers / np.maximum(squares, 1e-300))[groups]
        return replace(self, side=replace(self.side, prior=np.minimum(prior, 1e100)))

    @property
    def squares(self) -> Array:
        """Σ E of the square of each unknown column, over the rows with measurements."""
        seen = self.counts > 0
        spread = self.side.covariance[seen][:, self.places.diagonal]
        return np.sum(self.means[seen][:, self.places.free] ** 2 + spread, axis=0)

    def slope(self, sums: Sums, variance: float) -> Array:
        """The derivative of the expected errors, halved, in units of the noise: all of the bound but the prior."""
        change = Exact(sums.packed, self.places.width).times(self.means) - sums.linear
        return (self.side.noise.mean / variance)[:, None] * change

    @property
    def pulled(self) -> Array:
        """The derivative of what the prior adds."""
        pull = np.zeros_like(self.means)
        pull[:, self.places.free] = self.means[:, self.places.free] * self.side.prior
        return pull

    @property
    def spread(self) -> Array:
        """The covariance of each row, packed, with zeros for columns that are known."""
        return second_moments(0 * self.means, self.side.covariance, self.places)

    def traces(self, packed: Array) -> float:
        """Σ tr(CᵢMᵢ) over the rows, for a matrix M of all columns for each of them."""
        first, second = triangle(self.places.rank)
        double = np.where(first == second, 1.0, 2.0)
        return float(np.sum(self.side.covariance * packed[:, self.places.pairs] * double))

    def component_moments(self, fixed: int) -> Array:
        """Σ E[bᵀb] of the columns behind the fixed ones and their partners, over the rows with measurements."""
        seen = self.counts > 0
        total = np.sum(self.moments[seen], axis=0)
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
        volume = self.side.volume + self.seen * 2 * float(np.linalg.slogdet(R)[1])
        side = replace(self.side, covariance=turned_covariances(self.side.covariance, whole), volume=volume)
        return replace(self, means=means, side=side).with_best_prior()

    def sample(self, rng: np.random.Generator) -> Array:
        """One draw of all rows."""
        drawn, rank = self.means.copy(), self.places.rank
        for part in chunks(len(drawn), rank**2 + 1):
            L = np.linalg.cholesky(transposed(self.side.covariance[part], rank))
            noise = rng.standard_normal((len(L), rank, 1))
            drawn[part, self.places.free] += (L @ noise)[:, :, 0]
        return drawn

    @property
    def cost_of_spread(self) -> float:
        """The cost but for what the means pay to the prior."""
        return self.cost - 0.5 * float(np.sum(self.means[self.counts > 0] * self.pulled[self.counts > 0]))

    @property
    def cost(self) -> float:
        """The divergence from the prior, and the part of the noise."""
        side, d = self.side, self.places.rank
        spread = float(np.sum(side.prior * self.squares)) - side.volume
        return 0.5 * (spread - self.seen * (d + float(np.sum(np.log(side.prior))))) + side.noise.cost

    @property
    def seen(self) -> int:
        """Rows with measurements."""
        return int(np.count_nonzero(self.counts))


@dataclass(frozen=True, eq=False)
class Posterior:
    """How sure the factors are: each row of U and of V is Gaussian, and independent of the others.

    A new measurement of an entry is z + noise with z = uᵢ·vⱼ; see `interval`.
    """

    rows: Half
    cols: Half
    variance: float
    """Of the noise; of single rows and columns it is this over their precisions. The square of its scale for t."""
    degrees: float | None = None
    """Of freedom, where the noise is Student's t."""

    def std(self, rows: Array, cols: Array) -> Array:
        """The standard deviation of z at the coordinates (rows[t], cols[t])."""
        i, j = self._places(rows, cols)
        first, second = triangle(self.rows.places.width)
        double, found = np.where(first == second, 1.0, 2.0), np.empty(i.size)
        spreads, moments = (self.rows.spread, self.cols.spread), self.cols.moments
        squares = self.rows.means[:, first] * self.rows.means[:, second]
        for part in chunks(i.size, double.size):
            a, b = i[part], j[part]
            # Three sums that are positive, where E[z²] − E[z]² would cancel.
            found[part] = (spreads[0][a] * moments[b] + squares[a] * spreads[1][b]) @ double
        return np.sqrt(np.maximum(found, 0))

    def noise(self, rows: Array, cols: Array) -> Array:
        """The variance of the noise there."""
        nu = self.degrees
        wider = 1.0 if nu is None else nu / (nu - 2) if nu > 2 else np.inf
        return wider * self._scale(rows, cols)

    def interval(self, rows: Array, cols: Array, level: float = 0.9) -> tuple[Array, Array]:
        """Where new measurements there are expected, with this probability, as far as the model holds.

        For Student's t, what is not known of z widens the noise and keeps its shape, which is an approximation.
        """
        if not 0 < level < 1:
            raise InputError(f"level={level!r} is not between 0 and 1.")
        i, j = self._places(rows, cols)
        mean = np.einsum("tk,tk->t", self.rows.means[i], self.cols.means[j])
        quantile = scipy.special.ndtri if self.degrees is None else partial(scipy.special.stdtrit, self.degrees)
        half = quantile((1 + level) / 2) * np.sqrt(self.std(i, j) ** 2 + self._scale(i, j))
        return mean - half, mean + half

    def _scale(self, rows: Array, cols: Array) -> Array:
        i, j = self._places(rows, cols)
        return self.variance / (self.rows.side.noise.mean[i] * self.cols.side.noise.mean[j])

    def sample(self, rng: np.random.Generator | int | None = None) -> tuple[Array, Array]:
        """Factors drawn from it."""
        source = generator(rng)
        return self.rows.sample(source), self.cols.sample(source)

    def _places(self, rows: Array, cols: Array) -> tuple[Array, Array]:
        """Coordinates, checked."""
        if np.size(rows) == 0 and np.size(cols) == 0:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        entries = Entries(rows, cols, (len(self.rows.means), len(self.cols.means)))
        return entries.rows, entries.cols
