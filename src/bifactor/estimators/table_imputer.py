"""Imputation of tables with columns of any kind, as a step of a pipeline."""

import warnings
from numbers import Real
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from bifactor.arrays import Array
from bifactor.errors import InputError
from bifactor.estimators.given_table import Table, table_of
from bifactor.estimators.shown import Shown, table_card
from bifactor.estimators.watched import CallbackSupportMixin, Look, run_watched
from bifactor.models.settings import seed_of
from bifactor.models.table.model import EFFORTS, FULL, ROUNDS, TOLERANCE
from bifactor.models.table.sheet import Sheet, metric_of, require_tolerance
from bifactor.tables.forms import KEEP, Form, Told, is_nothing
from bifactor.validation import is_count, require_flag


def _has_levels(imputer: "TableImputer") -> bool:
    """Whether some column has levels; True before the fit, when this is unknown."""
    return not hasattr(imputer, "levels_") or bool(imputer.levels_)


class TableImputer(Shown, CallbackSupportMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
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
        forms = [Form.of(n, c, told.get(n), table.declared(n)) for n, c in zip(table.names, cells, strict=True)]
        options = {
            "effort": self.effort,
            "seed": seed_of(self.random_state),
            "max_iter": self.max_iter,
            "tol": self.tol,
        }
        stopped = False

        def fit(look: Look | None) -> Sheet:
            def on_round(*_: Any) -> bool:
                nonlocal stopped
                stopped = look is not None and look()
                return stopped

            return Sheet.fit(forms, cells, self.bounds, **options, on_round=on_round)

        self.sheet_ = run_watched(self, X, 2 * self.max_iter, fit)
        self._note(stopped, told)
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

    def _told(self, table: Table) -> dict[Any, Told]:
        given = self.columns if isinstance(self.columns, dict) else {}
        for name in given:
            if name not in table.names:
                some = ", ".join(map(repr, table.names[:10]))
                raise InputError(f"columns names {name!r}, which is not a column of X. Choose from {some}.")
        return {name: Told.of(name, said) for name, said in given.items()}

    def _note(self, stopped: bool, told: dict[Any, Told]) -> None:
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
        self.n_iter_ = 0 if factors is None else factors.n_iter
        if factors is not None and not factors.converged and not stopped:
            warnings.warn(
                f"The fit reached max_iter={self.max_iter} rounds without convergence. Increase max_iter or tol.",
                ConvergenceWarning,
                stacklevel=3,
            )

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
