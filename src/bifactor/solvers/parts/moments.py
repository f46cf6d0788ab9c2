"""Second moments of factors whose rows have covariances, packed as `kernels.blocks_reference.triangle` orders them."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import sparse

from bifactor import kernels
from bifactor.arrays import Array
from bifactor.blocks import Exact
from bifactor.caching import cached_property
from bifactor.factors import Factors
from bifactor.kernels.blocks_reference import triangle
from bifactor.linear_map import LinearMap
from bifactor.operators import Entries
from bifactor.problems.problem import Problem
from bifactor.solvers.parts.features import pattern

LEAST_NOISE = 1e-8
"""Of the mean square of y: data may be exact, but then sums of squares cancel down to their rounding."""


@dataclass(frozen=True)
class Places:
    """Which columns of a factor are unknown, and where pairs of them are in packed triangles of all columns."""

    width: int
    free: Array
    fixed: Array
    groups: Array
    """Of each unknown column, the first one that it shares a prior with."""
    effects: int
    """How many of the unknown columns have a partner that is given; they come first."""

    @classmethod
    def of(cls, x: Factors, side: int, shared: bool) -> "Places":
        """`shared` gives one prior to all columns that are unknown on both sides; effects keep their own."""
        ones = x.gradient(np.ones((1, x.width)), np.ones((1, x.width)))  # zero where a column is given
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
        """Of some of the columns, by a mask."""
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
        """Of two unknown columns, in the order of a triangle of them alone."""
        return pairs_of(self.free)

    @property
    def diagonal(self) -> Array:
        """Of each unknown column with itself, in a triangle of them alone."""
        k = np.arange(self.rank)
        return _at(k, k)

    @property
    def cross(self) -> Array:
        """Of each unknown column with each that is fixed."""
        return _at(self.free[:, None], self.fixed[None, :])


class Sums(NamedTuple):
    """Over the entries of each row: Σ q·E[bᵀb], Σ q·y·E[b] and Σ q·y², b the row of the other factor."""

    packed: Array
    linear: Array
    squares: Array

    def expected_errors(self, rows: Array, moments: Array) -> Array:
        """Σ q·E(y − z)², with the mean and the second moment of each row."""
        first, second = triangle(rows.shape[1])
        double = np.where(first == second, 1.0, 2.0)
        return self.squares - 2 * np.sum(rows * self.linear, axis=1) + (moments * self.packed) @ double


class Data:
    """The entries of a problem as matrices with w, wy and wy² at their places.

    `trust` multiplies the weights of the problem: the precision of each entry, where these differ.
    """

    def __init__(self, problem: Problem, trust: Array | None = None):
        y = np.asarray(problem.y, np.float64)
        w = np.ones_like(y) if problem.weights is None else np.asarray(problem.weights, np.float64)
        self.problem, self.shape, self.y, self.given = problem, problem.shape, y, w
        self.weights = w if trust is None else w * trust
        self.maps = [problem.f.pull_back(part) for part in (self.weights, self.weights * y, self.weights * y * y)]
        self.size = int(np.count_nonzero(w))
        self.mean_square = float(np.sum(w * y * y)) / max(self.size, 1) or 1.0
        self.least_noise = LEAST_NOISE * self.mean_square

    @cached_property
    def counts(self) -> list[Array]:
        """Entries of each row, and of each column."""
        seen = self.problem.f.pull_back((self.given > 0).astype(np.float64))
        return [self._of(seen, side, np.ones((self.shape[1 - side], 1)))[:, 0] for side in (0, 1)]

    def pattern(self, side: int) -> sparse.csr_array:
        """Which columns each row is known in, or which rows each column; see `features.pattern`."""
        operator = self.problem.operator
        assert isinstance(operator, Entries)
        return pattern(operator.rows, operator.cols, self.given, self.shape, side)

    def normalisation(self, variance: float) -> float:
        """½Σ log(2πψ/w), ψ the variance of the noise."""
        logarithms = float(np.sum(np.log(self.given[self.given > 0])))
        return 0.5 * (self.size * float(np.log(2 * np.pi * variance)) - logarithms)

    def errors(self, rows: tuple[Array, Array], cols: tuple[Array, Array]) -> Array:
        """w·E(y − z)² of each entry, w as given, from the means and second moments of both factors."""
        first, second = triangle(rows[0].shape[1])
        double = np.where(first == second, 1.0, 2.0)
        z = self.problem.operator.forward(rows[0], cols[0])
        squares = self.problem.operator.forward(np.ascontiguousarray(rows[1] * double), cols[1])
        return self.given * np.maximum(self.y * self.y - 2 * self.y * z + squares, 0)

    def moved(self, before: Array, after: Array, variance: float) -> float:
        """How far z has moved, by root mean square, in units of the noise."""
        change = np.asarray(after, np.float64) - before
        return float(np.sum(self.given * change * change) / (max(self.size, 1) * variance)) ** 0.5

    def sums(self, side: int, other: Array, moments: Array, precision: Array) -> Sums:
        """For the rows of one side, by the means and second moments of the other, each row of that with a precision."""
        q = precision[:, None]
        matrix, linear, squares = self.maps
        parts = (matrix, q * moments), (linear, q * other), (squares, q)
        packed, first, zeroth = (self._of(one, side, table) for one, table in parts)
        return Sums(packed, first, zeroth[:, 0])

    @staticmethod
    def _of(one: LinearMap, side: int, table: Array) -> Array:
        table = np.ascontiguousarray(table)
        return np.asarray(one.H @ table if side else one @ table)


def second_moments(rows: Array, covariance: Array | None, places: Places) -> Array:
    """E[bᵀb] of each row, packed, from its mean and the covariance of its unknown columns, if there is any."""
    pairs = places.pairs
    if covariance is None:
        covariance, pairs = np.empty((len(rows), 0)), pairs[:0]
    find = kernels.find("blocks", rows.dtype, rows.size, rows.shape[1])
    return find.moments(rows, covariance, pairs)


def solved(
    sums: Sums, rows: Array, places: Places, prior: Array, precision: Array, expected: Array | None = None
) -> tuple[Array, Exact]:
    """Means, in the place of the unknown columns of `rows`, and M = C⁻¹ of each row.

    `expected` are the means of the prior, where they are not 0.
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
    """The places of pairs of some columns in packed triangles of all, in the order of a triangle of them alone."""
    first, second = triangle(columns.size)
    return _at(columns[first], columns[second])


def _at(first: Array, second: Array) -> Array:
    """The place of an entry in packed triangles."""
    low, high = np.minimum(first, second), np.maximum(first, second)
    return high * (high + 1) // 2 + low
