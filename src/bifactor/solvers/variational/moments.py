"""Second moments of factors whose rows have covariances, packed as `row_blocks_reference.triangle` orders them."""

from dataclasses import dataclass
from types import ModuleType
from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike
from scipy import sparse

from bifactor import kernels
from bifactor._compat import cached_property
from bifactor.arrays import HOST_ARRAY, Array
from bifactor.blocks import Exact
from bifactor.factors import Factors
from bifactor.kernels.moments_reference import Span, Tables
from bifactor.kernels.row_blocks_reference import triangle
from bifactor.operators.entries import EntriesBound, SymbolicEntries
from bifactor.operators.features import pattern
from bifactor.problems.objective import Objective

LEAST_NOISE = 1e-8
"""The smallest noise, as a share of the mean of y²: for exact data, sums of squares cancel down to their rounding."""


@dataclass(frozen=True)
class Places:
    """The unknown columns of a factor, and the places of pairs of them in packed triangles of all columns."""

    width: int
    free: Array
    fixed: Array
    groups: Array
    """For each unknown column, the first one with which it shares a prior."""
    effects: int
    """The number of unknown columns with a fixed partner; they come first."""

    @classmethod
    def of(cls, x: Factors, side: int, shared: bool) -> "Places":
        """`shared` gives one prior to all columns that are unknown on both sides; effects keep their own."""
        ones = x.gradient(np.ones((1, x.width)), np.ones((1, x.width)))  # zero where a column is fixed
        unknown = [F[0] != 0 for F in (ones.left, ones.right)]
        free = np.flatnonzero(unknown[side])
        groups, components = np.arange(free.size), np.flatnonzero(unknown[1 - side][free])
        if shared:
            groups[components] = components[:1]
        return cls(x.width, free, np.flatnonzero(~unknown[side]), groups, int(free.size - components.size))

    @property
    def rank(self) -> int:
        return int(self.free.size)

    def columns(self, stay: Array) -> "Places":
        """The same for the columns of a mask."""
        number, kept = np.cumsum(stay) - 1, stay[self.free]
        fixed = self.fixed[stay[self.fixed]]
        _, groups = np.unique(self.groups[kept], return_inverse=True)
        firsts = np.array([np.argmax(groups == group) for group in groups], np.int64)
        return Places(
            int(np.count_nonzero(stay)),
            number[self.free[kept]],
            number[fixed],
            firsts,
            int(np.count_nonzero(kept[: self.effects])),
        )

    @property
    def pairs(self) -> Array:
        """The places of pairs of unknown columns, in the order of a triangle of these alone."""
        return pairs_of(self.free)

    @property
    def diagonal(self) -> Array:
        """The places of the diagonal in a triangle of the unknown columns alone."""
        k = np.arange(self.rank)
        return _at(k, k)

    @property
    def cross(self) -> Array:
        """The places of pairs of an unknown and a fixed column."""
        return _at(self.free[:, None], self.fixed[None, :])


class MomentSums(NamedTuple):
    """Over the entries of each row: Σ q·E[bᵀb], Σ q·y·E[b] and Σ q·y², b the row of the other factor."""

    packed: Array
    linear: Array
    squares: Array

    def expected_errors(self, rows: Array, moments: Array) -> Array:
        """Σ q·E(y − z)², with the mean and the second moment of each row."""
        first, second = triangle(rows.shape[1])
        double = np.where(first == second, 1.0, 2.0)
        return self.squares - 2 * np.sum(rows * self.linear, axis=1) + (moments * self.packed) @ double


