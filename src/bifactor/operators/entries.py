"""Observed entries: matrix completion. Bound to data, z is kept, or computed again in each pass."""

from typing import Any

import numpy as np
from scipy import sparse

from bifactor import kernels
from bifactor._compat import cached_property
from bifactor.arrays import (
    Array,
    conj,
    digest,
    dtype_of,
    floating,
    is_complex,
    is_foreign,
    on_host,
    to_numpy,
    widest,
    zeros,
)
from bifactor.arrays.sparse import coordinates
from bifactor.blocks import Exact
from bifactor.errors import InputError
from bifactor.factors import Factors
from bifactor.kernels import row_blocks_reference
from bifactor.kernels.entry_layout import EntryLayout, arrange
from bifactor.kernels.threading import thread_count
from bifactor.linear_map import LinearMap, Sampled, entry_kernels
from bifactor.losses import DataFit
from bifactor.operators.base import Operator, matrix_shape
from bifactor.operators.bound import Apply, DataBound, Footprint, Measured, Symbolic, TrialPoint
from bifactor.operators.curves import Curve, Evaluated
from bifactor.validation import indices, require_measurements, require_pair, require_rows

Sides = tuple[Array, Array]
"""The factors of the longer and of the shorter side, as the kernels take them."""


class EntriesBound(Measured):
    """f(X) = Σ wₜ ℓ(X[iₜ, jₜ]; yₜ), with f and its gradient in one pass if z is not given, and with quick curves."""

    operator: "Entries"
    quick = True

    def __init__(self, operator: "Entries", fit: DataFit):
        super().__init__(operator, fit)
        self.layout, self.flipped = operator.layout, operator.flipped

    @cached_property
    def marginals(self) -> tuple[Array, Array]:
        curvature, weights = self.fit.typical
        rows, cols = self.operator.sums(weights)
        return curvature * rows, curvature * cols

    @property
    def seen(self) -> int:
        return self.fit.seen

    def motion(self, x: Factors, d: Factors) -> tuple[Array, Array]:
        return self.operator.motion(x, d)

    def evaluate(self, x: Factors, z: Array | None = None) -> Evaluated:
        require_pair(x.left, x.right, self.shape)
        if z is not None or not self.fit.loop_size:
            return super().evaluate(x, z)
        kernel = entry_kernels(self.fit.loop_size, x.width, x.left, x.right)
        f, *products = kernel.fused(self.layout, self.fit.loss, *self.fit.arrays(), *self.sides(x.left, x.right))
        return Evaluated(f, *self.sides(*products), None)

    def exact(self, x: Factors, side: int, rows: tuple[int, int] | None = None) -> Exact:
        require_pair(x.left, x.right, self.shape)
        left, right = to_numpy(x.left), to_numpy(x.right)
        other, span = (left if side else right), rows or (0, self.shape[side])
        inner = bool(side) != self.flipped
        if self.fit.loop_size:
            kernel = kernels.get("row_blocks", widest(left, right), self.fit.loop_size, x.width**2)
            y, w = (to_numpy(a) for a in self.fit.arrays())
            sides = self.sides(left, right)
            packed = kernel.curvature_sums(self.layout, self.fit.loss, y, w, *sides, other, inner, span)
        else:
            q = to_numpy(self.fit.curvature(self.measure(x)))
            packed = row_blocks_reference.sums(self.layout, q, other, inner, span)
        return Exact(packed, x.width)

    @cached_property
    def fingerprint(self) -> str:
        where = digest(self.layout.outer, self.layout.inner)
        return f"Entries {self.shape} {where} {self.fit.fingerprint}"

    def recomputed(self) -> "SymbolicEntries":
        return SymbolicEntries(self)

    def sides(self, left: Array, right: Array) -> Sides:
        return self.operator.sides(left, right)


