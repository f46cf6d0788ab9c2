"""Known entries of a matrix, as readers return them and fits take them."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy
from scipy import sparse

from bifactor._compat import cached_property
from bifactor.arrays import Array, digest, floating
from bifactor.arrays.sparse import coordinates, require_sound
from bifactor.data.dataset import BlockDataset, Dataset, Recoding, Summary, ValueTally
from bifactor.data.masks import CellMask
from bifactor.data.names import Names
from bifactor.data.seen_items import Pairs, SeenItems
from bifactor.data.text import checksum
from bifactor.errors import InputError
from bifactor.executors import Block, BlockData, Executor, Workspace
from bifactor.losses import DataFit, Loss, Shifted
from bifactor.operators.bound import DataBound
from bifactor.operators.entries import Entries, places
from bifactor.solvers.variational.moments import DataStatistics
from bifactor.validation import require_finite


@dataclass(frozen=True)
class Origin:
    """Where observations come from."""

    layout: str
    """How the data were read, in one sentence."""
    header: tuple[str, ...] = ("row", "column", "value")
    """The names of the row, the column and the value in the source."""
    missing: int = 0
    """Lines, or cells, without a value."""
    wide: bool = False
    """Whether there was one line per row."""


@dataclass(frozen=True, eq=False)
class Observations(Dataset):
    """Known entries of a matrix: values[t] is the entry (rows[t], cols[t])."""

    rows: Array
    cols: Array
    values: Array
    """Empty if only pairs were asked for."""
    shape: tuple[int, int]
    weights: Array | None = None
    row_names: Names | None = None
    """Names of the rows; None if these are their indices."""
    column_names: Names | None = None
    origin: Origin | None = None
    row_features: sparse.csr_array | None = None
    """Features of the rows, one line of numbers for each; None if there are none."""
    column_features: sparse.csr_array | None = None

    @property
    def size(self) -> int:
        return int(self.rows.size)

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.values.dtype

    @property
    def is_weighted(self) -> bool:
        return self.weights is not None

    def content(self, path: Path) -> dict[str, Any]:
        return {"bytes": path.stat().st_size, "sha256": checksum(path)}

    def summary(self) -> Summary:
        return self._summary

    @cached_property
    def _summary(self) -> Summary:
        tally = ValueTally()
        tally.add(np.asarray(self.values, np.float64))
        return tally.summary()

    def representatives(self) -> Array:
        return self.values

    def counts(self) -> tuple[Array, Array]:
        rows, cols = (np.bincount(i, minlength=m) for i, m in zip((self.rows, self.cols), self.shape, strict=True))
        return rows, cols

    def weight_sums(self) -> tuple[Array, Array]:
        w = np.ones(self.size) if self.weights is None else self.weights
        rows, cols = (np.bincount(i, w, m) for i, m in zip((self.rows, self.cols), self.shape, strict=True))
        return rows, cols

    def weighted_values(self) -> tuple[Array, Array]:
        return self.values.astype(np.float64), np.ones(self.size) if self.weights is None else self.weights

    def with_representable_squares(self, centre: float) -> "Observations":
        y = self.values.astype(np.float64) - centre
        fine = DataStatistics.of(y, self.weights).representable(self.dtype)
        return self if fine else self.replaced(self.values.astype(np.float64))

    def in_blocks(self) -> BlockDataset:
        return WholeBlock(self)

    def split(self, mask: CellMask) -> tuple["Observations", "Observations"]:
        inside = mask(self.rows, self.cols)
        return self.part(~inside), self.part(inside)

    def recode(self, recoding: Recoding) -> "Observations":
        return recoding.observations(self)

    def unweighted(self) -> "Observations":
        return replace(self, weights=None)

    def lines(self, stay: Array, side: int = 0) -> "Observations":
        return self if stay.all() else self.part(stay[(self.rows, self.cols)[side]])

    def bind(self, loss: Loss, *, executor: Executor | None = None) -> DataBound:
        """f(X) = Σ w ℓ(X[i, j]; y); the shift of a squared loss is taken from y, which is equivalent and compiled."""
        y = self.values
        if isinstance(loss, Shifted) and loss.loss.quadratic:
            y, loss = y - y.dtype.type(loss.shift), loss.loss
        operator = Entries(self.rows, self.cols, self.shape)
        return operator.bind(DataFit.of(loss, y, self.weights))

    def seen_items(self, weighted: bool = False) -> SeenItems:
        return Pairs.of(self, weighted)

    def replaced(self, values: Array) -> "Observations":
        return replace(self, values=values)

    def part(self, chosen: Array) -> "Observations":
        """Some of the entries, by a mask or by their indices."""
        weights = None if self.weights is None else self.weights[chosen]
        return replace(
            self, rows=self.rows[chosen], cols=self.cols[chosen], values=self.values[chosen], weights=weights
        )

    def with_text_names(self) -> "Observations":
        """These entries with text for the names of rows and columns."""
        rows, cols = (None if names is None else names.as_text() for names in (self.row_names, self.column_names))
        return replace(self, row_names=rows, column_names=cols)

    def weighed(self) -> "Observations":
        """The entries without those of weight 0, which count as missing."""
        if self.weights is None:
            return self
        if not np.all(self.weights >= 0) or not np.all(np.isfinite(self.weights)):
            raise InputError("Some weights are negative, NaN or infinite. Pass numbers ≥ 0; 0 leaves an entry out.")
        used = self.weights > 0
        if used.size and not used.any():
            raise InputError("Every weight is zero. Give some entries a weight above 0.")
        return self if used.all() else self.part(used)

    def known(self) -> "Observations":
        """The entries with a value and a weight above 0, and only the names that occur in these."""
        gone = np.isnan(self.values)
        if self.weights is not None:
            gone |= self.weights == 0
        if not gone.any():
            return self
        stay = self.part(~gone)
        assert self.row_names is not None
        assert self.column_names is not None
        row_names, rows = self.row_names.used(stay.rows)
        column_names, cols = self.column_names.used(stay.cols)
        origin = self.origin
        if origin is not None:
            origin = replace(origin, missing=origin.missing + int(np.count_nonzero(gone)))
        return replace(
            stay,
            rows=rows,
            cols=cols,
            shape=(len(row_names), len(column_names)),
            row_names=row_names,
            column_names=column_names,
            origin=origin,
        )


@dataclass(frozen=True, eq=False)
class WholeBlock(BlockDataset):
    """Observations in memory as one block, which is both the dataset and its only part."""

    data: Observations
    start = 0

    @property
    def shape(self) -> tuple[int, int]:  # type: ignore[override]
        return self.data.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.data.dtype

    @property
    def flipped(self) -> bool:  # type: ignore[override]
        return self.shape[0] < self.shape[1]

    @property
    def is_weighted(self) -> bool:
        return self.data.is_weighted

    @property
    def parts(self) -> tuple[Block, ...]:
        return (self,)

    @property
    def stop(self) -> int:
        return max(self.shape)

    @property
    def size(self) -> int:
        return self.data.size

    @cached_property
    def fingerprint(self) -> str:
        data = self.data
        return digest(data.rows, data.cols, data.values, *(() if data.weights is None else (data.weights,)))

    def load(self, workspace: Workspace | None = None) -> BlockData:
        data = self.data
        outer, inner = (data.cols, data.rows) if self.flipped else (data.rows, data.cols)
        return BlockData.of(outer, inner, data.values, (max(self.shape), min(self.shape)), data.weights)

    def summary(self) -> Summary:
        return self.data.summary()

    def counts(self) -> tuple[Array, Array]:
        return self.data.counts()

    def weighted_values(self) -> tuple[Array, Array]:
        return self.data.weighted_values()


def observations_from_names(
    rows: tuple[Names, Array],
    cols: tuple[Names, Array],
    values: Array,
    origin: Origin | None,
    weights: Array | None = None,
) -> Observations:
    """Observations from the names of each side and the indices of entries among them."""
    shape = len(rows[0]), len(cols[0])
    return Observations(rows[1], cols[1], values, shape, weights, rows[0], cols[0], origin)


# Arrays with holes, sparse matrices and triples as observations.

LARGEST_SIDE, SPARSEST = 10_000_000, 100
"""Triples hold names rather than indices if their largest is above the first and above this many times their number."""


def is_triples(X: Any) -> bool:
    """Whether X is (rows, cols, values), a tuple of three vectors."""
    return isinstance(X, tuple) and len(X) == 3 and all(np.ndim(part) == 1 for part in X)


def fill_mask_with_nan(X: Any) -> Any:
    """Replace masked entries of a masked array by NaN; return anything else as it is."""
    return np.ma.filled(X.astype(np.result_type(X.dtype, np.float32)), np.nan) if np.ma.isMaskedArray(X) else X


def from_matrix(table: Any, weights: Any = None) -> Observations:
    """The known entries of a floating-point matrix: those that are not NaN or, in a sparse matrix, that are stored.

    `weights` has one number per row, or is a matrix of the same kind; entries of weight 0 count as missing.
    """
    shape = (int(table.shape[0]), int(table.shape[1]))
    if scipy.sparse.issparse(table):
        coo = coordinates(table, "X")
        coo.sum_duplicates()
        seen = ~np.isnan(coo.data)
        rows, cols, values = coo.row[seen].astype(np.int64), coo.col[seen].astype(np.int64), coo.data[seen]
    else:
        rows, cols = np.nonzero(~np.isnan(table))
        values = table[rows, cols]
    return Observations(rows, cols, values, shape, _weights(weights, rows, cols, shape)).weighed()


def from_triples(X: Any, weights: Any = None, columns: int | None = None) -> Observations:
    """Triples with indices from 0, of a matrix with so many columns if that is known."""
    values = floating(X[2], "values")
    require_finite(values, "values", "Leave missing entries out of the triples.")
    if columns is None and values.size == 0:
        raise InputError("There are no observed entries. Pass at least one triple.")
    sides = [np.asarray(part) for part in X[:2]]
    largest = [_largest(side, values.size, what) for side, what in zip(sides, ("rows", "cols"), strict=True)]
    shape = (largest[0], largest[1] if columns is None else columns)
    if columns is not None and largest[1] > columns:
        raise InputError(
            f"There is a column {largest[1] - 1}, but the fit has {columns} columns. Use partial_fit for new ones."
        )
    if values.size:
        i, _ = places(sides[0], sides[1], shape)
        if i.size != values.size:
            raise InputError(f"There are {i.size} coordinates and {values.size} values. Pass equally many.")
    w = None if weights is None else floating(weights, "weights")
    if w is not None and w.shape != values.shape:
        raise InputError(f"There are {values.size} values and {w.size} weights. Pass one per triple.")
    return Observations(sides[0].astype(np.int64), sides[1].astype(np.int64), values, shape, w).weighed()


def _largest(side: Array, size: int, what: str) -> int:
    """The length of a side: one more than its largest index."""
    if side.dtype.kind not in "iu":  # empty, or an error is raised with the other coordinates
        return 1
    count = int(side.max(initial=0)) + 1
    if count > max(LARGEST_SIDE, SPARSEST * size):
        raise InputError(
            f"{what} goes up to {count - 1}, but there are {size} triples. Use fit_long for ids that are not indices."
        )
    return count


def _weights(weights: Any, rows: Array, cols: Array, shape: tuple[int, int]) -> Array | None:
    if weights is None:
        return None
    if scipy.sparse.issparse(weights) and weights.shape == shape:
        require_sound(weights, "weights")
        return floating(weights.tocsr()[rows, cols], "weights").ravel()
    w = floating(weights, "weights")
    if w.shape == shape[:1]:
        return w[rows]
    if w.shape == shape:
        return w[rows, cols]
    raise InputError(
        f"weights has shape {w.shape}, but X has {shape}. Pass one weight per row, or a matrix of that shape; for "
        "triples, one weight each."
    )