class EntrySums:
    """The entries of a bound, and sums over them.

    `trust` multiplies the weights: the precision of each entry, if these differ.
    """

    def __init__(self, bound: EntriesBound, trust: Array | None = None):
        self.bound, self.layout, self.shape = bound, bound.layout, bound.shape
        self.y, self.weighted = bound.fit.values, bound.fit.weights
        self.weights = self.weighted if trust is None else self.given * trust
        """The weights; None means ones."""

    @cached_property
    def given(self) -> Array:
        """The weight of each entry, without trust."""
        return np.ones(self.y.size) if self.weighted is None else np.asarray(self.weighted, np.float64)

    @cached_property
    def counts(self) -> tuple[Array, Array]:
        """The number of entries of each row, and of each column."""
        seen = None if self.weighted is None else (self.weighted > 0).astype(np.float64)
        return self.bound.operator.sums(seen)

    @cached_property
    def about(self) -> "DataStatistics":
        return DataStatistics.of(self.y, self.weighted)

    def pattern(self, side: int) -> sparse.csr_array:
        """The columns in which each row is known with a weight above 0, or the rows of each column."""
        known = self.given > 0
        rows, cols = self.bound.operator.rows[known], self.bound.operator.cols[known]
        return pattern(cols, rows, self.shape[::-1]) if side else pattern(rows, cols, self.shape)

    def errors(self, rows: tuple[Array, Array], cols: tuple[Array, Array]) -> Array:
        """w·E(y − z)² for each entry, with the given w, from the means and second moments of both factors."""
        first, second = triangle(rows[0].shape[1])
        double, y = np.where(first == second, 1.0, 2.0), np.asarray(self.y, np.float64)
        z = self.bound.operator.forward(rows[0], cols[0])
        squares = self.bound.operator.forward(np.ascontiguousarray(rows[1] * double), cols[1])
        return self.given * np.maximum(y * y - 2 * y * z + squares, 0)

    def moved(self, before: Array, after: Array, variance: float) -> float:
        """The root mean square of the change of z, in units of the noise."""
        change = np.asarray(after, np.float64) - before
        return self.about.moved(float(np.sum(self.given * change * change)), variance)

    def sums(self, side: int, *known: Array) -> MomentSums:
        """The sums for the rows of one side, from the means, second moments and precisions of the other side."""
        if (side == 0) != self.bound.flipped:
            return self.gathered(weight_by_precision(*known), (0, self.layout.n_outer))
        found = self.private(known[0].shape[1])
        self.scatter(weight_by_precision(*known), (0, self.layout.n_outer), found)
        return self.collected(found)

    def gathered(self, tables: Tables, span: Span) -> MomentSums:
        """The sums for some rows of the longer side."""
        kernel = self._kernel(tables[1].shape[1])
        return MomentSums(*kernel.gathered(self.layout, self.y, self.weights, tables, span))

    def scatter(self, tables: Tables, span: Span, found: list[Tables]) -> None:
        """Add the contributions of some rows of the longer side to the sums of the shorter one; see `collected`."""
        self._kernel(tables[1].shape[1]).scatter(self.layout, self.y, self.weights, tables, span, found)

    def private(self, width: int) -> list[Tables]:
        found: list[Tables] = self._kernel(width).private(self.layout, width)
        return found

    def collected(self, found: list[Tables]) -> MomentSums:
        return MomentSums(*self._kernel(found[0][1].shape[1]).collected(found))

    def _kernel(self, width: int) -> ModuleType:
        return kernels.get("moments", HOST_ARRAY, self.layout.size, width * (width + 3) // 2)


class DataStatistics(NamedTuple):
    """Statistics of data that do not depend on factors; those of several blocks can be added."""

    size: int
    """The number of entries with a weight above 0."""
    squares: float
    """Σ wy²."""
    total: float
    """Σ w."""
    logarithms: float
    """Σ log w."""

    @classmethod
    def of(cls, y: Array, weights: Array | None) -> "DataStatistics":
        """The statistics of values with weights; None means ones."""
        if weights is None:
            return cls(y.size, float(np.einsum("t,t", y, y, dtype=np.float64)), float(y.size), 0.0)
        w = np.asarray(weights, np.float64)
        used = w[w > 0]
        squares = float(np.einsum("t,t,t", w, y, y, dtype=np.float64))
        return cls(used.size, squares, float(np.sum(used)), float(np.sum(np.log(used))))

    @property
    def mean_square(self) -> float:
        """The mean of y²; 1 if all y are 0."""
        return self.squares / (self.total or 1.0) or 1.0

    @property
    def mean_weight(self) -> float:
        return self.total / max(self.size, 1) or 1.0

    @property
    def least_noise(self) -> float:
        """The smallest variance of the noise of an entry of weight 1."""
        return LEAST_NOISE * self.mean_square * self.mean_weight

    def representable(self, dtype: DTypeLike) -> bool:
        """Whether the least noise and its inverse, which is a weight, can be squared in this precision."""
        most = float(np.finfo(dtype).max) ** 0.5
        return 1e4 / most <= self.least_noise <= 1e-4 * most

    def variance(self, errors: float) -> float:
        """The variance of the noise, from the sum of the expected squared errors."""
        return max(errors / max(self.size, 1), self.least_noise)

    def normalisation(self, variance: float) -> float:
        """½Σ log(2πψ/w), ψ the variance of the noise."""
        return 0.5 * (self.size * float(np.log(2 * np.pi * variance)) - self.logarithms)

    def moved(self, squares: float, variance: float) -> float:
        """The root mean square of a change, in units of the noise."""
        return (squares / (max(self.size, 1) * variance)) ** 0.5


def entries_of(problem: Objective) -> EntriesBound:
    """The bound of a problem of entries in memory."""
    bound = problem.f.bound if isinstance(problem.f, SymbolicEntries) else problem.f
    assert isinstance(bound, EntriesBound)  # checked by the solver
    return bound


def weight_by_precision(means: Array, moments: Array, precision: Array) -> Tables:
    """The quantities needed for the sums of the other factor, as kernels take them."""
    if not np.all(precision == 1):  # otherwise no copies are needed
        moments, means = precision[:, None] * moments, precision[:, None] * means
    return np.ascontiguousarray(moments), np.ascontiguousarray(means), np.ascontiguousarray(precision)


def second_moments(rows: Array, covariance: Array | None, places: Places) -> Array:
    """E[bᵀb] of each row, packed, from its mean and the covariance of its unknown columns, if any."""
    pairs = places.pairs
    if covariance is None:
        covariance, pairs = np.empty((len(rows), 0)), pairs[:0]
    kernel = kernels.get("row_blocks", rows, rows.size, rows.shape[1])
    return kernel.moments(rows, covariance, pairs)


def solve_rows(
    sums: MomentSums, rows: Array, places: Places, prior: Array, precision: Array, expected: Array | None = None
) -> tuple[Array, Exact]:
    """`rows` with means in their unknown columns, and M = C⁻¹ of each row.

    `expected` are the means of the prior, if they are not 0.
    """
    q = precision[:, None]
    packed = q * sums.packed[:, places.pairs]
    packed[:, places.diagonal] += prior
    met = np.einsum("iak,ik->ia", sums.packed[:, places.cross], rows[:, places.fixed])
    inverse = Exact(packed, places.rank)
    found = rows.copy()
    linear = q * (sums.linear[:, places.free] - met)
    if expected is not None:
        linear += prior * expected
    found[:, places.free] = inverse.divide(np.ascontiguousarray(linear))
    return found, inverse


def pairs_of(columns: Array) -> Array:
    """The places of pairs of some columns in packed triangles of all, in the order of a triangle of these alone."""
    first, second = triangle(columns.size)
    return _at(columns[first], columns[second])


def _at(first: Array, second: Array) -> Array:
    """The place of an entry in packed triangles."""
    low, high = np.minimum(first, second), np.maximum(first, second)
    return high * (high + 1) // 2 + low
