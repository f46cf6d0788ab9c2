"""Rows of a factor that are known up to a Gaussian each."""

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from bifactor.arrays import Array
from bifactor.errors import InputError
from bifactor.kernels.blas import matmul
from bifactor.kernels.blocks_reference import chunks, transposed, triangle
from bifactor.solvers.parts.moments import Places, pairs_of, second_moments
from bifactor.solvers.parts.weights import Weights


@dataclass(frozen=True, eq=False)
class Gaussians:
    """Each row of a factor is Gaussian, and independent of the others."""

    means: Array
    covariance: Array | None
    """Of the unknown columns of each row, packed; None where only the means were kept."""
    places: Places
    prior: Array
    """The precision of each unknown column before the data."""
    precision: Array
    """That of the measurements of each row, relative to the others."""
    weights: tuple[Weights | None, Weights | None] = (None, None)
    """Of features, with a one behind, and of the pattern of entries: where rows are expected before the data."""

    def __len__(self) -> int:
        return len(self.means)

    @property
    def moments(self) -> Array:
        """E[bᵀb] of each row, packed; without covariances that of the means."""
        return second_moments(self.means, self.covariance, self.places)

    @property
    def spread(self) -> Array:
        """The covariance of each row, packed, with zeros for columns that are known."""
        return second_moments(np.zeros_like(self.means), self._spread, self.places)

    @property
    def squares(self) -> Array:
        """E of the square of each unknown number."""
        return self.means[:, self.places.free] ** 2 + self._spread[:, self.places.diagonal]

    @property
    def known(self) -> tuple[Array, Array, Array]:
        """What sums for the other factor are made from."""
        return self.means, self.moments, self.precision

    def sample(self, rng: np.random.Generator) -> Array:
        """One draw of all rows."""
        drawn, rank = self.means.copy(), self.places.rank
        for part in chunks(len(drawn), rank**2 + 1):
            L = np.linalg.cholesky(transposed(self._spread[part], rank))
            noise = rng.standard_normal((len(L), rank, 1))
            drawn[part, self.places.free] += (L @ noise)[:, :, 0]
        return drawn

    def take(self, index: Array) -> "Gaussians":
        """Some of the rows."""
        covariance = None if self.covariance is None else self.covariance[index]
        return replace(self, means=self.means[index], covariance=covariance, precision=self.precision[index])

    def padded(self, rows: int, features: sparse.csr_array | None = None) -> "Gaussians":
        """With more rows, of which only features are known, if these are: they are as before the data.

        Fixed columns are ones. Features have a one behind.
        """
        more = rows - len(self)
        means = np.zeros((more, self.places.width))
        means[:, self.places.fixed] = 1
        return self.joined(self.before(means, features))

    def before(self, means: Array, features: sparse.csr_array | None) -> "Gaussians":
        """Rows as they are before the data, with the fixed columns of `means`."""
        covariance, means = np.zeros((len(means), self.places.rank * (self.places.rank + 1) // 2)), means.copy()
        covariance[:, self.places.diagonal] = 1 / self.prior
        means[:, self.places.free] = 0
        for weights, known in zip(self.weights, (features, None), strict=True):
            if weights is not None:
                expected, spread = weights.told(known, len(means))
                means[:, self.places.free] += expected
                covariance += spread
        return replace(self, means=means, covariance=covariance, precision=np.ones(len(means)))

    def with_cold(self, counts: Array, features: sparse.csr_array | None) -> "Gaussians":
        """With rows that have no measurements as they are before the data."""
        cold = np.flatnonzero(counts == 0)
        known = None if features is None else features[cold]
        return self.replaced(cold, self.before(self.means[cold], known)) if cold.size else self

    def expected(self, rows: int, features: sparse.csr_array | None, pattern: sparse.csr_array) -> Array | None:
        """Where the unknown columns of rows are expected by their features and by which entries they have."""
        found = None
        for weights, known in zip(self.weights, (features, pattern), strict=True):
            if weights is not None:
                wide = weights if known is None else weights.of_features(known.shape[1])
                told = wide.told(known, rows)[0]
                found = told if found is None else found + told
        return found

    def joined(self, other: "Gaussians") -> "Gaussians":
        """With the rows of another behind."""
        lacking = self.covariance is None or other.covariance is None
        return replace(
            self,
            means=np.concatenate([self.means, other.means]),
            covariance=None if lacking else np.concatenate([self.covariance, other.covariance]),
            precision=np.concatenate([self.precision, other.precision]),
        )

    def replaced(self, index: Array, rows: "Gaussians") -> "Gaussians":
        """With other rows in some places."""
        order = np.arange(len(self))
        order[index] = len(self) + np.arange(len(rows))
        return self.joined(rows).take(order)

    def columns(self, stay: Array) -> "Gaussians":
        """With some of the columns, by a mask; the others are forgotten."""
        places, left = self.places.columns(stay), np.flatnonzero(stay[self.places.free])
        covariance = None if self.covariance is None else self.covariance[:, pairs_of(left)]
        first, second = (None if one is None else one.of_columns(left) for one in self.weights)
        return Gaussians(self.means[:, stay], covariance, places, self.prior[left], self.precision, (first, second))

    @property
    def _spread(self) -> Array:
        if self.covariance is None:
            raise InputError(
                "Only the means of this posterior were kept, so there are no error bars. Save it with error_bars=True."
            )
        return self.covariance


def variances(rows: Gaussians, cols: Gaussians, i: Array, j: Array) -> Array:
    """Of uᵢ·vⱼ, for each pair of places."""
    first, second = triangle(rows.places.width)
    double, found = np.where(first == second, 1.0, 2.0), np.empty(i.size)
    spreads, moments = (rows.spread, cols.spread), cols.moments
    squares = rows.means[:, first] * rows.means[:, second]
    for part in chunks(i.size, double.size):
        a, b = i[part], j[part]
        # Three sums that are positive, where E[z²] − E[z]² would cancel.
        found[part] = (spreads[0][a] * moments[b] + squares[a] * spreads[1][b]) @ double
    return np.maximum(found, 0)


def variance_table(rows: Gaussians, cols: Gaussians) -> Array:
    """Of uᵢ·vⱼ, for all rows and columns."""
    first, second = triangle(rows.places.width)
    double, found = np.where(first == second, 1.0, 2.0), np.empty((len(rows), len(cols)))
    ours = np.hstack([rows.spread, rows.means[:, first] * rows.means[:, second]]) * np.tile(double, 2)
    for part in chunks(len(cols), ours.shape[1]):
        some = cols.take(np.arange(part.start, part.stop))
        found[:, part] = matmul(ours, np.hstack([some.moments, some.spread]).T)
    return np.maximum(found, 0)
