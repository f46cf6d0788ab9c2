"""Features of the rows of a matrix: L = [I F], and products with it."""

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from bifactor._compat import cached_property
from bifactor.arrays import (
    Array,
    beside,
    digest,
    dtype_of,
    floating,
    host,
    is_complex,
    namespace,
    where,
    zeros,
)
from bifactor.arrays.sparse import coordinates
from bifactor.blocks import Weight
from bifactor.errors import InputError
from bifactor.linear_map import Dense, LinearMap
from bifactor.operators.entries import Entries
from bifactor.svd import spectral_norm
from bifactor.validation import counted, require_finite

FULL = 0.25
"""The share of nonzero entries above which a matrix is multiplied as a dense one."""


class Features:
    """U = Ũ + FA for factors [Ũ; A]: the sum of each row's own part and the part from its features.

    Parameters
    ----------
    matrix : csr_array
        The features F, with one row for each row of X and one column for each feature.
    """

    def __init__(self, matrix: sparse.csr_array):
        self.matrix = matrix
        self.rows, self.count = (int(side) for side in matrix.shape)
        self._maps: dict[tuple[Any, str], LinearMap] = {}

    @property
    def lines(self) -> int:
        """The number of rows of [Ũ; A]."""
        return self.rows + self.count

    def times(self, factor: Array) -> Array:
        """L[Ũ; A] = Ũ + FA."""
        own, shared = factor[: self.rows, :], factor[self.rows :, :]
        return own if self.matrix.nnz == 0 else self.map(factor).matmul(shared) + own

    def back(self, factor: Array) -> Array:
        """LᵀG = [G; FᵀG]."""
        if self.matrix.nnz == 0:
            shared = zeros((self.count, int(factor.shape[1])), dtype_of(factor), factor)
        else:
            shared = self.map(factor).rmatmul(factor)
        return namespace(factor).concat([factor, shared])

    def sums(self, weights: Weight) -> Array:
        """(a, Σᵢ fᵢ²aᵢ) for weights a of the rows."""
        if isinstance(weights, float):
            weights = np.full(self.rows, weights)
        a = host(weights)
        return beside(np.concatenate([a, (self.squares @ a).astype(a.dtype)]), weights)

    @cached_property
    def norm_squared(self) -> float:
        """‖L‖² = 1 + ‖F‖²."""
        if self.matrix.nnz == 0:
            return 1.0
        return 1.0 + spectral_norm(Dense(self.matrix), np.random.default_rng(0)) ** 2

    @cached_property
    def joint(self) -> Array:
        """Multiples c of the diagonal of FᵀF, one for each feature, with FᵀF ≼ 2·diag(c)·diag(FᵀF).

        Two diagonals above FᵀF are known, the sums of the rows of |F|ᵀ|F| and a multiple of the diagonal of FᵀF; the
        smaller one is taken for each feature. Features of one sign that rows have in common, such as the patterns of
        observed entries, add up: c is about the number of features of a row. For independent ones it is about 1.
        """
        alone = np.asarray(self.squares.sum(axis=1))
        if not np.any(alone > 0):
            return np.ones(self.count)
        each, sizes = np.where(alone > 0, alone, 1.0), abs(self.matrix)
        sums = sizes.T @ (sizes @ np.ones(self.count))
        scaled = sparse.csr_array(self.matrix @ sparse.diags_array(each**-0.5))
        return np.minimum(sums / each, spectral_norm(Dense(scaled), np.random.default_rng(0)) ** 2)

    @cached_property
    def fingerprint(self) -> str:
        return digest(self.matrix.data, self.matrix.indices, self.matrix.indptr)

    @cached_property
    def squares(self) -> sparse.csr_array:
        """(F∘F)ᵀ."""
        return sparse.csr_array(self.matrix.multiply(self.matrix).T)

    def map(self, factor: Array) -> LinearMap:
        """F in the precision and library of a factor."""
        real = np.finfo(dtype_of(factor)).dtype
        key = real, where(factor)
        if key not in self._maps:
            if self.matrix.nnz > FULL * self.rows * self.count:
                self._maps[key] = Dense(beside(self.matrix.toarray().astype(real), factor))
            else:  # with the kernels of sampled products, on all threads
                places = self.matrix.tocoo()
                operator = Entries(places.row, places.col, self.matrix.shape)
                self._maps[key] = operator.adjoint(places.data.astype(real))
        return self._maps[key]


