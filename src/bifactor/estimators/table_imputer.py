"""Imputation of tables with columns of any kind, as a step of a pipeline."""

import warnings
from collections.abc import Sequence
from numbers import Real
from typing import Any, Self

import narwhals as nw
import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from bifactor.arrays import Array
from bifactor.data.column_types import KEEP, TIMES, ColumnHint, ColumnSpec, Declared, is_nothing
from bifactor.errors import InputError
from bifactor.estimators.base import CardMixin, table_card
from bifactor.estimators.callbacks import CallbackSupportMixin, Look, run_watched
from bifactor.estimators.validation import frame_header, table_error, validate_table
from bifactor.models.completion.fitting import seed_of
from bifactor.models.imputation.frames import as_objects, cells_of, declared, fill_column, like_of, object_cells
from bifactor.models.imputation.model import EFFORTS, FULL, ROUNDS, TOLERANCE, FittedTable, metric_of, require_tolerance
from bifactor.running.result import Status
from bifactor.validation import is_count, require_flag

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

    def written(self, forms: Sequence[ColumnSpec], told: Told, stay: Array, marked: Array, empty: set[Any]) -> Array:
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

    def written(self, forms: Sequence[ColumnSpec], told: Told, stay: Array, marked: Array, empty: set[Any]) -> Array:
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

    def written(self, forms: Sequence[ColumnSpec], told: Told, stay: Array, marked: Array, empty: set[Any]) -> Any:
        """The frame with missing cells filled in, with the same types, and an indicator for each marked column."""
        columns, marks = [], []
        for form, (holes, values), stays, marks_it in zip(forms, told, stay, marked, strict=True):
            name, series = form.name, self._frame.get_column(form.name)
            if name in empty and series.dtype.is_numeric():
                holes, values = np.ones(len(series), bool), np.zeros(len(series))
            if stays:
                columns.append(fill_column(series, holes, values, form.like))
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
        table = validate_table(estimator, X, reset, copy=True)
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


def _has_levels(imputer: "TableImputer") -> bool:
    """Whether some column has levels; True before the fit, when this is unknown."""
    return not hasattr(imputer, "levels_") or bool(imputer.levels_)


