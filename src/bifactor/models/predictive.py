"""Distributions of new measurements: standard deviations, intervals and draws."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

import numpy as np

from bifactor.arrays import Array
from bifactor.kernels.blas import matmul
from bifactor.models.rows import RowModel
from bifactor.solvers.variational.posterior import Gaussians, Posterior


class PredictiveDistribution(ABC):
    """The distribution of new measurements of z at pairs of indices; -1 stands for an unknown row or column."""

    @abstractmethod
    def std(self, i: Array, j: Array) -> Array:
        """Standard deviations of new measurements, which include the noise."""

    @abstractmethod
    def interval(self, i: Array, j: Array, level: float) -> tuple[Array, Array]:
        """Intervals that contain new measurements with this probability."""

    @abstractmethod
    def sample(self, rng: np.random.Generator, i: Array, j: Array, noise: bool, whole: bool) -> Array:
        """One joint draw of new measurements or, without noise, of z; `whole` means all of the matrix, row by row."""

    @abstractmethod
    def of_rows(self, rows: Gaussians) -> "PredictiveDistribution":
        """The distribution of a matrix with other rows."""

    @abstractmethod
    def following(self, rows: RowModel) -> "PredictiveDistribution":
        """The distribution after rows or columns were added to the model of rows."""


@dataclass(frozen=True, eq=False)
class PosteriorPredictive(PredictiveDistribution):
    """The distribution under the posterior of the factors and the noise."""

    posterior: Posterior

    def std(self, i: Array, j: Array) -> Array:
        posterior, i, j = self._at(i, j)
        return posterior.predictive_std(i, j)

    def interval(self, i: Array, j: Array, level: float) -> tuple[Array, Array]:
        posterior, i, j = self._at(i, j)
        return posterior.interval(i, j, level)

    def sample(self, rng: np.random.Generator, i: Array, j: Array, noise: bool, whole: bool) -> Array:
        posterior, i, j = self._at(i, j)
        U, V = posterior.sample(rng)
        z: Array = matmul(U, V.T).ravel() if whole else np.einsum("tk,tk->t", U[i], V[j])
        return z + posterior.sample_noise(i, j, rng) if noise else z

    def of_rows(self, rows: Gaussians) -> "PosteriorPredictive":
        return PosteriorPredictive(replace(self.posterior, rows=rows))

    def following(self, rows: RowModel) -> "PosteriorPredictive":
        return self if rows.posterior is None else PosteriorPredictive(rows.posterior)

    def _at(self, i: Array, j: Array) -> tuple[Posterior, Array, Array]:
        """The posterior, with another row and column if some are unknown, and the indices in it."""
        posterior = self.posterior
        if np.any(i < 0) or np.any(j < 0):
            m, n = len(posterior.rows), len(posterior.cols)
            posterior = replace(posterior, rows=posterior.rows.padded(m + 1), cols=posterior.cols.padded(n + 1))
            i, j = np.where(i < 0, m, i), np.where(j < 0, n, j)
        return posterior, i, j
