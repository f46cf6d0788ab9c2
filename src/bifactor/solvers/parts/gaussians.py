"""Rows of a factor, each with a Gaussian distribution."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from bifactor.arrays import Array
from bifactor.errors import InputError
from bifactor.kernels.blas import matmul
from bifactor.kernels.blocks_reference import chunks, transposed, triangle
from bifactor.solvers.parts.moments import Places, pairs_of, second_moments
from bifactor.solvers.parts.weights import Weights

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
    weights: tuple[Weights | None, Weights | None] = (None, None)
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

    def needed(self, index: Array) -> tuple["Gaussians", Array]:
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
                expected, spread = weights.told(known, len(means))
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
                told = wide.told(known, rows)[0]
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
    (rows, i), (cols, j) = rows.needed(i), cols.needed(j)
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
    rows, cols = (side.needed(np.arange(len(side)))[0] for side in (rows, cols))
    first, second = triangle(rows.places.width)
    double, found = np.where(first == second, 1.0, 2.0), np.empty((len(rows), len(cols)))
    ours = np.hstack([rows.spread, rows.means[:, first] * rows.means[:, second]]) * np.tile(double, 2)
    for part in chunks(len(cols), ours.shape[1]):
        some = cols.take(np.arange(part.start, part.stop))
        found[:, part] = matmul(ours, np.hstack([some.moments, some.spread]).T)
    return np.maximum(found, 0)
