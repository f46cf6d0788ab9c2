"""Side information: measurements of a matrix whose rows and columns have features."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from scipy import sparse

from bifactor._compat import cached_property
from bifactor.arrays import (
    Array,
    digest,
    dtype_of,
    epsilon,
    floating,
    herm,
    is_complex,
    namespace,
    to_device_of,
    to_numpy,
    where,
    zeros,
)
from bifactor.arrays.sparse import coordinates
from bifactor.blocks import Blocks, Exact, Shared, Weight
from bifactor.errors import InputError
from bifactor.factors import Factors, Free
from bifactor.kernels.blas import matmul
from bifactor.linear_map import Dense, LinearMap
from bifactor.losses import DataFit
from bifactor.operators.base import Operator, matrix_shape, power_norm_squared, probed_mean_square
from bifactor.operators.bound import DataBound, Footprint, WrappedBound
from bifactor.operators.entries import Entries, places
from bifactor.svd import spectral_norm
from bifactor.validation import pluralize, require_finite, require_pair

FULL = 0.25
"""The share of nonzero entries above which a matrix is multiplied as a dense one."""


class FeatureMap:
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
        a = to_numpy(weights)
        return to_device_of(np.concatenate([a, (self.squares @ a).astype(a.dtype)]), weights)

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
                self._maps[key] = Dense(to_device_of(self.matrix.toarray().astype(real), factor))
            else:  # with the kernels of sampled products, on all threads
                known = self.matrix.tocoo()
                operator = Entries(known.row, known.col, self.matrix.shape)
                self._maps[key] = operator.adjoint(to_device_of(known.data.astype(real), factor))
        return self._maps[key]


class FeatureMaps(NamedTuple):
    """The features of rows, L = [I F], and of columns, R = [I G]; None if there are none."""

    left: FeatureMap | None
    right: FeatureMap | None

    @classmethod
    def of(cls, shape: tuple[int, int], left: Any, right: Any) -> "FeatureMaps":
        """The features of a user, for a matrix of this shape."""
        return cls(features_of(left, shape[0], "left"), features_of(right, shape[1], "right"))

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

    def __init__(self, sides: FeatureMaps, G: LinearMap):
        self.sides, self.G = sides, G
        self.shape, self.dtype, self.like = sides.shape(G.shape), G.dtype, G.like

    def matmul(self, V: Array) -> Array:
        return self.sides._back(0, self.G.matmul(self.sides._times(1, V)))

    def rmatmul(self, U: Array) -> Array:
        return self.sides._back(1, self.G.rmatmul(self.sides._times(0, U)))

    def products(self, U: Array, V: Array) -> tuple[Array, Array]:
        return self.sides.back(*self.G.products(*self.sides.times(U, V)))


def features_of(given: Any, rows: int, name: str) -> FeatureMap | None:
    """A user's F; `InputError` unless it has this many rows of finite real numbers."""
    if given is None:
        return None
    matrix = feature_matrix(given, name)
    if matrix.shape[0] != rows:
        raise InputError(
            f"{name} has {pluralize(matrix.shape[0], 'row')}, but that side of X has {rows}. Pass one row for each."
        )
    return FeatureMap(matrix)


def feature_matrix(given: Any, name: str) -> sparse.csr_array:
    """A sparse matrix or an array of finite real numbers in canonical CSR form, without zeros."""
    if sparse.issparse(given):
        matrix = sparse.csr_array(coordinates(given, name))  # repeated entries are summed
    else:
        dense = to_numpy(floating(given, name))
        if dense.ndim != 2:
            raise InputError(f"{name} has {pluralize(dense.ndim, 'dimension')}, but a matrix has 2. Reshape it first.")
        matrix = sparse.csr_array(dense)
    matrix.data = floating(matrix.data, name)
    if is_complex(matrix.data):
        raise InputError(f"{name} holds complex numbers. Pass real and imaginary parts as separate features.")
    require_finite(matrix.data, name, "Leave out unknown entries: they count as 0.")
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    return matrix


