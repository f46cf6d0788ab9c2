"""Every cell of a table, zeros included, without a dense copy of it."""

from typing import Any

import numpy as np
from scipy import sparse

from bifactor._compat import cached_property
from bifactor.arrays import HERE, Array, digest, floating, host, is_complex, is_foreign
from bifactor.arrays.sparse import require_sound
from bifactor.blocks import Exact
from bifactor.describe import describe
from bifactor.errors import InputError
from bifactor.factors import Factors, Free
from bifactor.kernels.sheet import Sheet, sheet, whole_sheet
from bifactor.linear_map import LinearMap
from bifactor.losses import Loss
from bifactor.losses.checks import check_range, smoothness_of
from bifactor.losses.named import loss_of
from bifactor.operators.bound import Ahead, Apply, Bound, Curve, Evaluated, Measurements
from bifactor.operators.footprint import Footprint
from bifactor.operators.table_effects import FARTHEST, rough_effects
from bifactor.operators.table_passes import CELLS, FEWEST, Passes
from bifactor.operators.visited import Visited
from bifactor.validation import require_pair, require_rows, weights_of

STEPS, LONGEST, ROUGH, SMALL = 60, 1.0, 0.05, 1e-4
"""The largest number of Newton steps for the effects of rows or columns, the longest step, the default tolerance, and
the largest step that may be due to rounding."""

SAMPLE = 4_000_000
"""The number of cells to which parameters of a loss are fitted."""


class Table(Bound):
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

    def _bind(self, loss: Loss, stored: Sheet, known: tuple[Array, Array]) -> None:
        self.loss, self.sheet, self.known = loss, stored, known
        self.shape, self.dtype, self.like = stored.shape, stored.dtype, HERE
        self.passes = Passes(loss, stored, known)

    def _with(self, **changed: Any) -> "Table":
        """The same table with another loss, other cells or other offsets."""
        other = object.__new__(Table)
        other._bind(*(changed.get(name, getattr(self, name)) for name in ("loss", "sheet", "known")))
        return other

    def without(self, rows: Array, cols: Array) -> "Table":
        """The same table without some cells, none of which may be repeated."""
        return self._with(sheet=self.sheet.without(rows, cols))

    def part(self, start: int, stop: int) -> "Table":
        """Some of the rows."""
        return self._with(sheet=self.sheet.part(start, stop), known=(self.known[0][start:stop], self.known[1]))

    def take(self, rows: Array) -> "Table":
        """Some of the rows, by index."""
        return self._with(sheet=self.sheet.take(rows), known=(self.known[0][rows], self.known[1]))

    def shifted(self, offset: Array | float) -> "Table":
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

    def curve(self, x: Factors, d: Factors, z: Measurements = None, ahead: Ahead | None = None) -> Curve:
        self._require(x)
        self._require(d)
        return Visited(self, x, d, self.passes.along)

    def exact(self, x: Factors, side: int, score: bool = False, rows: tuple[int, int] | None = None) -> Exact:
        self._require(x)
        return Exact(self.passes.squares(x, side, score, rows or (0, self.shape[side])), x.width)

    @property
    def fitted(self) -> tuple[float, ...]:
        return self.loss.fitted

    @property
    def scales(self) -> bool:
        return self.loss.scales

    def refit(self, x: Factors, z: Measurements = None) -> "Table":
        """The parameters that fit best to some of the rows, evenly spread over the table."""
        m, n = self.shape
        rows = np.unique(np.linspace(0, m - 1, max(1, min(m, SAMPLE // n))).astype(int))
        z = x.left[rows] @ x.right.T + self.offset[rows, None]
        y, w = self.sheet.take(rows).dense()
        return self._with(loss=self.loss.refit(z.ravel(), y.ravel(), w.ravel()))

    def with_fitted(self, fitted: tuple[float, ...]) -> "Table":
        return self._with(loss=self.loss.with_fitted(fitted))

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

    def __init__(self, bound: Table, x: Factors):
        self.bound, self.x = bound, x
        self.shape, self.dtype, self.like = bound.shape, np.result_type(x.dtype, bound.dtype), HERE

    def matmul(self, V: Array) -> Array:
        require_rows(V, self.shape[1])
        return self.products(np.empty((self.shape[0], 0), V.dtype), V)[0]

    def rmatmul(self, U: Array) -> Array:
        require_rows(U, self.shape[0])
        return self.products(U, np.empty((self.shape[1], 0), U.dtype))[1]

    def products(self, U: Array, V: Array) -> tuple[Array, Array]:
        _, left, right = self.bound.passes.products(self.x, U, V)
        return left, right


def _checked(loss: Loss, Y: Any, rest: float, weights: Array | None) -> tuple[Loss, Sheet]:
    if is_foreign(Y):
        raise InputError("Y of a Table is not a NumPy array. Convert it to NumPy first.")
    if sparse.issparse(Y):
        require_sound(Y, "Y")
        Y = Y.astype(np.result_type(Y.dtype, np.float32)) if Y.dtype.kind in "biu" else Y
    else:
        Y = host(floating(Y, "Y"))
    if Y.ndim != 2 or 0 in Y.shape or is_complex(Y.dtype.type(0)):
        raise InputError(f"Y is {Y.dtype} of shape {Y.shape}. Pass a matrix of real numbers.")
    found = _weighed(Y, rest, weights)
    values = np.append(found.y, np.asarray(rest, found.dtype))
    loss = loss.suited(values)
    loss.targets.check(values, type(loss).__name__)
    check_range(found.y, "Y", np.finfo(found.dtype))
    return loss, found


def _weighed(Y: Any, rest: float, weights: Any) -> Sheet:
    if weights is None:
        return sheet(Y, rest)
    w = host(floating(weights.toarray() if sparse.issparse(weights) else weights, "weights"))
    if w.shape not in (Y.shape, Y.shape[:1]):
        raise InputError(f"weights has shape {w.shape}, but Y has {Y.shape}. Pass one weight per row, or one per cell.")
    weights_of(w.ravel(), "weights")
    if w.ndim == 1:
        return sheet(Y, rest, w)
    return whole_sheet(Y.toarray() if sparse.issparse(Y) else Y, w)


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
