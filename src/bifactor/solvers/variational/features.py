"""The rows of a factor explained by their features: a regression whose weights have a posterior."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy
from scipy import sparse

from bifactor._compat import cached_property
from bifactor.arrays import Array
from bifactor.errors import InputError
from bifactor.kernels.row_blocks_reference import triangle
from bifactor.problems.state import Value
from bifactor.solvers.variational.noise import GammaPrior, Precisions
from bifactor.validation import pluralize


@dataclass(frozen=True, eq=False)
class FeatureMatrix:
    """Numbers that describe rows, one line for each."""

    matrix: sparse.csr_array

    @classmethod
    def of(cls, given: Any, name: str) -> "FeatureMatrix | None":
        """Features from an array or a sparse matrix; None if it has no nonzero entries."""
        if given is None or isinstance(given, FeatureMatrix):
            return given
        table = given if sparse.issparse(given) else _table(given)
        if table.ndim != 2 or table.dtype.kind not in "biuf":
            raise InputError(f"{name} is not a table of real numbers. Pass one line of features for each row.")
        matrix = sparse.csr_array(table).astype(np.float64)
        if not np.all(np.isfinite(matrix.data)):
            raise InputError(f"{name} has NaN or infinite values. Fill them in, or leave these columns out.")
        matrix.eliminate_zeros()
        return cls(matrix) if matrix.nnz else None

    @cached_property
    def with_ones(self) -> sparse.csr_array:
        """The features followed by a column of ones, so that they need not be centred."""
        return sparse.csr_array(sparse.hstack([self.matrix, np.ones((self.matrix.shape[0], 1))]))

    def require_rows(self, rows: int, name: str) -> None:
        if self.matrix.shape[0] != rows:
            lines = pluralize(self.matrix.shape[0], "line")
            raise InputError(f"{name} has {lines}, but that side of the data has {rows:,}. Pass one line for each.")


def ones(rows: int) -> sparse.csr_array:
    """A column of ones, for rows without features."""
    return sparse.csr_array(np.ones((rows, 1)))


def _table(given: Any) -> Array:
    try:
        return np.asarray(given)
    except ValueError:  # lines of different lengths
        return np.empty(0)


# Weights of features, which give the prior means of the rows of a factor.


@dataclass(frozen=True)
class FeatureWeights(Value, key="variational.feature_weights"):
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

    def predict(self, features: sparse.csr_array | None, rows: int) -> tuple[Array, Array]:
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

    def turned(self, R: Array) -> "FeatureWeights":
        """The weights of a factor whose columns are multiplied by R."""
        return replace(self, mean=self.mean @ R, columns=R.T @ self.columns @ R, scatter=R.T @ self.scatter @ R)

    def of_columns(self, left: Array) -> "FeatureWeights":
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

    def of_features(self, count: int) -> "FeatureWeights":
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


# The rows of a factor explained by their features: a regression whose weights have a posterior.
#
#     uᵢₖ ~ N(fᵢA, 1/aₖ),  Aₗₖ ~ N(0, 1/(aₖ·c·τₗ)),  τₗ ~ Gamma(t/2, t/2)
#
# c, one number for the effects and one for the components, and t are fitted. If all features are equally informative,
# t is large; otherwise uninformative ones get a large τ and do no harm. As A has the scale of its column, 1/aₖ, a
# rotation of the factors acts on U − FA and on A in the same way.

MAX_JOINT_FEATURES = 300
"""The number of features up to which their weights have a full covariance; those of more are independent in q."""

ROUNDS, ENOUGH = 10, 1e-4
"""The largest number of conjugate gradient iterations for the weights of many features, and the squared share of the
residual at which they end. They start at the result of the last sweep, and each of them raises the bound."""

LEAST, MOST = 1e-12, 1e100
"""The range of c: the lower end is relative to the largest ‖f‖² of a feature, because features may be duplicates."""


@dataclass(frozen=True)
class Learned(Value, key="variational.regression"):
    """The results of a regression."""

    weights: FeatureWeights
    volumes: tuple[float, ...]
    """log det K of each part."""
    precisions: tuple[Precisions, ...]
    """The posterior of τ."""
    scales: tuple[float, ...]
    """The numbers c."""
    gram: Array
    """FᵀF over the rows with measurements, or its diagonal."""


@dataclass(frozen=True, eq=False)
class Regression:
    """Features of the rows of a factor, a mask of the rows with measurements, and the weights."""

    features: sparse.csr_array
    seen: Array
    learned: Learned

    @classmethod
    def initial(cls, features: sparse.csr_array, counts: Array, prior: Array, effects: int) -> "Regression":
        """A regression with weights around 0, for rows with these numbers of measurements."""
        seen = counts > 0
        used, count = features[np.flatnonzero(seen)], features.shape[1]
        norms = np.asarray(used.multiply(used).sum(axis=0)).ravel()
        parts, K = parts_of(effects, prior.size), 1 / (norms + 1)
        small = count <= MAX_JOINT_FEATURES
        average = np.asarray(features.T @ counts).ravel() / max(float(np.sum(counts)), 1)
        weights = FeatureWeights(
            np.zeros((count, prior.size)),
            tuple(np.diag(K) if small else K for _ in parts),
            np.diag(1 / prior),
            effects,
            average,
            np.zeros((prior.size, prior.size)),
        )
        volume, alike = float(np.sum(np.log(K))), Precisions(np.ones(count))
        gram = (used.T @ used).toarray() if small else norms
        return cls(
            features,
            seen,
            Learned(weights, (volume,) * len(parts), (alike,) * len(parts), (1.0,) * len(parts), gram),
        )

    @property
    def weights(self) -> FeatureWeights:
        return self.learned.weights

    @property
    def count(self) -> int:
        """The number of features."""
        return len(self.weights.mean)

    @cached_property
    def expected(self) -> Array:
        """fA for each row."""
        return np.asarray(self.features @ self.weights.mean)

    def fitted(self, rest: Array, prior: Array) -> "Regression":
        """The same with the best weights for the rest of each row, then the corresponding precisions."""
        product = np.asarray(self.features.T @ np.where(self.seen[:, None], rest, 0.0))
        solve = self._solved_whole if self.learned.gram.ndim == 2 else self._solved_apart
        mean, lines, volumes = solve(product)
        weights = replace(self.weights, mean=mean, lines=tuple(lines), columns=np.diag(1 / prior))
        new = replace(self, learned=replace(self.learned, weights=weights, volumes=tuple(volumes)))
        apart = new.expected[self.seen] - weights.average @ mean
        scatter = apart.T @ apart / max(len(apart), 1)
        new = replace(new, learned=replace(new.learned, weights=replace(weights, scatter=scatter)))
        return new._with_best_precisions(prior)

    def _solved_whole(self, product: Array) -> tuple[Array, list[Array], list[float]]:
        """The mean, and K and its log det for each group of columns, from FᵀU."""
        mean, lines, volumes = np.empty_like(product), [], []
        for k, part in enumerate(self.weights.groups):
            L = scipy.linalg.cholesky(self.learned.gram + np.diag(self._precision(k)), lower=True)
            mean[:, part] = scipy.linalg.cho_solve((L, True), product[:, part])
            lines.append(scipy.linalg.cho_solve((L, True), np.eye(len(L))))
            volumes.append(-2 * float(np.sum(np.log(np.diag(L)))))
        return mean, lines, volumes

    def _solved_apart(self, product: Array) -> tuple[Array, list[Array], list[float]]:
        """The same for a diagonal K, with the mean improved by some iterations."""
        groups = self.weights.groups
        lines = [1 / (self.learned.gram + self._precision(k)) for k in range(len(groups))]
        precision, K = np.empty_like(product), np.empty_like(product)
        for k, part in enumerate(groups):
            precision[:, part], K[:, part] = self._precision(k)[:, None], lines[k][:, None]
        return self._descended(precision, product, K), lines, [float(np.sum(np.log(line))) for line in lines]

    def _descended(self, precision: Array, product: Array, K: Array) -> Array:
        """Conjugate gradients for FᵀFA + precision∘A = product, column by column, from the last A."""
        x, seen = self.weights.mean, self.seen[:, None]

        def image(A: Array) -> Array:
            return np.asarray(self.features.T @ np.where(seen, self.features @ A, 0.0)) + precision * A

        residual = product - image(x)
        direction = s = K * residual
        size = np.sum(residual * s, axis=0)
        limit = ENOUGH * size
        for _ in range(ROUNDS):
            if not np.any(size > limit):
                break
            along = image(direction)
            step = size / np.maximum(np.sum(direction * along, axis=0), 1e-300)
            x, residual = x + step * direction, residual - step * along
            s = K * residual
            size, before = np.sum(residual * s, axis=0), size
            direction = s + size / np.maximum(before, 1e-300) * direction
        return x

    def _with_best_precisions(self, prior: Array) -> "Regression":
        learned, weights = self.learned, self.weights
        largest = float(np.max(_diagonal(learned.gram), initial=0.0))
        precisions, scales = [], []
        for k, (part, K) in enumerate(zip(weights.groups, weights.lines, strict=True)):
            a, width = prior[part], part.stop - part.start
            squares = weights.mean[:, part] ** 2 @ a + _diagonal(K) * float(a @ np.diag(weights.columns)[part])
            gamma = GammaPrior(learned.precisions[k].strength)
            tau = gamma.fit(np.full(self.count, float(width)), learned.scales[k] * squares)
            c = self.count * width / max(float(tau.mean @ squares), 1 / MOST)
            precisions.append(tau)
            scales.append(float(np.clip(c, LEAST * largest, MOST)))
        return replace(self, learned=replace(learned, precisions=tuple(precisions), scales=tuple(scales)))

    @cached_property
    def moments(self) -> Array:
        """The contribution of the covariance of weights to Σ E(u − fA)ᵀ(u − fA), plus Σ c·τₗ·E[AₗᵀAₗ]."""
        weights, total = self.weights, np.zeros_like(self.weights.columns)
        for k, (part, K) in enumerate(zip(weights.groups, weights.lines, strict=True)):
            precision, mean = self._precision(k), weights.mean[:, part]
            doubt = float(np.sum(self.learned.gram * K) + np.sum(precision * _diagonal(K)))
            total[part, part] = (mean * precision[:, None]).T @ mean + doubt * weights.columns[part, part]
        return total

    def cost(self, prior: Array) -> float:
        """The divergence of A and τ from their priors, without the squares of A, which are in `moments`."""
        total, count = 0.0, self.count
        for k, part in enumerate(self.weights.groups):
            width, T = part.stop - part.start, self.weights.columns[part, part]
            volume = width * self.learned.volumes[k] + count * float(np.linalg.slogdet(T)[1])
            volume += count * float(np.sum(np.log(prior[part])) + width * np.log(self.learned.scales[k]))
            total += self.learned.precisions[k].cost - 0.5 * (volume + count * width)
        return total

    def turned(self, R: Array) -> "Regression":
        """The regression of a factor whose columns are multiplied by R."""
        return replace(self, learned=replace(self.learned, weights=self.weights.turned(R)))

    def _precision(self, k: int) -> Array:
        return self.learned.scales[k] * self.learned.precisions[k].mean


def _diagonal(K: Array) -> Array:
    return K if K.ndim == 1 else np.diagonal(K)
