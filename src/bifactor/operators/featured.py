"""Side information: measurements of a matrix whose rows and columns have features."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from bifactor._compat import cached_property
from bifactor.arrays import Array
from bifactor.blocks import Exact, Shared
from bifactor.errors import InputError
from bifactor.factors import Factors, Free
from bifactor.linear_map import LinearMap
from bifactor.losses import DataFit
from bifactor.operators.base import Operator, power_norm_squared, probed_mean_square
from bifactor.operators.bound import Ahead, Apply, Bound, Curve, DataBound, Evaluated, Measurements
from bifactor.operators.coupled import coupled
from bifactor.operators.features import Sides, features_of
from bifactor.operators.followed import Followed
from bifactor.operators.footprint import Footprint
from bifactor.validation import require_pair

if TYPE_CHECKING:
    from bifactor.operators.cells import Cells

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
        m, n = operator.shape
        self.operator, self.sides = operator, Sides(features_of(left, m, "left"), features_of(right, n, "right"))
        self.shape = self.sides.shape(operator.shape)
        self.size, self.complex_matrix = operator.size, operator.complex_matrix

    @classmethod
    def by(cls, operator: Operator, sides: Sides) -> "Featured":
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

    def work(self, width: int, dtype: Any) -> int:
        return self.operator.work(width, dtype) + sum(self.shape) * width * np.dtype(dtype).itemsize

    def bind(self, fit: DataFit) -> DataBound:
        return FeaturedData(self.operator.bind(fit), self.sides)


class FeaturedBound(Bound):
    """f(LX′Rᵀ) of a given f, with its fast passes: as X′ moves along a curve, so do the factors of LX′Rᵀ."""

    def __init__(self, bound: Bound, sides: Sides):
        self.bound, self.sides = bound, sides
        self.shape = sides.shape(bound.shape)
        self.dtype, self.like, self.whole = bound.dtype, bound.like, bound.whole
        self.explicit, self.quick, self.quadratic = bound.explicit, bound.quick, bound.quadratic
        self.expensive = bound.expensive
        self._last: tuple[Factors, Factors] | None = None

    @classmethod
    def around(cls, bound: Bound, sides: Sides) -> "FeaturedBound":
        return FeaturedData(bound, sides) if isinstance(bound, DataBound) else FeaturedBound(bound, sides)

    def with_bound(self, bound: Any) -> Self:
        """The same features of another function."""
        return type(self)(bound, self.sides)

    @property
    def measured_shape(self) -> tuple[int, int]:
        return self.bound.measured_shape

    def inside(self, change: Callable[..., Any]) -> Any:
        return FeaturedBound.around(self.bound.inside(change), self.sides)

    @cached_property
    def smoothness(self) -> float:
        return self.bound.smoothness * self.sides.norm_squared

    @cached_property
    def scale(self) -> float:
        # As if the measurements had no preferred rows and columns.
        shares = [self.shape[k] / self.bound.shape[k] for k in (0, 1)]
        squares = [1.0 if F is None else 1.0 + float(F.sums(1.0)[F.rows :].sum()) / F.rows for F in self.sides]
        return self.bound.scale * float(np.prod(squares)) / float(np.prod(shares))

    @property
    def least(self) -> float | None:
        return self.bound.least

    @cached_property
    def marginals(self) -> tuple[Array, Array] | None:
        if self.bound.marginals is None or self.sides.none:
            return self.bound.marginals
        # The curvature of an entry of X′ is its row's times its column's, as in X.
        total = float(self.bound.marginals[0].sum())
        rows, cols = (w if F is None else F.sums(w) for w, F in zip(self.bound.marginals, self.sides, strict=True))
        return rows * (float(cols.sum()) / total), cols * (float(rows.sum()) / total)

    @property
    def seen(self) -> int | None:
        return self.bound.seen

    @property
    def data(self) -> Bound:
        return self if self.bound.data is self.bound else FeaturedBound.around(self.bound.data, self.sides)

    def measure(self, x: Factors) -> Measurements:
        return self.bound.measure(self.at(x))

    def value(self, x: Factors) -> float:
        return self.bound.value(self.at(x))

    def evaluate(self, x: Factors, z: Measurements = None) -> Evaluated:
        return self.pulled(self.bound.evaluate(self.at(x), z))

    def gradient(self, x: Factors, z: Measurements = None) -> LinearMap:
        return self.sides.through(self.bound.gradient(self.at(x), z))

    def hessian(self, x: Factors, z: Measurements = None) -> Apply:
        inner = self.bound.hessian(self.at(x), z)
        return lambda d: self.sides.back(*inner(self.effective(d)))

    def curve(self, x: Factors, d: Factors, z: Measurements = None, ahead: Ahead | None = None) -> Curve:
        curve = self.bound.curve(self.at(x), self.effective(d), z, ahead)
        return Followed(curve, lambda a, x: self.pulled(curve.to(a, self.at(x))))

    def curvatures(self, x: Factors) -> Array:
        # Those of LX′Rᵀ: along uₖ, features add up that have one sign and the same rows.
        return self.bound.curvatures(x.kind.pair(*self.sides.times(x.left, x.right)))

    def expected(self, x: Factors, side: int, alone: bool = True) -> Shared:
        features, blocks = self.sides[side], self.bound.expected(self.at(x), side, alone)
        if features is None:
            return blocks
        cold = None if self.bound.marginals is None else self.bound.marginals[side] == 0
        return coupled(features, blocks, cold if cold is not None and cold.any() else None)

    def exact(self, x: Factors, side: int, score: bool = False, rows: tuple[int, int] | None = None) -> Exact | None:
        # Rows that share features are not separate problems.
        return None if self.sides[side] is not None else self.bound.exact(self.at(x), side, score, rows)

    @property
    def fitted(self) -> tuple[float, ...]:
        return self.bound.fitted

    @property
    def scales(self) -> bool:
        return self.bound.scales

    def refit(self, x: Factors, z: Measurements = None) -> Any:
        return self.with_bound(self.bound.refit(self.at(x), z))

    def with_fitted(self, fitted: tuple[float, ...]) -> Any:
        return self.with_bound(self.bound.with_fitted(fitted))

    def footprint(self, width: int) -> Footprint:
        z, work = self.bound.footprint(width)
        item = np.dtype(self.dtype).itemsize
        return Footprint(z, work + 3 * sum(self.shape) * width * item)  # factors, a direction and a gradient

    def check_factors(self, x: Factors) -> None:
        self.bound.check_factors(self.at(x))

    @property
    def fingerprint(self) -> str:
        names = ("1" if side is None else side.fingerprint for side in self.sides)
        return f"features {' '.join(names)} · {self.bound.fingerprint}"

    def slopes(self, z: Array) -> tuple[float, Array]:
        return self.bound.slopes(z)

    def bend(self, z: Array) -> Callable[[Array], Array]:
        return self.bound.bend(z)

    def pull_back(self, slopes: Array) -> LinearMap:
        return self.sides.through(self.bound.pull_back(slopes))

    def line(self, z: Array, dz: Array) -> Curve:
        return self.bound.line(z, dz)

    def at(self, x: Factors) -> Factors:
        """Factors of LX′Rᵀ; those of the last x are kept, because an iteration needs them several times."""
        last = self._last
        if last is None or last[0] is not x:
            self._last = last = x, self.effective(x)
        return last[1]

    def effective(self, x: Factors) -> Factors:
        if self.sides.none:
            return x
        require_pair(x.left, x.right, self.shape)
        return Free().pair(*self.sides.times(x.left, x.right))

    def pulled(self, at: Evaluated) -> Evaluated:
        """The gradient Lᵀ∇f R of f(LX′Rᵀ) in X′, from the products of ∇f with LU′ and RV′."""
        return Evaluated(at.f, *self.sides.back(at.GV, at.GhU), at.z)


class FeaturedData(FeaturedBound, DataBound):
    """An operator bound to data, with features."""

    bound: DataBound

    def __init__(self, bound: DataBound, sides: Sides):
        super().__init__(bound, sides)
        self.operator = Featured.by(bound.operator, sides)

    @property
    def fit(self) -> DataFit:  # type: ignore[override]
        return self.bound.fit

    @property
    def cells(self) -> "tuple[Cells, ...]":  # type: ignore[override]
        return self.bound.cells

    def refitted(self, fit: DataFit) -> DataBound:
        return self.with_bound(self.bound.refitted(fit))

    def recomputed(self) -> DataBound:
        return self.with_bound(self.bound.recomputed())
