"""Weights of features, which give the prior means of the rows of a factor."""

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from bifactor.arrays import Array
from bifactor.kernels.blocks_reference import triangle
from bifactor.problems.state import Value


@dataclass(frozen=True)
class Weights(Value, key="variational.feature_weights"):
    """A, with one line for each feature and one column for each unknown column of a factor: uᵢ ~ N(fᵢA, diag(1/a)).

    It is Gaussian, with Cov(Aₗₖ, Aₗ′ₖ′) = Kₗₗ′Tₖₖ′. Effects of rows have their own K and are independent of the
    components.
    """

    mean: Array
    lines: tuple[Array, ...]
    """K, or its diagonal, of the effects, if any, and of the components. Empty if only means were kept."""
    columns: Array
    """The matrix T."""
    effects: int
    """The number of columns that are effects; they come first."""
    average: Array
    """The mean features of all measurements, which are used for a row with unknown features."""
    scatter: Array
    """The mean square of fA around that of the average over the rows with measurements."""

    @property
    def groups(self) -> list[slice]:
        """Columns that share a K."""
        return parts_of(self.effects, self.mean.shape[1])

    def told(self, features: sparse.csr_array | None, rows: int) -> tuple[Array, Array]:
        """The mean and the packed covariance of fA for some rows, whose features may not be known."""
        if features is not None:
            return np.asarray(features @ self.mean), self._spread(features)
        first, second = triangle(self.mean.shape[1])
        spread = self._spread(sparse.csr_array(self.average[None])) + self.scatter[first, second]
        return np.tile(self.average @ self.mean, (rows, 1)), np.tile(spread, (rows, 1))

    def _spread(self, features: sparse.csr_array) -> Array:
        first, second = triangle(self.mean.shape[1])
        packed = np.zeros((features.shape[0], first.size))
        for part, K in zip(self.groups if self.lines else [], self.lines, strict=True):
            inside = (np.minimum(first, second) >= part.start) & (np.maximum(first, second) < part.stop)
            packed[:, inside] = _lengths(features, K)[:, None] * self.columns[first, second][inside]
        return packed

    def turned(self, R: Array) -> "Weights":
        """The weights of a factor whose columns are multiplied by R."""
        return replace(self, mean=self.mean @ R, columns=R.T @ self.columns @ R, scatter=R.T @ self.scatter @ R)

    def of_columns(self, left: Array) -> "Weights":
        """The weights of some columns of the factor."""
        square, kept = np.ix_(left, left), zip(self.groups if self.lines else [], self.lines, strict=True)
        return replace(
            self,
            mean=self.mean[:, left],
            lines=tuple(K for part, K in kept if np.any((left >= part.start) & (left < part.stop))),
            columns=self.columns[square],
            effects=int(np.count_nonzero(left < self.effects)),
            scatter=self.scatter[square],
        )

    def of_features(self, count: int) -> "Weights":
        """The weights padded with zeros for additional features."""
        more = (0, count - len(self.mean))
        lines = tuple(np.pad(K, more) for K in self.lines)
        return replace(self, mean=np.pad(self.mean, (more, (0, 0))), lines=lines, average=np.pad(self.average, more))


def parts_of(effects: int, columns: int) -> list[slice]:
    """The slices of the effects and of the components, without empty ones."""
    return [part for part in (slice(0, effects), slice(effects, columns)) if part.stop > part.start]


def _lengths(features: sparse.csr_array, K: Array) -> Array:
    """fKfᵀ for each row f."""
    if K.ndim == 1:
        return np.asarray(features.multiply(features) @ K)
    return np.asarray(features.multiply(features @ K).sum(axis=1)).ravel()