class TableImputer(CardMixin, CallbackSupportMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Fills in missing cells of tables of numbers, grades, booleans and categories; known cells are unchanged.

    Columns are encoded as standardised numbers and explained by common factors with noise per column, both directly
    and as normal scores. Small forests correct the result for steps and curvature in the dependence between columns, as
    far as hidden known cells show that this helps. No tuning is needed.

    Data frames of pandas, polars and pyarrow are returned as such, with their types and categories; arrays are returned
    as arrays. `transform` also accepts new rows, without another fit.

    Parameters
    ----------
    columns : "auto" or dict
        Kinds of columns by name, or by number for arrays: "number", "ordinal", "boolean", "category", "keep" for
        columns that are left alone, or an ordered list of levels. The kinds of all others are inferred: ordered
        categories and whole numbers with at most 12 levels are ordinal; words are categories, or kept if most of them
        differ.
    bounds : dict, optional
        (lowest, highest) values to fill in, by name, for columns of numbers or times. By default those of the data.
    effort : "full" or "fast"
        "fast" leaves out normal scores and forests.
    missing_values : number, word or NaN
        Marker of missing cells, in addition to NaN, None and the like.
    keep_empty_features : bool
        Keep columns without any known cell in the fit; numbers are filled with 0, others stay empty. By default they
        are dropped.
    add_indicator : bool
        Append indicators of missing cells for columns that had some in the fit.
    max_iter, tol
        Maximum number of rounds for the factors, and the change of predictions, in standard deviations, that ends them.
    n_jobs : int, optional
        Number of threads; -1 for all cores, None for the setting of `bifactor.threads` or the environment.
    random_state : int, RandomState or None
        Seed of the hidden cells, and of the samples of trees.

    Attributes
    ----------
    kinds_ : dict
        Kind of each column.
    levels_ : dict
        Levels of columns that have some, in the order of `predict_proba`.
    scores_ : dict
        For each column that varies: `metric` (for grades, in levels), the `error` of hidden cells, and its `baseline`
        with the mean, the median or the most frequent level as the prediction, which also fills a column, within its
        bounds, if predictions are not better. For times, both are in days.
    status_ : Status
        How the fit ended. Ctrl-C keeps the factors so far and leaves out forests; before the first round it raises
        `KeyboardInterrupt`.
    results_ : tuple of FactorResult
        The rounds of the factor models, of numbers and of normal scores, as for `FactorAnalysis`.
    n_iter_ : int
        Number of rounds of both factor models.
    n_features_in_, feature_names_in_
        As in scikit-learn.
    """

    def __init__(
        self,
        *,
        columns: Any = "auto",
        bounds: Any = None,
        effort: str = FULL,
        missing_values: Any = np.nan,
        keep_empty_features: bool = False,
        add_indicator: bool = False,
        max_iter: int = ROUNDS,
        tol: float = TOLERANCE,
        n_jobs: int | None = None,
        random_state: Any = None,
    ):
        self.columns = columns
        self.bounds = bounds
        self.effort = effort
        self.missing_values = missing_values
        self.keep_empty_features = keep_empty_features
        self.add_indicator = add_indicator
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the dependence between columns."""
        self._check_settings()
        table = table_of(self, X, reset=True)
        told = self._told(table)
        kept = {name for name, said in told.items() if said.kind == KEEP}
        cells = [table.cells(name, name in kept) for name in table.names]
        forms = [ColumnSpec.of(n, c, told.get(n), table.declared(n)) for n, c in zip(table.names, cells, strict=True)]
        options = {
            "effort": self.effort,
            "seed": seed_of(self.random_state),
            "max_iter": self.max_iter,
            "tol": self.tol,
        }

        def fit(look: Look | None) -> FittedTable:
            on_round = lambda *_: look is not None and look()  # noqa: E731
            return FittedTable.fit(forms, cells, self.bounds, **options, on_round=on_round)

        self.sheet_ = run_watched(self, X, 2 * self.max_iter, fit)
        self._note(told)
        return self

    def transform(self, X: Any) -> Any:
        """The table with missing cells filled in."""
        table = self._seen(X)
        return self._written(table, self.sheet_.fill(self._cells(table)))

    def sample(self, X: Any, m: int = 5, *, random_state: Any = None) -> list[Any]:
        """Draw m tables with random values in missing cells, for multiple imputation.

        Cells of a row are drawn jointly, and loadings are drawn for each table, so that the differences between tables
        show the whole uncertainty.
        """
        if not is_count(m, 1):
            raise InputError(f"m={m!r} is not an integer ≥ 1. Pass the number of tables.")
        table = self._seen(X)
        drawn = self.sheet_.draws(self._cells(table), int(m), seed_of(random_state))
        return [self._written(table, part) for part in drawn]

    @available_if(_has_levels)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any, column: Any = None) -> Array:
        """Probabilities of the levels of a column, from the rest of each row: n × levels, in the order of `levels_`.

        Without `column`, the probabilities of all columns with levels, side by side.
        """
        table = self._seen(X)
        if column is not None and column not in self.levels_:
            some = ", ".join(map(repr, list(self.levels_)[:10]))
            raise InputError(f"column={column!r} is not a column with levels. Choose from {some}.")
        names = [form.name for form in self.sheet_.forms]
        wanted, cells = list(self.levels_) if column is None else [column], self._cells(table)
        return np.hstack([self.sheet_.probabilities(cells, names.index(name)) for name in wanted])

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Names of the columns that `transform` returns: those of the input, then those of the indicators."""
        check_is_fitted(self, "sheet_")
        names = OneToOneFeatureMixin.get_feature_names_out(self, input_features)
        marks = [f"missingindicator_{name}" for name, marked in zip(names, self._marked, strict=True) if marked]
        return np.array([*names[self._stay], *marks], object)

    def _check_settings(self) -> None:
        for name in ("keep_empty_features", "add_indicator"):
            require_flag(getattr(self, name), name)
        if self.effort not in EFFORTS:
            raise InputError(f"effort={self.effort!r} is unknown. Pass one of {', '.join(map(repr, EFFORTS))}.")
        if not is_count(self.max_iter, 1):
            raise InputError(f"max_iter={self.max_iter!r} is not an integer ≥ 1. Pass the maximum number of rounds.")
        require_tolerance(self.tol)
        mark = self.missing_values
        if not (isinstance(mark, (str, Real)) or (np.ndim(mark) == 0 and is_nothing(mark))):
            raise InputError(f"missing_values={mark!r} is not a single number or word. Pass one, or NaN.")
        for name, value in (("columns", self.columns), ("bounds", self.bounds)):
            if not (isinstance(value, dict) or value is None or (name == "columns" and value == "auto")):
                raise InputError(f"{name}={value!r} is not a dict. Pass one with column names as keys.")

    def _told(self, table: Table) -> dict[Any, ColumnHint]:
        given = self.columns if isinstance(self.columns, dict) else {}
        for name in given:
            if name not in table.names:
                some = ", ".join(map(repr, table.names[:10]))
                raise InputError(f"columns names {name!r}, which is not a column of X. Choose from {some}.")
        return {name: ColumnHint.of(name, said) for name, said in given.items()}

    def _note(self, told: dict[Any, ColumnHint]) -> None:
        """Set the public attributes of the fit."""
        sheet = self.sheet_
        self.kinds_ = {form.name: form.kind for form in sheet.forms}
        self.levels_ = {form.name: list(form.levels) for form in sheet.forms if form.levels and form.kind != KEEP}
        scored = [(form, score) for form, score in zip(sheet.forms, sheet.scores, strict=True) if score is not None]
        self.scores_ = {
            form.name: {"metric": metric_of(form), "error": score.error, "baseline": score.baseline}
            for form, score in scored
        }
        empty = [form.kind != KEEP and not known for form, known in zip(sheet.forms, sheet.known, strict=True)]
        self._stay = np.array([self.keep_empty_features or not nothing for nothing in empty], bool)
        self._marked = np.array(sheet.holes, np.int64) > 0 if self.add_indicator else np.zeros(len(empty), bool)
        if not self._stay.all():
            names = ", ".join(str(form.name) for form, stays in zip(sheet.forms, self._stay, strict=True) if not stays)
            warnings.warn(f"Columns without any known cell are dropped: {names}.", UserWarning, stacklevel=3)
        if unfilled := sheet.unfilled(told):
            warnings.warn(unfilled, UserWarning, stacklevel=3)
        factors = None if sheet.model.predictor is None else sheet.model.predictor.factors
        self.results_ = () if factors is None else factors.results
        self.n_iter_, self.status_ = sum(result.n_iter for result in self.results_), sheet.model.status
        if self.status_ is Status.MAX_ITER:
            said = f"The fit reached max_iter={self.max_iter} rounds without convergence. Increase max_iter or tol."
            warnings.warn(said, ConvergenceWarning, stacklevel=3)
        elif self.status_ in (Status.INTERRUPTED, Status.DIVERGED):
            warnings.warn(f"The fit ended in round {self.n_iter_}: {self.status_}.", ConvergenceWarning, stacklevel=3)

    def _card(self) -> str:
        return table_card(self) if hasattr(self, "sheet_") else ""

    def _seen(self, X: Any) -> Table:
        check_is_fitted(self, "sheet_")
        return table_of(self, X, reset=False)

    def _cells(self, table: Table) -> list[Array]:
        return [table.cells(name, form.kind == KEEP) for name, form in zip(table.names, self.sheet_.forms, strict=True)]

    def _written(self, table: Table, told: list[tuple[Array, Array]]) -> Any:
        empty = {form.name for form, known in zip(self.sheet_.forms, self.sheet_.known, strict=True) if not known}
        return table.written(self.sheet_.forms, told, self._stay, self._marked, empty)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