class SymbolicEntries(Symbolic):
    """The same f by passes that compute each z when it is needed: no array as long as the data is ever held."""

    bound: EntriesBound

    def value(self, x: Factors) -> float:
        return self.evaluate(x).f

    def evaluate(self, x: Factors, z: Array | None = None) -> Evaluated:
        f, *products = self.run("fused", x)
        return Evaluated(f, *self.bound.sides(*products), None)

    def gradient(self, x: Factors, z: Array | None = None) -> LinearMap:
        return Slopes(self, x)

    def hessian(self, x: Factors, z: Array | None = None) -> Apply:
        return lambda d: self.bound.sides(*self.run("bent", x, d))

    def curve(self, x: Factors, d: Factors, z: Array | None = None, ahead: TrialPoint | None = None) -> Curve:
        return EntriesCurve(self, x, d)

    def footprint(self, width: int) -> Footprint:
        return self.bound.footprint(width)._replace(z=0)

    def run(self, name: str, *pairs: Factors, a: tuple[float, ...] = ()) -> Any:
        """A pass over the entries."""
        sides = [side for pair in pairs for side in self.bound.sides(pair.left, pair.right)]
        for pair in pairs:  # compiled loops do not check bounds
            require_pair(pair.left, pair.right, self.shape)
        if len({pair.width for pair in pairs}) > 1:
            raise InputError("The factors and the direction have different numbers of columns. Pass equal numbers.")
        return self.run_pass(name, *sides, *a)

    def run_pass(self, name: str, *arguments: Any) -> Any:
        """The pass on arrays that have been checked."""
        factors = [a for a in arguments if not isinstance(a, float)]
        kernel = entry_kernels(self.fit.loop_size, max(a.shape[1] for a in factors), *factors)
        fit = self.fit
        if self.bound.flipped and is_complex(fit.values):
            fit = fit.with_values(conj(fit.values))  # for the transposed X, z is conjugated
        loss = () if name == "quartic" else (fit.loss,)
        return getattr(kernel, name)(self.bound.layout, *loss, *fit.arrays(), *arguments)


class EntriesCurve(Curve):
    """φ(a) by a pass over the entries for each a."""

    def __init__(self, bound: SymbolicEntries, x: Factors, d: Factors):
        self.bound, self.x, self.d = bound, x, d

    @cached_property
    def quartic(self) -> Array | None:
        return to_numpy(self.bound.run("quartic", self.x, self.d)) if self.bound.quadratic else None

    def at(self, a: float) -> tuple[float, float, float]:
        return self.bound.run("along", self.x, self.d, a=(a,))

    def to(self, a: float, x: Factors) -> Evaluated:
        return self.bound.evaluate(x)


class Slopes(LinearMap):
    """∇f(X), whose entries are computed in each product."""

    def __init__(self, bound: SymbolicEntries, x: Factors):
        require_pair(x.left, x.right, bound.shape)
        self.bound, self.x = bound, x
        self.shape, self.dtype, self.like = bound.shape, np.result_type(x.dtype, bound.fit.dtype), bound.like

    def matmul(self, V: Array) -> Array:
        require_rows(V, self.shape[1])
        return self._products(zeros((self.shape[0], 0), dtype_of(V), V), V)[0]

    def rmatmul(self, U: Array) -> Array:
        require_rows(U, self.shape[0])
        return self._products(U, zeros((self.shape[1], 0), dtype_of(U), U))[1]

    def products(self, U: Array, V: Array) -> tuple[Array, Array]:
        require_rows(U, self.shape[0])
        require_rows(V, self.shape[1])
        return self._products(U, V)

    def _products(self, U: Array, V: Array) -> tuple[Array, Array]:
        sides = self.bound.bound.sides
        factors = *sides(self.x.left, self.x.right), *sides(U, V)
        return sides(*self.bound.run_pass("slopes", *factors))