def pattern(rows: Array, cols: Array, shape: tuple[int, int]) -> sparse.csr_array:
    """F[i, j] = |Nᵢ|^{-½} if entry (i, j) is observed, otherwise 0; Nᵢ is the set of columns that row i is observed in.

    With these features, the factor of row i is uᵢ + |Nᵢ|^{-½}Σⱼ aⱼ over the columns j in Nᵢ: the set of observed
    entries is informative, independently of their values. This is the model SVD++. An entry that is observed several
    times is in the set once, so that every row with entries has norm 1.

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
    shape = matrix_shape(shape)
    i, j = places(rows, cols, shape)
    found = sparse.csr_array((np.ones(i.size), (i, j)), shape=shape)
    found.sum_duplicates()
    counts = np.diff(found.indptr)
    found.data = np.repeat(np.maximum(counts, 1) ** -0.5, counts)
    return found


# The curvature of a function in rows with common features.


@dataclass(frozen=True, eq=False)
class Coupled(Shared):
    """Blocks of the rows of [Ũ; A] with U = Ũ + FA: for a row those of U, Mᵢ, and for a feature cΣᵢ fᵢ²Mᵢ.

    Here c is `FeatureMap.joint`: features that rows have in common add up. In addition, a change of A affects all rows
    that have the feature. With terms on Ũ and A, such as a ridge R, the Hessian is [M + R, MF; FᵀM, FᵀMF + R′].
    Division by it uses its Schur complement R′ + Fᵀ(M − M(M + R)⁻¹M)F, with the same diagonal in place of FᵀF. Without
    this, rows with many observations would take hundreds of iterations to find their common features.
    """

    features: FeatureMap | None = None
    own: Shared = Shared()
    """The blocks Mᵢ of the rows of U."""
    terms: Shared = Shared()
    """R and R′."""

    def __add__(self, other: Shared) -> Self:
        both = super().__add__(other)
        return replace(self, pairs=both.pairs, ridge=both.ridge, terms=self.terms + other)

    def __rmul__(self, number: float) -> Self:
        both = super().__rmul__(number)
        return replace(self, pairs=both.pairs, ridge=both.ridge, own=number * self.own, terms=number * self.terms)

    def damped(self, damping: float) -> Self:
        return replace(self, pairs=super().damped(damping).pairs, own=self.own.damped(damping))

    def at(self, chosen: Array) -> Self:
        return replace(self, pairs=super().at(chosen).pairs, own=self.own.at(chosen), terms=self.terms.at(chosen))

    def divide_among(self, rows: Array, chosen: Array) -> Array:
        if len(chosen) < rows.shape[1]:
            return Blocks.divide_among(self, rows, chosen)
        F, first = self.features, _ridge(self.terms)
        assert F is not None
        if F.matrix.nnz == 0 or not np.any(first > 0):
            return super().divide_among(rows, chosen)
        R = self.terms.part(slice(F.rows))
        M, own, shared = self.own + R, rows[: F.rows, :], rows[F.rows :, :]
        u, product = M.divide(own), F.map(rows)
        a = self._features_divided(shared - product.rmatmul(own - R.times(u)), first)
        moved = product.matmul(a)
        return namespace(rows).concat([u - moved + M.divide(R.times(moved)), a])

    def _features_divided(self, rows: Array, ridge: Array) -> Array:
        """Rows of features divided by R′ + cΣᵢ fᵢ²(Mᵢ − Mᵢ(Mᵢ + R)⁻¹Mᵢ), by the means of M and R over their rows."""
        F = self.features
        assert F is not None
        means = [float(np.mean(to_numpy(a))) for a, _ in self.own.pairs]
        values, Q = np.linalg.eigh(_total([mean * B for mean, (_, B) in zip(means, self.own.pairs, strict=True)]))
        sizes = np.array([mean * float(np.trace(B).real) for mean, (_, B) in zip(means, self.own.pairs, strict=True)])
        shares = np.divide(sizes, sizes.sum() * np.array(means), out=np.zeros_like(sizes), where=sizes > 0)
        own = _total([share * to_numpy(a)[F.rows :] for share, (a, _) in zip(shares, self.pairs, strict=False)])
        M = np.multiply.outer(own, np.maximum(values, 0.0))
        R = (F.joint * np.asarray(F.sums(np.broadcast_to(ridge, F.lines)[: F.rows]))[F.rows :])[:, None]
        left = np.divide(M * R, M + R, out=np.zeros_like(M), where=M + R > 0)
        S = left + LEAST * M + np.broadcast_to(ridge, F.lines)[F.rows :, None]
        S = np.maximum(S, epsilon(rows) * max(float(S.max(initial=0.0)), 1e-300))
        S = to_device_of(S.astype(np.finfo(dtype_of(rows)).dtype), rows)
        turn, back = (to_device_of(one.astype(dtype_of(rows)), rows) for one in (Q, herm(Q)))
        return matmul(matmul(rows, turn) / S, back)


LEAST = 1e-3
"""The smallest share of the curvature of rows that their features have."""


def coupled(features: FeatureMap, blocks: Shared, cold: Array | None = None) -> Coupled:
    """The blocks of the rows of [Ũ; A] from those of the rows of U.

    Rows that are `cold` have no curvature of their own: terms keep them in place while their features move. A feature
    that no observed row has counts as an average row.
    """
    own = blocks
    if cold is not None:
        own = Shared(tuple((_without(a, cold), B) for a, B in blocks.pairs), blocks.ridge)
    nothing = isinstance(blocks.ridge, float) and blocks.ridge == 0
    pairs = tuple((_lines(features, a), B) for a, B in blocks.pairs)
    return Coupled(pairs, 0.0 if nothing else features.sums(blocks.ridge), features, own)


def _lines(features: FeatureMap, a: Weight) -> Array:
    """(a, cΣᵢ fᵢ²aᵢ)."""
    total = features.sums(a)
    own, shared = np.split(to_numpy(total), [features.rows])
    shared = np.where(shared > 0, shared * features.joint, to_numpy(total).mean())
    return to_device_of(np.concatenate([own, shared]).astype(own.dtype), total)


def _without(a: Weight, cold: Array) -> Weight:
    if isinstance(a, float):
        return np.where(cold, 0.0, a)
    return to_device_of(np.where(cold, 0.0, to_numpy(a)), a)


def _total(parts: list[Array]) -> Array:
    return sum(parts[1:], parts[0])


def _ridge(terms: Shared) -> Array:
    """The mean of the terms over columns: one number for each row, or one for all rows."""
    total = np.asarray(to_numpy(terms.ridge), np.float64)
    for a, B in terms.pairs:
        total = total + to_numpy(a) * (float(np.trace(B).real) / len(B))
    return total


# Side information: measurements of a matrix whose rows and columns have features.

LARGE = 4_000_000
"""The number of entries of X above which power iteration, which forms X, takes too much memory."""

PROBES = 256
"""The number of random matrices that estimate the typical curvature."""


class Featured(Operator):
    """A′(X′) = A([I F]·X′·[I G]ᵀ), for rows with features F and columns with features G.

    The factors are [Ũ; A] and [Ṽ; B]: they have one row for each row of X, followed by one for each feature. The
    operator measures UVᴴ with U = Ũ + FA and V = Ṽ + GB, which `effective` returns. With a ridge, uᵢ is near fᵢA if row
    i has few observations, and equal to fᵢA if it has none: rows and columns that were never observed are predicted
    from features. Offsets and other columns that a `Problem` fixes are those of U and V; `all_cells` are those of UVᴴ.

    It uses the fast passes of the operator, plus products with F and G, which cost as much as these have entries.

    Parameters
    ----------
    operator : Operator
        The operator A, for m×n matrices.
    left : matrix, m×k, optional
        The features F of rows, sparse or dense, real. Scale features of very different sizes: a ridge penalises all
        their coefficients equally.
    right : matrix, n×l, optional
        The features G of columns.
    """

    def __init__(self, operator: Operator, left: Any = None, right: Any = None):
        if not isinstance(operator, Operator):
            raise InputError(f"operator is {operator!r}, not an Operator. See bifactor.operators.")
        self.operator, self.sides = operator, FeatureMaps.of(operator.shape, left, right)
        self.shape = self.sides.shape(operator.shape)
        self.size, self.complex_matrix = operator.size, operator.complex_matrix

    @classmethod
    def by(cls, operator: Operator, sides: FeatureMaps) -> "Featured":
        """An operator with features that have already been checked."""
        found = cls(operator)
        found.sides, found.shape = sides, sides.shape(operator.shape)
        return found

    def __repr__(self) -> str:
        rows, cols = (after - before for after, before in zip(self.shape, self.operator.shape, strict=True))
        return f"Featured({self.operator!r}, {rows} features of rows, {cols} of columns)"

    def effective(self, U: Array, V: Array) -> tuple[Array, Array]:
        """(Ũ + FA, Ṽ + GB), the factors of the measured matrix."""
        require_pair(U, V, self.shape)
        return self.sides.times(U, V)

    def forward(self, U: Array, V: Array) -> Array:
        return self.operator.forward(*self.effective(U, V))

    def adjoint(self, w: Array) -> LinearMap:
        return self.sides.through(self.operator.adjoint(w))

    def norm_squared(self, weights: Array | None = None) -> float:
        known = self.operator.norm_squared(weights)
        if self.sides.none:
            return known
        if self.shape[0] * self.shape[1] <= LARGE:
            return power_norm_squared(self, weights)
        return known * self.sides.norm_squared

    def mean_square(self, weights: Array | None = None) -> float:
        if self.sides.none:
            return self.operator.mean_square(weights)
        return probed_mean_square(self, weights, PROBES)

    def bind(self, fit: DataFit) -> DataBound:
        return FeaturedBound(self.operator.bind(fit), self.sides)


class FeaturedBound(WrappedBound):
    """f(LX′Rᵀ) of a given f, with its fast passes: as X′ moves along a curve, so do the factors of LX′Rᵀ."""

    def __init__(self, bound: DataBound, sides: FeatureMaps):
        super().__init__(bound)
        self.sides, self.operator = sides, Featured.by(bound.operator, sides)
        self.shape = sides.shape(bound.shape)
        self._last: tuple[Factors, Factors] | None = None

    def with_bound(self, bound: Any) -> DataBound:
        return FeaturedBound(bound, self.sides)

    def image(self, x: Factors) -> Factors:
        if self.sides.none:
            return x
        require_pair(x.left, x.right, self.shape)
        return Free().pair(*self.sides.times(x.left, x.right))

    def at(self, x: Factors) -> Factors:
        """Factors of LX′Rᵀ; those of the last x are kept, because an iteration needs them several times."""
        last = self._last
        if last is None or last[0] is not x:
            self._last = last = x, self.image(x)
        return last[1]

    def pull(self, GV: Array, GhU: Array) -> tuple[Array, Array]:
        return self.sides.back(GV, GhU)

    def through(self, G: LinearMap) -> LinearMap:
        return self.sides.through(G)

    @cached_property
    def smoothness(self) -> float:
        return self.bound.smoothness * self.sides.norm_squared

    @cached_property
    def scale(self) -> float:
        # As if the measurements had no preferred rows and columns.
        shares = [self.shape[k] / self.bound.shape[k] for k in (0, 1)]
        squares = [1.0 if F is None else 1.0 + float(F.sums(1.0)[F.rows :].sum()) / F.rows for F in self.sides]
        return self.bound.scale * float(np.prod(squares)) / float(np.prod(shares))

    @cached_property
    def marginals(self) -> tuple[Array, Array] | None:
        if self.bound.marginals is None or self.sides.none:
            return self.bound.marginals
        # The curvature of an entry of X′ is its row's times its column's, as in X.
        total = float(self.bound.marginals[0].sum())
        rows, cols = (w if F is None else F.sums(w) for w, F in zip(self.bound.marginals, self.sides, strict=True))
        return rows * (float(cols.sum()) / total), cols * (float(rows.sum()) / total)

    def curvatures(self, x: Factors) -> Array:
        # Those of LX′Rᵀ: along uₖ, features add up that have one sign and the same rows.
        return self.bound.curvatures(x.kind.pair(*self.sides.times(x.left, x.right)))

    def expected(self, x: Factors, side: int, alone: bool = True) -> Shared:
        features, blocks = self.sides[side], self.bound.expected(self.at(x), side, alone)
        if features is None:
            return blocks
        cold = None if self.bound.marginals is None else self.bound.marginals[side] == 0
        return coupled(features, blocks, cold if cold is not None and cold.any() else None)

    def exact(self, x: Factors, side: int, rows: tuple[int, int] | None = None) -> Exact | None:
        # Rows that share features are not separate problems.
        return None if self.sides[side] is not None else self.bound.exact(self.at(x), side, rows)

    def footprint(self, width: int) -> Footprint:
        z, work = self.bound.footprint(width)
        item = np.dtype(self.dtype).itemsize
        return Footprint(z, work + 3 * sum(self.shape) * width * item)  # factors, a direction and a gradient

    @property
    def fingerprint(self) -> str:
        names = ("1" if side is None else side.fingerprint for side in self.sides)
        return f"features {' '.join(names)} · {self.bound.fingerprint}"
