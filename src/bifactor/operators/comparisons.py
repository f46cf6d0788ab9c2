"""Differences of two entries of one row: pairwise preferences."""

from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import eigsh

from bifactor._compat import cached_property
from bifactor.arrays import Array, namespace
from bifactor.blocks import Shared
from bifactor.errors import InputError
from bifactor.factors import Factors
from bifactor.linear_map import LinearMap
from bifactor.losses import DataFit
from bifactor.operators.base import Operator, matrix_shape
from bifactor.operators.bound import DataBound, Measured, Shares
from bifactor.operators.entries import Entries
from bifactor.validation import indices, require_measurements

DENSE = 200
"""The number of compared entries up to which a dense eigenvalue routine computes the norm fastest."""


class Comparisons(Operator):
    """A(X)ₜ = X[rows[t], left[t]] − X[rows[t], right[t]]. ‖A‖² is the largest eigenvalue of a graph Laplacian.

    With the logistic loss and y = +1, σ(zₜ) is the probability that row rows[t] prefers left[t] to right[t], and
    `Problem("logistic", Comparisons(users, chosen, other, shape), np.ones(len(users)))` is Bayesian personalised
    ranking (BPR). With one row, shape (1, n), it is the Bradley–Terry model with log-strengths X[0]; y is −1 if the
    right one wins. A number added to a whole row of X changes nothing, so only entries of the same row can be compared.

    The vertices of the graph are the entries of X, and its edges are the comparisons.

    Parameters
    ----------
    rows, left, right : integer arrays of length p
        The row of each comparison and the two columns that are compared, counted from 0.
    shape : (m, n)
        The shape of X.
    """

    def __init__(self, rows: Array, left: Array, right: Array, shape: tuple[int, int]):
        self.shape = matrix_shape(shape)
        i = indices(rows, "rows", self.shape[0])
        j, k = indices(left, "left", self.shape[1]), indices(right, "right", self.shape[1])
        if not i.size == j.size == k.size:
            raise InputError(
                f"rows has {i.size} indices, left has {j.size} and right has {k.size}. Pass one of each per comparison."
            )
        if i.size == 0:
            raise InputError("Comparisons got no indices. Pass at least one comparison.")
        if np.any(j == k):
            t = int(np.argmax(j == k))
            raise InputError(f"Comparison {t} compares column {j[t]} with itself. Compare two different columns.")
        self.size = int(i.size)
        self._entries = Entries(np.concatenate([i, i]), np.concatenate([j, k]), self.shape)

    @property
    def rows(self) -> Array:
        return self._entries.rows[: self.size]

    @property
    def left(self) -> Array:
        return self._entries.cols[: self.size]

    @property
    def right(self) -> Array:
        return self._entries.cols[self.size :]

    def forward(self, U: Array, V: Array) -> Array:
        return self._difference(self._entries.forward(U, V))

    def motion(self, x: Factors, d: Factors) -> tuple[Array, Array]:
        """The change of the measurements along d, as in `Entries.motion`."""
        z1, z2 = self._entries.motion(x, d)
        return self._difference(z1), self._difference(z2)

    def adjoint(self, w: Array) -> LinearMap:
        require_measurements(w, self.size)
        return self._entries.adjoint(namespace(w).concat([w, -w]))

    def norm_squared(self, weights: Array | None = None) -> float:
        w = np.ones(self.size) if weights is None else np.asarray(weights, np.float64)
        entries = self._entries.rows.astype(np.int64) * self.shape[1] + self._entries.cols
        compared, at = np.unique(entries, return_inverse=True)
        i, j, count = at[: self.size], at[self.size :], compared.size
        pairs = np.concatenate([i, j, i, j]), np.concatenate([i, j, j, i])
        laplacian = sparse.csr_array((np.concatenate([w, w, -w, -w]), pairs), shape=(count, count))
        if count <= DENSE:
            return float(np.linalg.eigvalsh(laplacian.toarray())[-1])
        start = np.random.default_rng(0).standard_normal(count)
        return float(eigsh(laplacian, 1, which="LA", v0=start, tol=1e-4, return_eigenvectors=False)[0])

    def mean_square(self, weights: Array | None = None) -> float:
        total = self.size if weights is None else float(np.sum(weights, dtype=np.float64))
        return 2 * total / (self.shape[0] * self.shape[1])

    def work(self, width: int, dtype: Any) -> int:
        # Both entries of each comparison, in the order of the layout and in that of the operator.
        return self._entries.work(width, dtype) + 8 * self.size * np.dtype(dtype).itemsize

    def bind(self, fit: DataFit) -> DataBound:
        return ComparisonsBound(self, self.sized(fit))

    def sums(self, weights: Array | None) -> tuple[Array, Array]:
        """The sums of the weights of comparisons over the entries of each row and of each column."""
        return self._entries.sums(None if weights is None else np.concatenate([weights, weights]))

    def _difference(self, entries: Array) -> Array:
        return entries[: self.size] - entries[self.size :]


class ComparisonsBound(Measured):
    """f(X) = Σ wₜ ℓ(X[iₜ, jₜ] − X[iₜ, kₜ]; yₜ), with quick curves."""

    operator: Comparisons
    quick = True

    def motion(self, x: Factors, d: Factors) -> tuple[Array, Array]:
        return self.operator.motion(x, d)

    def expected(self, x: Factors, side: int, alone: bool = True) -> Shared:
        """As for `Entries`. Differences cancel the mean of all columns, so a row depends on deviations from it."""
        other = x.left if side else x.right
        if side == 0:
            other = other - self._shares.centre(other, 1)
        return self._shares.blocks(other, side, alone)

    @cached_property
    def _shares(self) -> Shares:
        curvature, weights = self.fit.typical
        rows, cols = self.operator.sums(weights)
        return Shares((curvature * rows, curvature * cols), self.like)
