"""Observed entries: matrix completion."""

from typing import Any

import numpy as np
from scipy import sparse

from bifactor import kernels
from bifactor.arrays import Array, common_dtype, conj, floating, host, is_foreign, on_host
from bifactor.arrays.sparse import coordinates
from bifactor.errors import InputError
from bifactor.factors import Factors
from bifactor.kernels.layout import Layout, arrange
from bifactor.kernels.threads import thread_count
from bifactor.linear_map import LinearMap, Sampled
from bifactor.losses import DataFit
from bifactor.operators.base import Operator, matrix_shape
from bifactor.operators.bound import DataBound
from bifactor.operators.entries_bound import EntriesBound
from bifactor.validation import indices, require_measurements, require_pair


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
    def arranged(cls, shape: tuple[int, int], layout: Layout, flipped: bool) -> "Entries":
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
        X = host(X) if is_foreign(X) else X
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
        kernel = kernels.find("entries", common_dtype(U, V), self.size, U.shape[1])
        if self._flipped:
            return self._restore(conj(on_host(kernel.dot, self._layout, V, U)))
        return self._restore(on_host(kernel.dot, self._layout, U, V))

    def motion(self, x: Factors, d: Factors) -> tuple[Array, Array]:
        """A(DVᴴ + UEᴴ) and A(DEᴴ) for x = (U, V) and d = (D, E), in one pass: the change of measurements along d."""
        for left, right in ((x.left, x.right), (d.left, x.right), (x.left, d.right)):
            require_pair(left, right, self.shape)
        factors = [side for pair in (x, d) for side in self.sides(pair.left, pair.right)]
        kernel = kernels.find("entries", common_dtype(*factors), self.size, x.width)
        z1, z2 = on_host(kernel.curve, self._layout, *factors)
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
        if not kernels.has_compiled(dtype):
            return sums + 3 * self.size * (item + 8)  # sparse matrices
        # As many copies of the short side as `Layout.spans` allows, and their sum.
        copies = max(1, min(thread_count(), min(self.size, 4 * (short + long)) // short))
        return sums + (copies + 1) * short * width * item

    def bind(self, fit: DataFit) -> DataBound:
        arranged = Entries.arranged(self.shape, self._layout, self._flipped)
        return EntriesBound(arranged, self.sized(fit).take(self._order))

    @property
    def layout(self) -> Layout:
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
