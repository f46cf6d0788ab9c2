"""Tables as scikit-learn's users pass them: arrays of numbers or of objects, and data frames of any library."""

from collections.abc import Sequence
from numbers import Real
from typing import Any

import narwhals as nw
import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from bifactor.arrays import Array
from bifactor.errors import InputError
from bifactor.estimators.checked import checked, frame_header, table_error
from bifactor.tables.forms import TIMES, Declared, Form, is_nothing
from bifactor.tables.frame_cells import cells_of, declared, filled
from bifactor.tables.object_cells import as_objects, like_of, object_cells

Told = list[tuple[Array, Array]]
"""The missing cells of each column, and the values that fill them."""


class ArrayTable:
    """An array of numbers; columns are named by number, or as in the frame of the fit."""

    def __init__(self, X: Array, names: list[Any], missing: Any):
        self.names = names
        self._X = X
        self._holes = np.isnan(X) | (missing == X) if isinstance(missing, Real) else np.isnan(X)

    def cells(self, name: Any, kept: bool) -> Array:
        """A column in double precision, NaN for missing cells."""
        at = self.names.index(name)
        return np.where(self._holes[:, at], np.nan, self._X[:, at].astype(np.float64))

    def declared(self, name: Any) -> Declared:
        return Declared()

    def written(self, forms: Sequence[Form], told: Told, stay: Array, marked: Array, empty: set[Any]) -> Array:
        """The array with missing cells filled in, with the same dtype."""
        found = self._X.copy()
        for j, (holes, values) in enumerate(told):
            found[holes, j] = values.astype(found.dtype)
            if self.names[j] in empty:
                found[self._holes[:, j], j] = 0
        return np.hstack([found[:, stay], self._holes[:, marked].astype(found.dtype)])


class WordTable:
    """An array of objects that contains words or times."""

    def __init__(self, X: Array, names: list[Any], missing: Any):
        self.names = names
        self._X, self._missing = X, missing

    def cells(self, name: Any, kept: bool) -> Array:
        """A column, with NaN or None for missing cells."""
        return np.zeros(len(self._X)) if kept else _without(object_cells(self._column(name), name), self._missing)

    def declared(self, name: Any) -> Declared:
        """Kind of a column according to the class of its objects."""
        return Declared(like=like_of(self._column(name)))

    def written(self, forms: Sequence[Form], told: Told, stay: Array, marked: Array, empty: set[Any]) -> Array:
        """The array with missing cells filled in, except in columns without any known cell."""
        found = self._X.copy()
        for j, (holes, values) in enumerate(told):
            found[holes, j] = as_objects(values, forms[j].like)
        marks = [_holes(self.cells(name, False)) for name, mark in zip(self.names, marked, strict=True) if mark]
        return np.column_stack([found[:, stay], *marks])

    def _column(self, name: Any) -> list[Any]:
        cells: list[Any] = self._X[:, self.names.index(name)].tolist()
        return cells


class FrameTable:
    """A data frame."""

    def __init__(self, frame: "nw.DataFrame[Any]", missing: Any):
        self.names = list(frame.columns)
        self._sparse = _sparse_types(frame)
        if self._sparse:  # pandas cannot write into these
            dense = {name: kind.subtype for name, kind in self._sparse.items()}
            frame = nw.from_native(nw.to_native(frame).astype(dense))
        self._frame, self._missing = frame, None if is_nothing(missing) else missing
        self._cells: dict[Any, Array] = {}

    def cells(self, name: Any, kept: bool) -> Array:
        """A column, with NaN or None for missing cells; a kept column is not read."""
        if kept:
            return np.zeros(len(self._frame))
        if name not in self._cells:
            self._cells[name] = _without(cells_of(self._frame.get_column(name), name), self._missing)
        return self._cells[name]

    def declared(self, name: Any) -> Declared:
        """Kind of a column according to its type."""
        found = declared(self._frame.get_column(name))
        return found._replace(levels=[level for level in found.levels if level != self._missing])

    def written(self, forms: Sequence[Form], told: Told, stay: Array, marked: Array, empty: set[Any]) -> Any:
        """The frame with missing cells filled in, with the same types, and an indicator for each marked column."""
        columns, marks = [], []
        for form, (holes, values), stays, marks_it in zip(forms, told, stay, marked, strict=True):
            name, series = form.name, self._frame.get_column(form.name)
            if name in empty and series.dtype.is_numeric():
                holes, values = np.ones(len(series), bool), np.zeros(len(series))
            if stays:
                columns.append(filled(series, holes, values, form.like))
            if marks_it:
                where = _holes(self.cells(name, False)).tolist()
                marks.append(_flags(f"missingindicator_{name}", where, series))
        found = nw.to_native(self._frame.select(*columns, *marks))
        sparse = {name: kind for name, kind in self._sparse.items() if name in found.columns}
        return found.astype(sparse) if sparse else found


