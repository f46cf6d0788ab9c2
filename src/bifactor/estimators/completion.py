"""What estimators of matrices with holes share: all but what an entry means."""

from abc import abstractmethod
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from bifactor.arrays import Array, floating
from bifactor.errors import InputError
from bifactor.estimators.watched import CallbackSupportMixin, fit_watched
from bifactor.models.model import Model, Settings, updated
from bifactor.models.ranking import best_columns
from bifactor.models.scoring import explained, left_out_scores
from bifactor.models.settings import warn_unless_converged
from bifactor.tables.labels import Labels
from bifactor.tables.observations import Observations, is_triples, long_form, note_columns, observations
from bifactor.validation import is_count

LARGEST = 100_000_000
"""Entries of a completed matrix that are made at once."""


class Completed:
    """`fit_transform`; apart from the rest, lest `set_output` name its columns as those of `transform`."""

    def fit_transform(self: Any, X: Any, y: Any = None, sample_weight: Any = None) -> Array:
        """Fit, and the completed matrix as an array: what is known as it is, elsewhere what is predicted."""
        settings = self._settings()
        data = observations(self, X, sample_weight)
        _require_small(data.shape)
        return self._fitted(settings, X, data).complete()


class Completion(Completed, CallbackSupportMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Fits a matrix to some of its entries, and tells the others."""

    @abstractmethod
    def _settings(self) -> Settings:
        """The parameters, checked."""

    @abstractmethod
    def _encoded(self, data: Observations, reset: bool) -> Observations:
        """The values as the loss wants them."""

    @abstractmethod
    def _decoded(self, values: Array) -> Array:
        """Values of the loss as those that `predict` gives."""

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit to the known entries of X.

        Parameters
        ----------
        X : array, frame, sparse matrix, or tuple
            An array or frame with NaN where nothing is known; a sparse matrix, of which what is stored is known, zeros
            too; a masked array; or triples (rows, cols, values) that count from 0.
        y : ignored
        sample_weight : array, optional
            One weight per row, or one per entry; an entry of weight 0 is as good as missing.
        """
        settings = self._settings()
        return self._fitted(settings, X, observations(self, X, sample_weight))

    def fit_long(self, frame: Any, *, row: str, col: str, value: str, weight: str | None = None) -> Self:
        """Fit to a frame of one line per known entry.

        Parameters
        ----------
        frame : pandas, polars or any frame that narwhals knows
        row, col, value : str
            The columns with the names of rows and columns, of any kind, and the values. Lines without a value are
            left out; two lines of the same names are two measurements.
        weight : str, optional
            The column with weights.
        """
        settings = self._settings()
        long = long_form(frame, row, col, value, weight)
        rows, i = Labels.of(long.rows, "row")
        cols, j = Labels.of(long.cols, "column")
        shape = (rows.names.size, cols.names.size)
        note_columns(self, shape[1])
        return self._fitted(settings, frame, Observations(i, j, long.values, shape, long.weights).weighed(), rows, cols)

    def _fitted(
        self, settings: Settings, X: Any, data: Observations, rows: Labels | None = None, cols: Labels | None = None
    ) -> Self:
        if data.values.size == 0:
            raise InputError("No entry of X is known. Pass at least one that is not missing.")
        data = self._encoded(data, reset=True)
        start = getattr(self, "model_", None) if self.warm_start else None
        model = fit_watched(self, X, data, settings, start)
        self.row_labels_, self.column_labels_ = rows, cols
        self._keep(model, data)
        self.result_, self.ridge_path_, self.alpha_ = model.result, model.path, model.ridge
        self.n_iter_ = model.result.n_iter
        warn_unless_converged(model)
        return self

    def _keep(self, model: Model, data: Observations) -> None:
        """Note a model, and the data that it rests on."""
        extra = model.fixed_columns
        self.model_, self.observations_ = model, data
        self.components_ = model.V[:, extra:].T
        self.row_factors_ = model.U[:, extra:]
        self.n_components_ = int(self.components_.shape[0])
        self.intercept_ = model.intercept
        self.row_offsets_: Array = model.U[:, 1] if model.offsets else np.zeros(model.U.shape[0], model.U.dtype)
        self.column_offsets_: Array = model.V[:, 0] if model.offsets else np.zeros(model.V.shape[0], model.V.dtype)

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Take in new rows, and from triples new columns too, without fitting the others again.

        A table holds new rows. Triples may name rows that are there, which are then found anew from all their entries,
        and rows and columns beyond the last. On an estimator that was not fitted it is `fit`.
        """
        if not hasattr(self, "model_"):
            return self.fit(X, sample_weight=sample_weight)
        if self.row_labels_ is not None:
            raise InputError("This estimator was fitted to names. Use partial_fit_long.")
        known = self.observations_
        if is_triples(X):
            new = observations(BaseEstimator(), X, sample_weight)
        else:
            new = observations(self, X, sample_weight, reset=False)
            new = replace(new, rows=new.rows + known.shape[0], shape=(known.shape[0] + new.shape[0], known.shape[1]))
        return self._updated(new)

    def partial_fit_long(self, frame: Any, *, row: str, col: str, value: str, weight: str | None = None) -> Self:
        """Take in lines with new names, or more lines for names that are there; see `partial_fit`."""
        if not hasattr(self, "model_"):
            return self.fit_long(frame, row=row, col=col, value=value, weight=weight)
        if self.row_labels_ is None or self.column_labels_ is None:
            raise InputError("This estimator was not fitted to names. Use partial_fit, or fit_long from the start.")
        long = long_form(frame, row, col, value, weight)
        rows, i = self.row_labels_.extended(long.rows, "row")
        cols, j = self.column_labels_.extended(long.cols, "column")
        shape = (rows.names.size, cols.names.size)
        self._updated(Observations(i, j, long.values, shape, long.weights).weighed())
        self.row_labels_, self.column_labels_ = rows, cols
        return self

    def _updated(self, new: Observations) -> Self:
        model, data = updated(self.model_, self.observations_, self._encoded(new, reset=False))
        if data.shape[1] > self.n_features_in_:
            note_columns(self, data.shape[1])
        self._keep(model, data)
        return self

    def decision_function(self, rows: Any, cols: Any = None) -> Array:
        """z at the entries (rows[t], cols[t]), before the link of the loss.

        Without `cols`, `rows` is a table of new rows as for `transform`, and z is told in all their columns.
        """
        check_is_fitted(self, "model_")
        if cols is not None:
            return self.model_.scores(*self._places(rows, cols))
        data = self._encoded(observations(self, rows, reset=False), reset=False)
        return self._everywhere(self.model_.rows(data))

    def _places(self, rows: Any, cols: Any) -> tuple[Array, Array]:
        """Names, or numbers, as numbers; a single one on one side goes with all of the other."""
        sides = []
        for values, labels, what in ((rows, self.row_labels_, "row"), (cols, self.column_labels_, "column")):
            sides.append(np.atleast_1d(np.asarray(values)) if labels is None else labels.known(values, what))
        if 1 in (sides[0].size, sides[1].size):
            sides = list(np.broadcast_arrays(*sides))
        return sides[0], sides[1]

    def transform(self, X: Any) -> Array:
        """Factors of new rows, of which some entries are known: b and u, or u alone where there are no offsets.

        The columns' factors are held, and each row found under the loss and ridge of the fit.
        """
        check_is_fitted(self, "model_")
        data = self._encoded(observations(self, X, reset=False), reset=False)
        return self.model_.rows(data)[:, int(self.model_.offsets) :]

    def inverse_transform(self, Z: Any) -> Array:
        """What factors of rows predict, in all columns."""
        check_is_fitted(self, "model_")
        Z = floating(Z, "Z")
        first = int(self.model_.offsets)
        width = self.model_.V.shape[1] - first
        if Z.ndim != 2 or Z.shape[1] != width:
            raise InputError(f"Z has shape {Z.shape}, but transform gives {width} columns. Pass what it gave.")
        return self.model_.loss.mean(self._everywhere(np.hstack([np.ones((Z.shape[0], first), Z.dtype), Z])))

    def _everywhere(self, U: Array) -> Array:
        """z of rows in all columns, by factors with the offset columns in front."""
        _require_small((U.shape[0], self.model_.V.shape[0]))
        return U @ self.model_.V.T + U.dtype.type(self.model_.intercept)

    def complete(self) -> Array:
        """The completed matrix of the fit; of an entry that was measured twice it holds the last value."""
        check_is_fitted(self, "model_")
        data = self.observations_
        full = self.model_.loss.mean(self._everywhere(self.model_.U))
        full[data.rows, data.cols] = self._decoded(data.values)
        return full

    def recommend(self, rows: Any = None, n: int = 10, *, exclude_known: bool = True) -> tuple[Array, Array]:
        """For each row the n columns with the largest prediction, best first, and these predictions.

        Where fewer than n columns are left the rest is -1, or None among names, with NaN for predictions.

        Parameters
        ----------
        rows : sequence, optional
            Numbers, or names after `fit_long`; by default all.
        n : int
        exclude_known : bool
            Leave out columns in which an entry of the row is known.
        """
        check_is_fitted(self, "model_")
        if not is_count(n, 1):
            raise InputError(f"n={n!r} is not an integer ≥ 1. Ask for at least one column.")
        model = self.model_
        index = np.arange(model.U.shape[0])
        if rows is not None:
            first = 0 if self.column_labels_ is None else self.column_labels_.names[:1]
            index = self._places(rows, first)[0]
            model.scores(index, np.zeros_like(index))  # refuses what are no rows
        columns, predicted = best_columns(model, index, int(n), self.observations_ if exclude_known else None)
        if self.column_labels_ is None:
            return columns, predicted
        names = self.column_labels_.names[columns]
        return np.where(columns < 0, None, names) if np.any(columns < 0) else names, predicted

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """The fraction of deviance explained, D²: R² for squared errors. 1 is perfect, 0 as good as a constant.

        Triples are predicted by the fit. A table holds new rows: each of its entries is predicted by factors that were
        found from the other four fifths of the entries.
        """
        check_is_fitted(self, "model_")
        data = self._encoded(observations(self, X, sample_weight, reset=False), reset=False)
        if data.values.size == 0:
            raise InputError("No entry of X is known, so there is nothing to score. Pass at least one.")
        if is_triples(X):
            return explained(self.model_, data, self.model_.scores(data.rows, data.cols))
        return explained(self.model_, data, left_out_scores(self.model_, data))

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Names of what `transform` gives."""
        check_is_fitted(self, "model_")
        name = type(self).__name__.lower()
        offset = [f"{name}_offset"] if self.model_.offsets else []
        return np.array([*offset, *(f"{name}{k}" for k in range(self.n_components_))], dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _require_small(shape: tuple[int, int]) -> None:
    if shape[0] * shape[1] > LARGEST:
        raise InputError(
            f"The completed matrix of {shape[0]}×{shape[1]} has more than {LARGEST} entries. "
            "Use predict(rows, cols) for some of them, or transform and inverse_transform for some rows."
        )
