"""The posterior of the factors: error bars, samples, and the posterior of rows that were not in the fit."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import DTypeLike
from scipy import sparse

from bifactor.arrays import Array, generator
from bifactor.errors import InputError
from bifactor.kernels.blas import matmul
from bifactor.kernels.row_blocks_reference import chunks, transposed, triangle
from bifactor.operators.entries import places
from bifactor.problems.objective import Problem
from bifactor.solvers.variational.features import FeatureMatrix, FeatureWeights
from bifactor.solvers.variational.moments import EntrySums, Places, entries_of, pairs_of, second_moments, solve_rows
from bifactor.solvers.variational.noise import Noise
from bifactor.validation import pluralize

Again = Callable[[Array], Array]


@dataclass(frozen=True, eq=False)
class Gaussians:
    """Independent Gaussian distributions of the rows of a factor."""

    means: Array
    covariance: Array | None
    """The covariance of the unknown columns of each row, packed; None if only the means are kept."""
    places: Places
    prior: Array
    """The prior precision of each unknown column."""
    precision: Array
    """The precision of the measurements of each row, relative to the others."""
    weights: tuple[FeatureWeights | None, FeatureWeights | None] = (None, None)
    """The weights of features, including the constant, and of the pattern of entries, for the prior means of rows."""
    cold: Array | None = None
    """The mean of the unknown columns of rows without measurements, besides what features tell; None for zeros."""
    blind: bool = False
    """Whether features are not used for rows without measurements, because these are predicted better without."""
    again: Again | None = None
    """A function that computes covariances of some rows from their measurements, if they are not kept; not pickled."""

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "again": None}

    def __len__(self) -> int:
        return len(self.means)

    @property
    def moments(self) -> Array:
        """E[bᵀb] of each row, packed; without covariances, that of the means."""
        known = self.covariance is not None or self.again is not None
        return second_moments(self.means, self._spread if known else None, self.places)

    @property
    def spread(self) -> Array:
        """The covariance of each row, packed, with zeros for known columns."""
        return second_moments(np.zeros_like(self.means), self._spread, self.places)

    @property
    def squares(self) -> Array:
        """The expected square of each unknown number."""
        return self.means[:, self.places.free] ** 2 + self._spread[:, self.places.diagonal]

    @property
    def known(self) -> tuple[Array, Array, Array]:
        """The quantities needed for the sums of the other factor."""
        return self.means, self.moments, self.precision

    def sample(self, rng: np.random.Generator) -> Array:
        """One draw of all rows."""
        drawn, rank, spread = self.means.copy(), self.places.rank, self._spread
        for part in chunks(len(drawn), rank**2 + 1):
            L = _roots(transposed(spread[part], rank))
            noise = rng.standard_normal((len(L), rank, 1))
            drawn[part, self.places.free] += (L @ noise)[:, :, 0]
        return drawn

    def take(self, index: Array) -> "Gaussians":
        """Some of the rows. Covariances that are not kept are computed for these, if possible."""
        covariance, means = None if self.covariance is None else self.covariance[index], self.means[index]
        if self.again is not None:
            covariance, means = self.again(index), means.astype(np.float64)
        return replace(self, means=means, covariance=covariance, precision=self.precision[index], again=None)

    def with_covariances(self, index: Array) -> tuple["Gaussians", Array]:
        """An object with the covariances of these rows in memory, and the places of the rows in it."""
        if self.again is None:
            return self, index
        some, places = np.unique(index, return_inverse=True)
        return self.take(some), places

    def padded(self, rows: int, features: sparse.csr_array | None = None) -> "Gaussians":
        """The rows followed by new ones, which have their prior distribution, given their features, if any.

        Fixed columns are ones. Features end with a column of ones.
        """
        more = rows - len(self)
        means = np.zeros((more, self.places.width))
        means[:, self.places.fixed] = 1
        return self.joined(self.before(means, features))

    def before(self, means: Array, features: sparse.csr_array | None) -> "Gaussians":
        """Rows with their prior distribution, and with the fixed columns of `means`."""
        covariance, means = np.zeros((len(means), self.places.rank * (self.places.rank + 1) // 2)), means.copy()
        covariance[:, self.places.diagonal] = 1 / self.prior
        means[:, self.places.free] = 0 if self.cold is None else self.cold
        for weights, known in zip(self.weights, (None if self.blind else features, None), strict=True):
            if weights is not None:
                expected, spread = weights.predict(known, len(means))
                means[:, self.places.free] += expected
                covariance += spread
        return replace(self, means=means, covariance=covariance, precision=np.ones(len(means)), again=None)

    def with_cold(self, counts: Array, features: sparse.csr_array | None) -> "Gaussians":
        """Rows of which those without measurements have their distribution before the data."""
        cold = np.flatnonzero(counts == 0)
        known = None if features is None else features[cold]
        return self.replaced(cold, self.before(self.means[cold], known)) if cold.size else self

    def expected(self, rows: int, features: sparse.csr_array | None, pattern: sparse.csr_array) -> Array | None:
        """The prior means of the unknown columns of rows, from their features and the pattern of their entries."""
        found = None
        for weights, known in zip(self.weights, (features, pattern), strict=True):
            if weights is not None:
                wide = weights if known is None else weights.of_features(known.shape[1])
                told = wide.predict(known, rows)[0]
                found = told if found is None else found + told
        return found

    def joined(self, other: "Gaussians") -> "Gaussians":
        """The rows followed by those of another."""
        lacking = self.covariance is None or other.covariance is None
        return replace(
            self,
            means=np.concatenate([self.means, other.means]),
            covariance=None if lacking else np.concatenate([self.covariance, other.covariance]),
            precision=np.concatenate([self.precision, other.precision]),
            again=None if self.again is None or other.covariance is None else self._or(other.covariance, self.again),
        )

    def _or(self, more: Array, again: Again) -> Again:
        """A function for computed covariances followed by stored ones."""

        def found(index: Array) -> Array:
            new, packed = index >= len(self), np.empty((index.size, more.shape[1]))
            packed[new], packed[~new] = more[index[new] - len(self)], again(index[~new])
            return packed

        return found

    def replaced(self, index: Array, rows: "Gaussians") -> "Gaussians":
        """The same with some rows replaced."""
        order = np.arange(len(self))
        order[index] = len(self) + np.arange(len(rows))
        whole = self.joined(rows)
        again = whole.again
        if again is None:
            return whole.take(order)
        means, precision = whole.means[order], whole.precision[order]
        return replace(whole, means=means, precision=precision, again=lambda index: again(order[index]))

    def columns(self, stay: Array) -> "Gaussians":
        """The same with the columns of a mask only."""
        places, left = self.places.columns(stay), np.flatnonzero(stay[self.places.free])
        again, pairs = self.again, pairs_of(left)
        first, second = (None if one is None else one.of_columns(left) for one in self.weights)
        return replace(
            self,
            means=self.means[:, stay],
            covariance=None if self.covariance is None else self.covariance[:, pairs],
            places=places,
            prior=self.prior[left],
            weights=(first, second),
            cold=None if self.cold is None else self.cold[left],
            again=None if again is None else lambda index: again(index)[:, pairs],
        )

    @property
    def _spread(self) -> Array:
        if self.again is not None:
            return self.again(np.arange(len(self)))
        if self.covariance is None:
            raise InputError(
                "Only the means of this posterior were kept, so there are no error bars. Save it with error_bars=True."
            )
        return self.covariance


def _roots(covariances: Array) -> Array:
    """An L of each covariance C with LLᵀ = C, also if it is singular, or indefinite by rounding."""
    try:
        return np.linalg.cholesky(covariances)
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(covariances)
        return vectors * np.maximum(values, 0)[:, None, :] ** 0.5


def variances(rows: Gaussians, cols: Gaussians, i: Array, j: Array) -> Array:
    """The variance of uᵢ·vⱼ for each pair (i, j)."""
    (rows, i), (cols, j) = rows.with_covariances(i), cols.with_covariances(j)
    first, second = triangle(rows.places.width)
    double, found = np.where(first == second, 1.0, 2.0), np.empty(i.size)
    spreads, moments = (rows.spread, cols.spread), cols.moments
    squares = rows.means[:, first] * rows.means[:, second]
    for part in chunks(i.size, double.size):
        a, b = i[part], j[part]
        # Sums of positive terms; E[z²] − E[z]² would cancel.
        found[part] = (spreads[0][a] * moments[b] + squares[a] * spreads[1][b]) @ double
    return np.maximum(found, 0)


def variance_table(rows: Gaussians, cols: Gaussians) -> Array:
    """The variance of uᵢ·vⱼ for all rows and columns."""
    rows, cols = (side.with_covariances(np.arange(len(side)))[0] for side in (rows, cols))
    first, second = triangle(rows.places.width)
    double, found = np.where(first == second, 1.0, 2.0), np.empty((len(rows), len(cols)))
    ours = np.hstack([rows.spread, rows.means[:, first] * rows.means[:, second]]) * np.tile(double, 2)
    for part in chunks(len(cols), ours.shape[1]):
        some = cols.take(np.arange(part.start, part.stop))
        found[:, part] = matmul(ours, np.hstack([some.moments, some.spread]).T)
    return np.maximum(found, 0)


ROUNDS, STILL = 100, 1e-8
"""The largest number of rounds of finding new rows and the precisions of their entries, and the change that ends it."""

LIVES = 1e-4
"""The smallest variance of a component that counts, as a share of the variance of the noise."""


@dataclass(frozen=True, eq=False)
class Posterior:
    """The posterior of the factors: the rows of U and V are Gaussian and independent of each other.

    A new measurement of an entry is z + noise with z = uᵢ·vⱼ; see `interval`.
    """

    rows: Gaussians
    cols: Gaussians
    variance: float
    """The variance of the noise, to be divided by the precisions of row and column; for t, the square of its scale."""
    noise_model: Noise
    """The fitted model of the noise."""
    weight: float = 1.0
    """The mean weight of the entries of the fit."""

    def means(self, dtype: DTypeLike) -> tuple[Array, Array]:
        """The means of both factors, in a precision."""
        return self.rows.means.astype(dtype), self.cols.means.astype(dtype)

    def without_features(self, blind: tuple[bool, bool], counts: tuple[Array, Array]) -> "Posterior":
        """A posterior without features for rows, or columns, without measurements, whose numbers are `counts`."""
        sides = [
            replace(side, blind=True).with_cold(own, None) if unused else side
            for side, unused, own in zip((self.rows, self.cols), blind, counts, strict=True)
        ]
        return replace(self, rows=sides[0], cols=sides[1])

    def std(self, rows: Array, cols: Array) -> Array:
        """The standard deviation of z at the coordinates (rows[t], cols[t])."""
        return np.sqrt(variances(self.rows, self.cols, *self._places(rows, cols)))

    def noise(self, rows: Array, cols: Array) -> Array:
        """The variance of the noise there."""
        return self.noise_model.variance(self._scale(*self._places(rows, cols)))

    def predictive_std(self, rows: Array, cols: Array) -> Array:
        """The standard deviation of new measurements there, of z and the noise together."""
        return np.sqrt(self.std(rows, cols) ** 2 + self.noise(rows, cols))

    def interval(self, rows: Array, cols: Array, level: float = 0.9) -> tuple[Array, Array]:
        """The intervals that contain new measurements there with this probability, if the model holds.

        For Student's t, the uncertainty of z widens the noise and keeps its shape, which is an approximation.
        """
        if isinstance(level, bool) or not isinstance(level, (int, float)) or not 0 < level < 1:
            raise InputError(f"level={level!r} is not between 0 and 1. Pass a probability, such as 0.9.")
        i, j = self._places(rows, cols)
        mean = np.einsum("tk,tk->t", self.rows.means[i], self.cols.means[j])
        quantile = self.noise_model.quantile((1 + level) / 2)
        half = quantile * np.sqrt(variances(self.rows, self.cols, i, j) + self._scale(i, j))
        return mean - half, mean + half

    def sample(self, rng: np.random.Generator | int | None = None) -> tuple[Array, Array]:
        """A random sample of both factors."""
        source = generator(rng)
        return self.rows.sample(source), self.cols.sample(source)

    def sample_noise(self, rows: Array, cols: Array, rng: np.random.Generator | int | None = None) -> Array:
        """A random sample of the noise of measurements there."""
        return self.noise_model.sample(self._scale(*self._places(rows, cols)), generator(rng))

    def active_components(self, fixed: int) -> Array:
        """The components, after the fixed columns and their partners, that noticeably change predictions."""
        sizes = [np.mean(part.means[:, fixed:] ** 2, axis=0) if len(part) else 0.0 for part in (self.rows, self.cols)]
        return np.asarray(sizes[0] * sizes[1] >= LIVES * self.variance / self.weight)

    def without_inactive(self, fixed: int) -> "Posterior":
        """The posterior without the components, after the fixed columns and their partners, that explain nothing."""
        stay = np.concatenate([np.ones(fixed, bool), self.active_components(fixed)])
        return self if stay.all() else replace(self, rows=self.rows.columns(stay), cols=self.cols.columns(stay))

    def fold_in(self, problem: Problem, side: int = 0, features: Any = None) -> Gaussians:
        """The posterior of new rows (`side` 0) or columns (1) from their entries, while the other factor is fixed.

        `problem` has a matrix with only these rows and all columns, and the fixed columns of the fit. The noise and
        the priors are those of the fit. `features` are those of the new rows, if the fit had any and they are known.
        """
        own, other = (self.rows, self.cols) if side == 0 else (self.cols, self.rows)
        x = problem.zero(own.places.width - problem.kind.fixed_columns)
        means = np.array((x.left, x.right)[side], np.float64)
        alike, nothing = np.ones(len(means)), np.empty((len(means), 0))
        found = replace(own, means=means, covariance=nothing, precision=alike, again=None)
        data, held = EntrySums(entries_of(problem)), other.known
        prior, entries = self.noise_model.sides[side], self.noise_model.entries
        given = self.known_features(features, len(means), side)
        expected = own.expected(len(means), given, data.pattern(side))
        for _ in range(ROUNDS if own.places.rank else 0):
            before, sums = found.means, data.sums(side, *held)
            precision = found.precision / self.variance
            means, inverse = solve_rows(sums, before, own.places, own.prior, precision, expected)
            found = replace(found, means=means, covariance=inverse.inverse().packed)
            if prior is None and entries is None:
                break
            if prior is not None:
                errors = sums.expected_errors(means, found.moments) / self.variance
                found = replace(found, precision=prior.expected(data.counts[side], errors))
            if entries is not None:
                both = (found.known[:2], held[:2]) if side == 0 else (held[:2], found.known[:2])
                errors = data.errors(*both) / self.variance
                data = EntrySums(data.bound, entries.expected((data.given > 0).astype(float), errors))
            if np.max(np.abs(means - before), initial=0.0) <= STILL * np.max(np.abs(means), initial=0.0):
                break
        return found.with_cold(data.counts[side], given)

    def known_features(self, features: Any, rows: int, side: int) -> sparse.csr_array | None:
        """Checked features of new rows, in the form of the fit; None if they are not known."""
        own, name = (self.rows, self.cols)[side].weights[0], ("row_features", "column_features")[side]
        if features is None:
            return None
        if own is None:
            if not np.any(features.data if sparse.issparse(features) else features):  # nothing varied in the fit
                return None
            raise InputError(f"The fit had no {name}, so they cannot be used. Leave them out.")
        given = FeatureMatrix.of(features, name) or FeatureMatrix(sparse.csr_array(np.shape(features)))
        given.require_rows(rows, name)
        if given.matrix.shape[1] + 1 != len(own.mean):
            counts = pluralize(given.matrix.shape[1], "column"), len(own.mean) - 1
            raise InputError(f"{name} has {counts[0]}, but the fit had {counts[1]}. Pass the same columns.")
        return given.with_ones

    def _scale(self, i: Array, j: Array) -> Array:
        return self.variance / (self.rows.precision[i] * self.cols.precision[j])

    def _places(self, rows: Array, cols: Array) -> tuple[Array, Array]:
        """Checked coordinates."""
        if np.size(rows) == 0 and np.size(cols) == 0:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        return places(rows, cols, (len(self.rows), len(self.cols)))