class Entries(Operator):
    """A(X)ₜ = X[rows[t], cols[t]]. ‖A‖² is the largest number of times one entry is observed.

    Indices may be of any integer type and in any order. Coordinates that occur twice are two measurements of the same
    entry, each with its own y and weight. `Entries.from_sparse` and `Entries.from_dense` read matrices.

    Parameters
    ----------
    rows, cols : integer arrays of length p
        Coordinates of the observed entries, counted from 0.
    shape : (m, n)
        The shape of X. Rows and columns without an observation are allowed.
    """

    def __init__(self, rows: Array, cols: Array, shape: tuple[int, int]):
        self.shape = matrix_shape(shape)
        i, j = places(rows, cols, self.shape)
        if i.size == 0:
            raise InputError("Entries got no coordinates. Pass at least one observed entry.")
        self.size = int(i.size)
        # The kernels loop over the longer side and keep a copy of the shorter one per thread.
        self._flipped = self.shape[0] < self.shape[1]
        outer, inner = (j, i) if self._flipped else (i, j)
        self._layout, self._order = arrange(outer, inner, max(self.shape), min(self.shape))

    @classmethod
    def arranged(cls, shape: tuple[int, int], layout: EntryLayout, flipped: bool) -> "Entries":
        """The operator of the coordinates in a layout, in its order; if `flipped`, they are of the transposed X."""
        operator = cls.__new__(cls)
        operator.shape, operator.size, operator._layout = shape, layout.size, layout
        operator._flipped, operator._order = flipped, None
        return operator

    @classmethod
    def from_sparse(cls, matrix: Any) -> tuple["Entries", Array]:
        """The stored entries of a SciPy sparse matrix or array: `Problem(loss, *Entries.from_sparse(S))`.

        A stored zero is an observed zero. Repeated coordinates are summed, as SciPy does everywhere.
        """
        if not sparse.issparse(matrix) or matrix.ndim != 2:
            raise InputError(
                f"from_sparse got {type(matrix).__name__}, not a SciPy sparse matrix. Use from_dense for arrays."
            )
        coo = coordinates(matrix, "The matrix")
        coo.sum_duplicates()
        return cls(coo.row, coo.col, coo.shape), floating(coo.data, "the sparse matrix")

    @classmethod
    def from_dense(cls, X: Array, mask: Array | None = None) -> tuple["Entries", Array]:
        """The observed entries of an array: `Problem(loss, *Entries.from_dense(X))`.

        An entry is observed if it is not NaN and, if a boolean `mask` is given, True there. NumPy masked arrays are
        supported.
        """
        X = to_numpy(X) if is_foreign(X) else X
        observed = ~np.ma.getmaskarray(X) if np.ma.isMaskedArray(X) else True
        X = floating(np.ma.getdata(X) if np.ma.isMaskedArray(X) else X, "X")
        if X.ndim != 2:
            raise InputError(f"X has {X.ndim} dimensions, but a matrix has 2. Reshape it first.")
        observed = observed & ~np.isnan(X)
        if mask is not None:
            mask = np.asarray(mask)
            if mask.shape != X.shape or mask.dtype != np.bool_:
                raise InputError(
                    f"mask is {mask.dtype} of shape {mask.shape}, but X has shape {X.shape}. "
                    "Pass booleans of the same shape, True where X is observed."
                )
            observed &= mask
        rows, cols = np.nonzero(observed)
        return cls(rows, cols, X.shape), X[rows, cols]

    @property
    def rows(self) -> Array:
        return self._restore(self._layout.inner if self._flipped else self._layout.outer)

    @property
    def cols(self) -> Array:
        return self._restore(self._layout.outer if self._flipped else self._layout.inner)

    def forward(self, U: Array, V: Array) -> Array:
        require_pair(U, V, self.shape)
        kernel = entry_kernels(self.size, U.shape[1], U, V)
        if self._flipped:
            return self._restore(conj(kernel.dot(self._layout, V, U)))
        return self._restore(kernel.dot(self._layout, U, V))

    def motion(self, x: Factors, d: Factors) -> tuple[Array, Array]:
        """A(DVᴴ + UEᴴ) and A(DEᴴ) for x = (U, V) and d = (D, E), in one pass: the change of measurements along d."""
        for left, right in ((x.left, x.right), (d.left, x.right), (x.left, d.right)):
            require_pair(left, right, self.shape)
        factors = [side for pair in (x, d) for side in self.sides(pair.left, pair.right)]
        z1, z2 = entry_kernels(self.size, x.width, *factors).curve(self._layout, *factors)
        z1, z2 = (conj(z1), conj(z2)) if self._flipped else (z1, z2)
        return self._restore(z1), self._restore(z2)

    def adjoint(self, w: Array) -> LinearMap:
        require_measurements(w, self.size)
        w = w if self._order is None else on_host(np.take, w, self._order)
        return Sampled(self._layout, conj(w)).H if self._flipped else Sampled(self._layout, w)

    def norm_squared(self, weights: Array | None = None) -> float:
        outer, inner = self._layout.outer, self._layout.inner
        first = np.flatnonzero(np.r_[True, (outer[1:] != outer[:-1]) | (inner[1:] != inner[:-1])])
        if weights is None:
            return float(np.diff(np.r_[first, self.size]).max())
        weights = weights if self._order is None else weights[self._order]
        return float(np.add.reduceat(weights, first).max())

    def mean_square(self, weights: Array | None = None) -> float:
        total = self.size if weights is None else float(np.sum(weights, dtype=np.float64))
        return total / (self.shape[0] * self.shape[1])

    def sums(self, weights: Array | None = None) -> tuple[Array, Array]:
        """The sums of the weights, or the numbers of measurements, in each row and each column."""
        weights = weights if weights is None or self._order is None else weights[self._order]
        rows, cols = self.sides(*self._layout.sums(weights))
        return rows, cols

    def work(self, width: int, dtype: Any) -> int:
        item, (short, long) = np.dtype(dtype).itemsize, sorted(self.shape)
        sums = 6 * 8 * (short + long)  # over rows and columns
        if np.dtype(dtype).kind == "c":  # kernels are not compiled for these
            return sums + 3 * self.size * (item + 8)  # sparse matrices
        # As many copies of the short side as `EntryLayout.spans` allows, and their sum.
        copies = max(1, min(thread_count(), min(self.size, 4 * (short + long)) // short))
        return sums + (copies + 1) * short * width * item

    def bind(self, fit: DataFit) -> DataBound:
        arranged = Entries.arranged(self.shape, self._layout, self._flipped)
        return EntriesBound(arranged, self.sized(fit).take(self._order))

    @property
    def layout(self) -> EntryLayout:
        """The coordinates as kernels take them, in the order of a bound; of the transposed X if `flipped`."""
        return self._layout

    @property
    def flipped(self) -> bool:
        return self._flipped

    def sides(self, left: Any, right: Any) -> tuple[Any, Any]:
        """A pair for rows and columns as a pair (outer, inner), as kernels take it; or back, which is the same swap."""
        return (right, left) if self._flipped else (left, right)

    def _restore(self, measurements: Array) -> Array:
        """Measurements from the order of the layout in the order of the user."""
        if self._order is None:
            return measurements
        return on_host(_placed, measurements, self._order)


def places(rows: Array, cols: Array, shape: tuple[int, int]) -> tuple[Array, Array]:
    """Coordinates in a matrix of this shape, checked."""
    i, j = indices(rows, "rows", shape[0]), indices(cols, "cols", shape[1])
    if i.size != j.size:
        raise InputError(f"rows has {i.size} indices and cols has {j.size}. Pass one pair per measurement.")
    return i, j


def _placed(measurements: Array, order: Array) -> Array:
    restored = np.empty_like(measurements)
    restored[order] = measurements
    return restored