Table = ArrayTable | WordTable | FrameTable


def table_of(estimator: BaseEstimator, X: Any, reset: bool) -> Table:
    """X as a table; its columns are stored on the estimator, or compared with those of the fit.

    After a fit to an array, which has no names, a frame is treated as an array.
    """
    missing = estimator.missing_values
    if np.ma.isMaskedArray(X) and np.ndim(X) == 2:
        X = np.ma.filled(X.astype(np.promote_types(X.dtype, np.float32)), np.nan)
    framed = frame_header(X) is not None and (reset or estimator._framed)
    if reset:
        estimator._framed = framed
    if not framed and _holds_objects(X):
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        names = getattr(estimator, "feature_names_in_", np.arange(X.shape[1]))
        return WordTable(X.astype(object), names.tolist(), missing)
    if not framed:
        table = checked(estimator, X, reset, copy=True)
        names = getattr(estimator, "feature_names_in_", np.arange(table.shape[1]))
        return ArrayTable(table, names.tolist(), missing)
    frame = nw.from_native(X)
    frame = frame.collect() if isinstance(frame, nw.LazyFrame) else frame
    native = nw.to_native(frame)
    try:
        validate_data(estimator, native, reset=reset, skip_check_array=True)
    except (ValueError, TypeError) as error:
        raise table_error(estimator, native, error) from None
    if 0 in frame.shape:
        what = f"{frame.shape[0]} sample(s) and {frame.shape[1]} feature(s) (shape={frame.shape})"
        raise InputError(f"X has {what} while a minimum of 1 is required. Pass at least one row and one column.")
    return FrameTable(frame, missing)


def _holds_objects(X: Any) -> bool:
    """Whether X is an array with words or times."""
    if not isinstance(X, np.ndarray) or X.ndim != 2 or X.size == 0:
        return False
    objects = X.ravel().tolist() if X.dtype == object else []
    return X.dtype.kind in "UT" or any(isinstance(cell, (str, *TIMES)) for cell in objects)


def _sparse_types(frame: "nw.DataFrame[Any]") -> dict[Any, Any]:
    """Types of the sparse columns of a frame of pandas."""
    if not frame.implementation.is_pandas():
        return {}
    return {name: kind for name, kind in nw.to_native(frame).dtypes.items() if hasattr(kind, "fill_value")}


def _without(cells: Array, missing: Any) -> Array:
    """Cells with the missing-value marker replaced by NaN or None."""
    if is_nothing(missing):
        return cells
    if cells.dtype == object:
        found = cells.copy()
        found[:] = [None if cell == missing and type(cell) is not bool else cell for cell in cells.tolist()]
        return found
    return np.where(cells == missing, np.nan, cells) if isinstance(missing, Real) else cells


def _holes(cells: Array) -> Array:
    return np.array([cell is None for cell in cells.tolist()], bool) if cells.dtype == object else np.isnan(cells)


def _flags(name: str, where: list[bool], beside: Any) -> Any:
    """A column of booleans, with the library and index of another column."""
    if beside.implementation.is_pandas_like():
        flags = beside.is_null().to_native().copy()
        flags[:] = where
        return nw.from_native(flags, series_only=True).alias(name)
    return nw.new_series(name, where, nw.Boolean, backend=beside.implementation)
