"""The posterior of the factors: error bars, samples, and the posterior of rows that were not in the fit."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import scipy
from numpy.typing import DTypeLike
from scipy import sparse

from bifactor.arrays import Array, generator
from bifactor.errors import InputError
from bifactor.operators.entries import places
from bifactor.problems.problem import Problem
from bifactor.solvers.parts.features import Features
from bifactor.solvers.parts.gamma import expected_precisions
from bifactor.solvers.parts.gaussians import Gaussians, variances
from bifactor.solvers.parts.moments import Data, entries_of, solved
from bifactor.validation import counted

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
    degrees: float | None = None
    """The degrees of freedom if the noise is Student's t."""
    strengths: tuple[float | None, float | None] = (None, None)
    """The strengths with which the precisions of rows and of columns are drawn to 1; None if these are all equal."""
    weight: float = 1.0
    """The mean weight of the entries of the fit."""

    def means(self, dtype: DTypeLike) -> tuple[Array, Array]:
        """The means of both factors, in a precision."""
        return self.rows.means.astype(dtype), self.cols.means.astype(dtype)

    def blinded(self, blind: tuple[bool, bool], counts: tuple[Array, Array]) -> "Posterior":
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
        nu = self.degrees
        wider = 1.0 if nu is None else nu / (nu - 2) if nu > 2 else np.inf
        return wider * self._scale(*self._places(rows, cols))

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
        quantile = scipy.special.ndtri if self.degrees is None else partial(scipy.special.stdtrit, self.degrees)
        half = quantile((1 + level) / 2) * np.sqrt(variances(self.rows, self.cols, i, j) + self._scale(i, j))
        return mean - half, mean + half

    def sample(self, rng: np.random.Generator | int | None = None) -> tuple[Array, Array]:
        """A random sample of both factors."""
        source = generator(rng)
        return self.rows.sample(source), self.cols.sample(source)

    def sample_noise(self, rows: Array, cols: Array, rng: np.random.Generator | int | None = None) -> Array:
        """A random sample of the noise of measurements there."""
        i, j = self._places(rows, cols)
        source = generator(rng)
        drawn = source.standard_normal(i.size) if self.degrees is None else source.standard_t(self.degrees, i.size)
        return drawn * np.sqrt(self._scale(i, j))

    def living(self, fixed: int) -> Array:
        """The components, after the fixed columns and their partners, that noticeably change predictions."""
        sizes = [np.mean(part.means[:, fixed:] ** 2, axis=0) if len(part) else 0.0 for part in (self.rows, self.cols)]
        return np.asarray(sizes[0] * sizes[1] >= LIVES * self.variance / self.weight)

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
        data, t, held = Data(entries_of(problem)), self.strengths[side], other.known
        given = self.known_features(features, len(means), side)
        expected = own.expected(len(means), given, data.pattern(side))
        for _ in range(ROUNDS if own.places.rank else 0):
            before, sums = found.means, data.sums(side, *held)
            precision = found.precision / self.variance
            means, inverse = solved(sums, before, own.places, own.prior, precision, expected)
            found = replace(found, means=means, covariance=inverse.inverse().packed)
            if t is None and self.degrees is None:
                break
            if t is not None:
                errors = sums.expected_errors(means, found.moments) / self.variance
                found = replace(found, precision=expected_precisions(data.counts[side], errors, t))
            if self.degrees is not None:
                both = (found.known[:2], held[:2]) if side == 0 else (held[:2], found.known[:2])
                errors = data.errors(*both) / self.variance
                data = Data(data.bound, expected_precisions((data.given > 0).astype(float), errors, self.degrees))
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
        given = Features.of(features, name) or Features(sparse.csr_array(np.shape(features)))
        given.require_rows(rows, name)
        if given.matrix.shape[1] + 1 != len(own.mean):
            counts = counted(given.matrix.shape[1], "column"), len(own.mean) - 1
            raise InputError(f"{name} has {counts[0]}, but the fit had {counts[1]}. Pass the same columns.")
        return given.with_ones

    def _scale(self, i: Array, j: Array) -> Array:
        return self.variance / (self.rows.precision[i] * self.cols.precision[j])

    def _places(self, rows: Array, cols: Array) -> tuple[Array, Array]:
        """Checked coordinates."""
        if np.size(rows) == 0 and np.size(cols) == 0:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        return places(rows, cols, (len(self.rows), len(self.cols)))
