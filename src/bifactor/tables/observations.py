"""What users have, tables with holes, sparse matrices, triples and long frames, as coordinates and values."""

from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from bifactor.arrays import Array, floating
from bifactor.errors import InputError
from bifactor.operators import Entries
from bifactor.validation import require_finite

LARGEST_SIDE, SPARSEST = 10_000_000, 100
"""Triples whose largest index is beyond the first, and this many times their number, hold names, not places."""


@dataclass(frozen=True)
class Observations:
    """Which entries of a matrix are known, and what they are."""

    rows: Array
    cols: Array
    values: Array
    shape: tuple[int, int]
    weights: Array | None = None

    def replaced(self, values: Array) -> "Observations":
        return Observations(self.rows, self.cols, values, self.shape, self.weights)

    def part(self, chosen: Array) -> "Observations":
        """Some of them, by a mask or by their places."""
        weights = None if self.weights is None else self.weights[chosen]
        return Observations(self.rows[chosen], self.cols[chosen], self.values[chosen], self.shape, weights)

    def weighed(self) -> "Observations":
        """Without those of weight 0, which are as good as missing."""
        if self.weights is None:
            return self
        if not np.all(self.weights >= 0) or not np.all(np.isfinite(self.weights)):
            raise InputError("Some weights are negative, NaN or infinite. Pass numbers ≥ 0; 0 leaves an entry out.")
        used = self.weights > 0
        if used.size and not used.any():
            raise InputError("Every weight is zero. Give some entries a weight above 0.")
        return self if used.all() else self.part(used)


def is_triples(X: Any) -> bool:
    """Whether X is (rows, cols, values): a tuple of three vectors, which no table is."""
    return isinstance(X, tuple) and len(X) == 3 and all(np.ndim(part) == 1 for part in X)


def note_columns(estimator: BaseEstimator, count: int) -> None:
    """What scikit-learn's validation notes, for data that it does not know: a number of columns without names."""
    estimator.n_features_in_ = count
    vars(estimator).pop("feature_names_in_", None)


def observations(estimator: BaseEstimator, X: Any, weights: Any = None, reset: bool = True) -> Observations:
    """The known entries of X: not NaN in a table, stored in a sparse matrix, listed in triples.

    With `reset` the number of columns, and their names, are noted on the estimator; else they are compared.
    `weights` has one number per row, or is of the kind that X is; entries of weight 0 are as good as missing.
    """
    if is_triples(X):
        return _from_triples(estimator, X, weights, reset).weighed()
    if np.ma.isMaskedArray(X):
        X = np.ma.filled(X.astype(np.result_type(X.dtype, np.float32)), np.nan)
    table = validate_data(
        estimator,
        X,
        reset=reset,
        accept_sparse=("csr", "csc", "coo"),
        dtype=(np.float64, np.float32),
        ensure_all_finite="allow-nan",
    )
    shape = (int(table.shape[0]), int(table.shape[1]))
    if sparse.issparse(table):
        coo = table.tocoo(copy=True)
        coo.sum_duplicates()
        seen = ~np.isnan(coo.data)
        rows, cols, values = coo.row[seen].astype(np.int64), coo.col[seen].astype(np.int64), coo.data[seen]
    else:
        rows, cols = np.nonzero(~np.isnan(table))
        values = table[rows, cols]
    return Observations(rows, cols, values, shape, _weights(weights, rows, cols, shape)).weighed()


