"""Every cell of a table, zeros included, without a dense copy of it."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from bifactor import kernels
from bifactor._compat import cached_property
from bifactor.arrays import HOST_ARRAY, Array, digest, floating, is_complex, is_foreign, to_numpy
from bifactor.arrays.sparse import require_sound
from bifactor.blocks import Exact
from bifactor.describe import describe
from bifactor.errors import InputError
from bifactor.factors import Factors, Free
from bifactor.kernels.row_blocks_reference import triangle
from bifactor.kernels.sparse_table import SparseTable, full_sparse_table, sparse_table
from bifactor.kernels.threading import blas_at_most, run, shares
from bifactor.linear_map import LinearMap
from bifactor.losses import Loss
from bifactor.losses.data_fit import check_range, smoothness_of
from bifactor.losses.named import loss_of
from bifactor.operators.bound import Apply, Bound, FittedParameters, Footprint, TrialPoint
from bifactor.operators.curves import Curve, Evaluated, EvaluatedCurve, Measurements
from bifactor.validation import require_pair, require_rows, weight_vector

FARTHEST = 30.0
"""The largest effect: beyond it, all labels are equal, and counts are huge or zero."""

GRID, BINS = np.linspace(-FARTHEST, FARTHEST, 481), 256
"""Effects at which the function is tabulated, and the number of bins of offsets."""

STORED = 1_000_000
"""The approximate number of stored cells that are processed together."""


def rough_effects(loss: Loss, sheet: SparseTable, side: int, offset: Array, ridge: float) -> Array:
    """Effects of columns (side 1) or rows with a ridge; `offset` has the effects of the lines of the other side."""
    weight = np.asarray(sheet.row_weights, np.float64)
    each, whole = (weight, np.ones(sheet.shape[1])) if side else (np.ones(offset.size), weight)
    stored, missing = _stored(loss, sheet, side, offset)
    whole = whole + missing / each.sum()  # the share of the function for each line
    wanted = -stored / np.maximum(whole, 1e-30)
    own = ridge / max(float(np.mean(whole)), 1e-30)  # of that function
    return np.interp(wanted, _slopes(loss, sheet.rest, offset, each) + own * GRID, GRID)


def _stored(loss: Loss, sheet: SparseTable, side: int, offset: Array) -> tuple[Array, Array]:
    """The change of the slope of each line by stored cells, and of its weight by missing cells; some rows at a time."""
    (m, n), slopes, missing = sheet.shape, np.zeros(sheet.shape[side]), np.zeros(sheet.shape[side])
    cuts = np.searchsorted(sheet.indptr, np.arange(0, sheet.y.size, STORED)).tolist()
    for start, stop in pairwise([0, *(cut for cut in cuts if 0 < cut < m), m]):
        part = sheet.part(start, stop)
        rows, own = part.stored_rows, part.weights
        line, count, first = (part.cols, n, 0) if side else (rows, stop - start, start)
        z = (offset[start:stop][rows] if side else offset[part.cols]).astype(part.dtype)
        change = own * (loss.gradient(z, part.y) - loss.gradient(z, np.full_like(z, part.rest)))
        slopes[first : first + count] += np.bincount(line, change, count)
        if part.own.size:
            missing[first : first + count] += np.bincount(line, own - part.row_weights[rows], count)
    return slopes, missing


def _slopes(loss: Loss, rest: float, offset: Array, weight: Array) -> Array:
    """Σ w·ℓ′(t + q; rest) at the points t of the grid."""
    low, high = float(offset.min()), float(offset.max())
    place = np.minimum(((offset - low) / max(high - low, 1e-300) * BINS).astype(int), BINS - 1)
    total = np.bincount(place, weight, BINS)
    used = total > 0
    centre = np.bincount(place, weight * offset, BINS)[used] / total[used]
    z = GRID[:, None] + centre
    return loss.gradient(z, np.full(z.shape, rest)) @ total[used]


# Passes over all cells of a table, some rows at a time: a product, a loss, and two products.

CELLS, FEWEST = 1 << 17, 32
"""The number of cells that are formed at a time, and the smallest number of rows: products of few rows are slow."""

Sums = tuple[float, Array, Array]
"""The sum of the losses, and two products."""


class Passes:
    """f(X) = Σ w·ℓ(X + LRᵀ; y) over the cells of a sheet, and its derivatives."""

    def __init__(self, loss: Loss, sheet: SparseTable, known: tuple[Array, Array]):
        self.loss, self.known = loss, known
        self.sheets = {sheet.dtype: sheet}
        self.shape = sheet.shape

    def value(self, x: Factors) -> float:
        return float(np.sum(self.row_values(x)))

    def row_values(self, x: Factors) -> Array:
        """f of each row."""
        found = np.empty(self.shape[0])

        def part(start: int, stop: int) -> None:
            for rows, Z, C in self._blocks(x, start, stop):
                found[rows] = self._derivatives(rows, Z, C)

        self._run(part, x.width)
        return found

    def products(self, x: Factors, A: Array, B: Array) -> Sums:
        """f, ∇f·B and ∇fᵀ·A."""
        left = np.empty((self.shape[0], B.shape[1]), x.dtype)

        def part(start: int, stop: int) -> tuple[float, Array]:
            total, right = 0.0, np.zeros((A.shape[1], self.shape[1]))
            for rows, Z, C in self._blocks(x, start, stop):
                total += float(np.sum(self._derivatives(rows, Z, C)))
                np.matmul(Z, B, out=left[rows])
                right += A[rows].T @ Z
            return total, right

        return self._summed(self._run(part, 3 * x.width), left)

    def along(self, x: Factors, d: Factors) -> tuple[float, float, float]:
        """φ(0), φ′(0) and φ″(0) with φ(a) = f at x + a·d."""
        E = np.ascontiguousarray(d.right.T)

        def part(start: int, stop: int) -> Array:
            total = np.zeros(3)
            for rows, Z, C in self._blocks(x, start, stop, bends=True):
                total[0] += float(np.sum(self._derivatives(rows, Z, C)))
                change = self._change(x, d, rows)
                total[1] += float(np.vdot(Z, change))
                total[2] += 2 * float(np.vdot(Z, d.left[rows] @ E))
                C *= change
                total[2] += float(np.vdot(C, change))
            return total

        value, first, second = np.sum(self._run(part, 4 * x.width), axis=0)
        return float(value), float(first), float(second)

    def bent(self, x: Factors, d: Factors) -> tuple[Array, Array]:
        """H·V and Hᵀ·U, where H is the Hessian in X applied to the change of X along d."""
        left = np.empty(x.left.shape, x.dtype)

        def part(start: int, stop: int) -> tuple[float, Array]:
            right = np.zeros((x.width, self.shape[1]))
            for rows, Z, C in self._blocks(x, start, stop, bends=True):
                self._derivatives(rows, Z, C)
                C *= self._change(x, d, rows)
                np.matmul(C, x.right, out=left[rows])
                right += x.left[rows].T @ C
            return 0.0, right

        return self._summed(self._run(part, 6 * x.width), left)[1:]

    def _change(self, x: Factors, d: Factors, rows: slice) -> Array:
        """The derivative of X along d, in some rows."""
        return np.hstack([d.left[rows], x.left[rows]]) @ np.hstack([x.right, d.right]).T

    def sums(self, x: Factors) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        """The sums of w·ℓ′ over each row and over each column, and those of w·ℓ″."""
        rows_sums = np.empty((2, self.shape[0]))

        def part(start: int, stop: int) -> Array:
            across = np.zeros((2, self.shape[1]))
            for rows, Z, C in self._blocks(x, start, stop, bends=True):
                self._derivatives(rows, Z, C)
                for k, each in enumerate((Z, C)):
                    rows_sums[k, rows] = each.sum(axis=1)
                    across[k] += each.sum(axis=0)
            return across

        slopes, bends = np.sum(self._run(part, x.width), axis=0)
        return (rows_sums[0], slopes), (rows_sums[1], bends)

    def rows(self, x: Factors, first: int) -> tuple[Array, Array, Array]:
        """f of each row of U, its slopes in the columns from `first` on, and the blocks of curvature there."""
        k, h = triangle(x.width - first)
        V = np.ascontiguousarray(x.right[:, first:])
        squares = V[:, k] * V[:, h]
        values, slopes = np.empty(self.shape[0]), np.empty((self.shape[0], V.shape[1]), x.dtype)
        blocks = np.empty((self.shape[0], k.size), x.dtype)

        def part(start: int, stop: int) -> None:
            for rows, Z, C in self._blocks(x, start, stop, bends=True):
                values[rows] = self._derivatives(rows, Z, C)
                np.matmul(Z, V, out=slopes[rows])
                np.matmul(C, squares, out=blocks[rows])

        self._run(part, x.width + k.size)
        return values, slopes, blocks

    def squares(self, x: Factors, side: int, span: tuple[int, int]) -> Array:
        """Σ q·bbᵀ over the cells of each row (side 0) or column, q = w·ℓ″, b rows of the other factor."""
        first, second = triangle(x.width)
        other = (x.right, x.left)[side]
        products = other[:, first] * other[:, second]
        low, high = (0, self.shape[0]) if side else span
        found = np.empty((span[1] - span[0], first.size), x.dtype)

        def part(start: int, stop: int) -> Array | None:
            across = np.zeros((first.size, self.shape[1])) if side else None
            for rows, Z, C in self._blocks(x, low + start, low + stop, bends=True):
                self._derivatives(rows, Z, C)
                if across is None:
                    np.matmul(C, products, out=found[rows.start - low : rows.stop - low])
                else:
                    across += products[rows].T @ C
            return across

        parts = self._run(part, first.size, high - low)
        return sum(parts[1:], parts[0]).T[slice(*span)].astype(x.dtype) if side else found

    def _blocks(self, x: Factors, start: int, stop: int, bends: bool = False) -> Iterator[tuple[slice, Array, Array]]:
        """Some rows at a time, their z, and an array for the curvature; both in memory that is reused."""
        L, R = self.known
        left = x.left if not L.shape[1] else np.hstack([x.left[start:stop], L[start:stop].astype(x.dtype)])
        offset = 0 if not L.shape[1] else start
        right = np.ascontiguousarray(np.hstack([x.right, R]).T.astype(x.dtype))
        n = self.shape[1]
        height = min(max(CELLS // n, FEWEST), max(stop - start, 1))
        Z, C = np.empty((height, n), x.dtype), np.empty((height if bends else 0, n), x.dtype)
        for low in range(start, stop, height):
            rows = slice(low, min(low + height, stop))
            count = rows.stop - rows.start
            z = Z[:count]
            np.matmul(left[low - offset : rows.stop - offset], right, out=z)
            yield rows, z, C[:count]

    def _derivatives(self, rows: slice, Z: Array, C: Array) -> Array:
        sheet = self._sheet(Z.dtype)
        cells = 0.0 if self.loss.pointwise is None else np.prod(self.shape, dtype=float)
        found: Array = kernels.get("losses", Z, cells).derivatives(self.loss, sheet, rows.start, Z, C)
        return found

    def _sheet(self, dtype: Any) -> SparseTable:
        if dtype not in self.sheets:
            one = next(iter(self.sheets.values()))
            parts = {name: getattr(one, name).astype(dtype) for name in ("y", "rows", "own")}
            self.sheets[dtype] = replace(one, **parts)
        return self.sheets[dtype]

    def _run(self, part: Any, width: int, count: int | None = None) -> list[Any]:
        """A pass over rows, on all threads."""
        with blas_at_most(1):
            return run(part, shares(self.shape[0] if count is None else count, self.shape[1] * (1 + width / 8)))

    def _summed(self, parts: list[tuple[float, Array]], left: Array) -> Sums:
        totals, rights = zip(*parts, strict=True)
        right = sum(rights[1:], rights[0])
        return float(sum(totals)), left, np.ascontiguousarray(right.T.astype(left.dtype))


STEPS, LONGEST, ROUGH, SMALL = 60, 1.0, 0.05, 1e-4
"""The largest number of Newton steps for the effects of rows or columns, the longest step, the default tolerance, and
the largest step that may be due to rounding."""

SAMPLE = 4_000_000
"""The number of cells to which parameters of a loss are fitted."""


class FullTable(Bound):
    """f(X) = Σᵢⱼ wᵢ ℓ(xᵢⱼ + oᵢ; yᵢⱼ) over every cell of a table.

    It is meant for tables of counts or labels that are mostly zeros, of 10⁹ cells and more. It takes memory for stored
    cells only; a pass forms the product of the factors, the loss and two more products, some rows at a time.
    Measurements are computed again in each pass, so solvers that work on them directly reject it. Pass it to
    `Objective`.

    Parameters
    ----------
    loss : Loss or str
        One loss for all cells.
    Y : array or sparse matrix, m×n
        The table. NaN in an array marks a missing cell. Cells that a sparse matrix does not store have the value
        `rest`.
    rest : float
        The value of cells that are not stored: 0 for counts, -1 for labels.
    weights : array, m values or m×n, optional
        Weights w ≥ 0, by default ones. Weights for each cell take memory for each cell.
    offset : array, m values, optional
        Offsets o, such as the logarithms of exposures.
    """

    explicit = False

    def __init__(
        self,
        loss: Loss | str,
        Y: Any,
        rest: float = 0.0,
        weights: Array | None = None,
        offset: Array | None = None,
    ):
        self._bind(*_checked(loss_of(loss), Y, rest, weights), _known(offset, Y.shape))

    def _bind(self, loss: Loss, stored: SparseTable, known: tuple[Array, Array]) -> None:
        self.loss, self.sheet, self.known = loss, stored, known
        self.shape, self.dtype, self.like = stored.shape, stored.dtype, HOST_ARRAY
        self.passes = Passes(loss, stored, known)

    def _with(self, **changed: Any) -> "FullTable":
        """The same table with another loss, other cells or other offsets."""
        other = object.__new__(FullTable)
        other._bind(*(changed.get(name, getattr(self, name)) for name in ("loss", "sheet", "known")))
        return other

    def without(self, rows: Array, cols: Array) -> "FullTable":
        """The same table without some cells, none of which may be repeated."""
        return self._with(sheet=self.sheet.without(rows, cols))

    def part(self, start: int, stop: int) -> "FullTable":
        """Some of the rows."""
        return self._with(sheet=self.sheet.part(start, stop), known=(self.known[0][start:stop], self.known[1]))

    def take(self, rows: Array) -> "FullTable":
        """Some of the rows, by index."""
        return self._with(sheet=self.sheet.take(rows), known=(self.known[0][rows], self.known[1]))

    def shifted(self, offset: Array | float) -> "FullTable":
        """The same table with this added to the offsets of rows."""
        return self._with(known=_known(self.offset + offset, self.shape))

    @property
    def offset(self) -> Array:
        """The offsets o, zeros by default."""
        return self.known[0].sum(axis=1)

    @property
    def smoothness(self) -> float:
        return smoothness_of(self.loss) * float(np.max(self.sheet.row_weights))

    @cached_property
    def scale(self) -> float:
        return float(np.sum(self.marginals[0])) / (self.shape[0] * self.shape[1])

    @property
    def least(self) -> float | None:
        return None if self.loss.least is None else self.loss.least * self.weight_sum

    @property
    def weight_sum(self) -> float:
        """Σ wᵢ over all cells."""
        return self.sheet.total

    @cached_property
    def seen(self) -> int:
        return self.sheet.seen

    @property
    def mean_weight(self) -> float:
        return self.weight_sum / max(self.seen, 1)

    @cached_property
    def marginals(self) -> tuple[Array, Array]:
        """Sums of the curvature at the best effects of rows and columns, among which it differs greatly."""
        a = self.best_effects(1, np.zeros(self.shape[1]))
        b = self.best_effects(0, a)
        _, bends = self.passes.sums(_effects(a, b, self.dtype))
        return bends

    def best_effects(self, side: int, cols: Array, ridge: float = 0.0, tol: float = ROUGH) -> Array:
        """The best effects of columns (side 1), or of rows given `cols`, with a ridge; by Newton's method."""
        others = self.offset if side else cols
        effects = rough_effects(self.loss, self.sheet, side, others, ridge) - (0.0 if side else self.offset)
        change = np.inf
        for _ in range(STEPS):
            a, b = (effects, np.zeros(self.shape[0])) if side else (cols, effects)
            slopes, bends = (sums[side] for sums in self.passes.sums(_effects(a, b, self.dtype)))
            step = (slopes + ridge * effects) / np.maximum(bends + ridge, 1e-30)
            moved = np.clip(effects - np.clip(step, -LONGEST, LONGEST), -FARTHEST, FARTHEST)
            change, before, effects = float(np.max(np.abs(moved - effects))), change, moved
            if change <= tol or SMALL > change >= before / 2:  # only rounding is left
                break
        return effects

    def measure(self, x: Factors) -> None:
        return None

    def value(self, x: Factors) -> float:
        self._require(x)
        return self.passes.value(x)

    def evaluate(self, x: Factors, z: Measurements = None) -> Evaluated:
        self._require(x)
        return Evaluated(*self.passes.products(x, x.left, x.right), None)

    def gradient(self, x: Factors, z: Measurements = None) -> LinearMap:
        self._require(x)
        return TableSlopes(self, x)

    def hessian(self, x: Factors, z: Measurements = None) -> Apply:
        self._require(x)
        return lambda d: self.passes.bent(x, d)

    def curve(self, x: Factors, d: Factors, z: Measurements = None, ahead: TrialPoint | None = None) -> Curve:
        self._require(x)
        self._require(d)
        return EvaluatedCurve(self, x, d, self.passes.along)

    def exact(self, x: Factors, side: int, rows: tuple[int, int] | None = None) -> Exact:
        self._require(x)
        return Exact(self.passes.squares(x, side, rows or (0, self.shape[side])), x.width)

    @property
    def parameters(self) -> FittedParameters:
        return FittedParameters.of(self.loss, lambda x, z: self.best_loss(x), self.with_loss)

    def best_loss(self, x: Factors) -> Loss:
        """The loss that fits best to some of the rows, evenly spread over the table."""
        m, n = self.shape
        rows = np.unique(np.linspace(0, m - 1, max(1, min(m, SAMPLE // n))).astype(int))
        z = x.left[rows] @ x.right.T + self.offset[rows, None]
        y, w = self.sheet.take(rows).dense()
        return self.loss.refit(z.ravel(), y.ravel(), w.ravel())

    def with_loss(self, loss: Loss) -> "FullTable":
        """The same table with another loss."""
        return self._with(loss=loss)

    def footprint(self, width: int) -> Footprint:
        _m, n = self.shape
        held = 2 * max(CELLS, FEWEST * n) + 3 * n * width
        return Footprint(0, 2 * held * np.dtype(self.dtype).itemsize)

    def check_factors(self, x: Factors) -> None:
        if is_complex(x.left) or is_complex(x.right):
            raise InputError(f"A Table needs real factors, but these are {x.dtype}. Pass the real parts.")

    @cached_property
    def fingerprint(self) -> str:
        s = self.sheet
        return f"Table {self.shape} {s.rest!r} {describe(self.loss)} " + digest(
            s.indptr, s.cols, s.y, s.rows, s.own, *self.known
        )

    def _require(self, x: Factors) -> None:
        require_pair(x.left, x.right, self.shape)


class TableSlopes(LinearMap):
    """∇f(X), whose entries are computed in each product."""

    def __init__(self, bound: FullTable, x: Factors):
        self.bound, self.x = bound, x
        self.shape, self.dtype, self.like = bound.shape, np.result_type(x.dtype, bound.dtype), HOST_ARRAY

    def matmul(self, V: Array) -> Array:
        require_rows(V, self.shape[1])
        return self.products(np.empty((self.shape[0], 0), V.dtype), V)[0]

    def rmatmul(self, U: Array) -> Array:
        require_rows(U, self.shape[0])
        return self.products(U, np.empty((self.shape[1], 0), U.dtype))[1]

    def products(self, U: Array, V: Array) -> tuple[Array, Array]:
        _, left, right = self.bound.passes.products(self.x, U, V)
        return left, right


def _checked(loss: Loss, Y: Any, rest: float, weights: Array | None) -> tuple[Loss, SparseTable]:
    if is_foreign(Y):
        raise InputError("Y of a Table is not a NumPy array. Convert it to NumPy first.")
    if sparse.issparse(Y):
        require_sound(Y, "Y")
        Y = Y.astype(np.result_type(Y.dtype, np.float32)) if Y.dtype.kind in "biu" else Y
    else:
        Y = to_numpy(floating(Y, "Y"))
    if Y.ndim != 2 or 0 in Y.shape or is_complex(Y.dtype.type(0)):
        raise InputError(f"Y is {Y.dtype} of shape {Y.shape}. Pass a matrix of real numbers.")
    found = _weighed(Y, rest, weights)
    values = np.append(found.y, np.asarray(rest, found.dtype))
    loss = loss.with_data_parameters(values)
    loss.targets.check(values, type(loss).__name__)
    check_range(found.y, "Y", np.finfo(found.dtype))
    return loss, found


def _weighed(Y: Any, rest: float, weights: Any) -> SparseTable:
    if weights is None:
        return sparse_table(Y, rest)
    w = to_numpy(floating(weights.toarray() if sparse.issparse(weights) else weights, "weights"))
    if w.shape not in (Y.shape, Y.shape[:1]):
        raise InputError(f"weights has shape {w.shape}, but Y has {Y.shape}. Pass one weight per row, or one per cell.")
    weight_vector(w.ravel(), "weights")
    if w.ndim == 1:
        return sparse_table(Y, rest, w)
    return full_sparse_table(Y.toarray() if sparse.issparse(Y) else Y, w)


def _known(offset: Array | None, shape: tuple[int, int]) -> tuple[Array, Array]:
    if offset is None:
        return np.empty((shape[0], 0)), np.empty((shape[1], 0))
    o = floating(offset, "offset")
    if o.shape != shape[:1] or is_complex(o) or not np.all(np.isfinite(o)):
        raise InputError(f"offset has shape {o.shape} for {shape[0]} rows, or is not finite. Pass one number per row.")
    return o[:, None], np.ones((shape[1], 1))


def _effects(cols: Array, rows: Array, dtype: Any) -> Factors:
    """The factors [1, b] and [a, 1] of effects a of columns and b of rows."""
    U, V = np.column_stack([np.ones_like(rows), rows]), np.column_stack([cols, np.ones_like(cols)])
    return Free().pair(U.astype(dtype), V.astype(dtype))