class Sides(NamedTuple):
    """The features of rows, L = [I F], and of columns, R = [I G]; None if there are none."""

    left: Features | None
    right: Features | None

    @property
    def none(self) -> bool:
        return self.left is None and self.right is None

    @property
    def norm_squared(self) -> float:
        """‖L‖²‖R‖²."""
        return float(np.prod([1.0 if side is None else side.norm_squared for side in self]))

    def shape(self, measured: tuple[int, int]) -> tuple[int, int]:
        """The shape of X′, from that of LX′Rᵀ."""
        m, n = (rows if side is None else side.lines for side, rows in zip(self, measured, strict=True))
        return m, n

    def times(self, U: Array, V: Array) -> tuple[Array, Array]:
        """LU and RV."""
        return self._times(0, U), self._times(1, V)

    def back(self, U: Array, V: Array) -> tuple[Array, Array]:
        """LᵀU and RᵀV."""
        return self._back(0, U), self._back(1, V)

    def through(self, G: LinearMap) -> LinearMap:
        """LᵀGR."""
        return G if self.none else _Through(self, G)

    def _times(self, side: int, factor: Array) -> Array:
        features = self[side]
        return factor if features is None else features.times(factor)

    def _back(self, side: int, factor: Array) -> Array:
        features = self[side]
        return factor if features is None else features.back(factor)


class _Through(LinearMap):
    """LᵀGR."""

    def __init__(self, sides: Sides, G: LinearMap):
        self.sides, self.G = sides, G
        self.shape, self.dtype, self.like = sides.shape(G.shape), G.dtype, G.like

    def matmul(self, V: Array) -> Array:
        return self.sides._back(0, self.G.matmul(self.sides._times(1, V)))

    def rmatmul(self, U: Array) -> Array:
        return self.sides._back(1, self.G.rmatmul(self.sides._times(0, U)))

    def products(self, U: Array, V: Array) -> tuple[Array, Array]:
        return self.sides.back(*self.G.products(*self.sides.times(U, V)))


def features_of(given: Any, rows: int, name: str) -> Features | None:
    """A user's F; `InputError` unless it has this many rows of finite real numbers."""
    if given is None:
        return None
    matrix = feature_matrix(given, name)
    if matrix.shape[0] != rows:
        raise InputError(
            f"{name} has {counted(matrix.shape[0], 'row')}, but that side of X has {rows}. Pass one row for each."
        )
    return Features(matrix)


def feature_matrix(given: Any, name: str) -> sparse.csr_array:
    """A sparse matrix or an array of finite real numbers in canonical CSR form, without zeros."""
    if sparse.issparse(given):
        matrix = sparse.csr_array(coordinates(given, name))  # repeated entries are summed
    else:
        dense = host(floating(given, name))
        if dense.ndim != 2:
            raise InputError(f"{name} has {counted(dense.ndim, 'dimension')}, but a matrix has 2. Reshape it first.")
        matrix = sparse.csr_array(dense)
    matrix.data = floating(matrix.data, name)
    if is_complex(matrix.data):
        raise InputError(f"{name} holds complex numbers. Pass real and imaginary parts as separate features.")
    require_finite(matrix.data, name, "Leave out unknown entries: they count as 0.")
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    return matrix


def pattern(rows: Array, cols: Array, shape: tuple[int, int]) -> sparse.csr_array:
    """F[i, j] = |Nᵢ|^{-½} if entry (i, j) is observed, otherwise 0; Nᵢ are the columns that row i is observed in.

    With these features, the factor of row i is uᵢ + |Nᵢ|^{-½}Σⱼ aⱼ over the columns j in Nᵢ: the set of observed
    entries is informative, independently of their values. This is the model SVD++.

    Parameters
    ----------
    rows, cols : integer arrays of length p
        Coordinates of the observed entries, counted from 0, as for `Entries`.
    shape : (m, n)
        The shape of X.

    References
    ----------
    Y. Koren, Factorization meets the neighborhood: a multifaceted collaborative filtering model, KDD 2008.
    """
    entries = Entries(rows, cols, shape)
    found = sparse.csr_array((np.ones(entries.size), (entries.rows, entries.cols)), shape=entries.shape)
    found.sum_duplicates()
    counts = np.diff(found.indptr)
    found.data = np.repeat(np.maximum(counts, 1) ** -0.5, counts)
    return found