def _from_triples(estimator: BaseEstimator, X: Any, weights: Any, reset: bool) -> Observations:
    values = floating(X[2], "values")
    require_finite(values, "values", "Leave missing entries out of the triples.")
    if reset and values.size == 0:
        raise InputError("There are no observed entries. Pass at least one triple.")
    sides = [np.asarray(part) for part in X[:2]]
    largest = [_largest(side, values.size, what) for side, what in zip(sides, ("rows", "cols"), strict=True)]
    known = None if reset else int(estimator.n_features_in_)
    shape = (largest[0], largest[1] if known is None else known)
    if known is not None and largest[1] > known:
        raise InputError(f"A column {largest[1] - 1} was given, but the fit had {known}. Use partial_fit for new ones.")
    if values.size:
        operator = Entries(sides[0], sides[1], shape)  # refuses what are no coordinates
        if operator.size != values.size:
            raise InputError(f"There are {operator.size} coordinates and {values.size} values. Pass one of each.")
    if reset:
        note_columns(estimator, shape[1])
    w = None if weights is None else floating(weights, "weights")
    if w is not None and w.shape != values.shape:
        raise InputError(f"There are {values.size} values and {w.size} weights. Pass one per triple.")
    return Observations(sides[0].astype(np.int64), sides[1].astype(np.int64), values, shape, w)


def _largest(side: Array, size: int, what: str) -> int:
    """The length of a side: one more than its largest index."""
    if side.dtype.kind not in "iu":  # refused with the other coordinates, or empty
        return 1
    count = int(side.max(initial=0)) + 1
    if count > max(LARGEST_SIDE, SPARSEST * size):
        raise InputError(
            f"{what} goes up to {count - 1}, but there are {size} triples. Use fit_long for ids that are mere names."
        )
    return count


def _weights(weights: Any, rows: Array, cols: Array, shape: tuple[int, int]) -> Array | None:
    if weights is None:
        return None
    if sparse.issparse(weights) and weights.shape == shape:
        return floating(weights.tocsr()[rows, cols], "weights").ravel()
    w = floating(weights, "weights")
    if w.shape == shape[:1]:
        return w[rows]
    if w.shape == shape:
        return w[rows, cols]
    raise InputError(f"weights has shape {w.shape}, X has {shape}. Pass one weight per row, or one per entry.")


@dataclass(frozen=True)
class LongForm:
    """The columns of a frame that has one line per known entry."""

    rows: Array
    cols: Array
    values: Array
    weights: Array | None


def long_form(frame: Any, row: str, col: str, value: str, weight: str | None) -> LongForm:
    """The columns of a frame in long form; lines without a value, or with a weight of 0, are left out."""
    try:
        table = nw.from_native(frame, eager_only=True)
    except TypeError:
        raise InputError(
            f"frame is {type(frame).__name__}, not a data frame. Pass pandas, polars or the like."
        ) from None
    wanted = [name for name in (row, col, value, weight) if name is not None]
    missing = [name for name in wanted if name not in table.columns]
    if missing:
        raise InputError(
            f"There is no column {missing[0]!r} among {', '.join(map(str, table.columns))}. Check the name."
        )
    numbers = [_numbers(table[name], name) for name in wanted[2:]]
    known = ~np.isnan(numbers[0])
    if weight is not None:
        known &= numbers[1] != 0
    names = []
    for name, what in ((row, "row"), (col, "column")):
        if bool((table[name].is_null().to_numpy() & known).any()):
            raise InputError(
                f"Some {what} names are missing in {name!r}. Drop these lines, or give every {what} a name."
            )
        names.append(table[name].to_numpy())
    if not known.all():
        names, numbers = ([column[known] for column in part] for part in (names, numbers))
    return LongForm(names[0], names[1], numbers[0], numbers[1] if weight is not None else None)


def _numbers(column: "nw.Series[Any]", name: str) -> Array:
    """Floating, with NaN where there is nothing."""
    if not column.dtype.is_numeric() and column.dtype != nw.Boolean:
        raise InputError(f"Column {name!r} holds {column.dtype}, not numbers. Convert it first.")
    single = column.dtype == nw.Float32
    values = np.asarray(column.cast(nw.Float32 if single else nw.Float64).to_numpy(), np.float32 if single else None)
    values = floating(values, name)
    if np.any(np.isinf(values)):
        raise InputError(f"Column {name!r} holds infinite values. Leave them out, or empty.")
    return values
