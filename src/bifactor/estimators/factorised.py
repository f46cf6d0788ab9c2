"""Base class of estimators that fit factors to entries of a matrix: names, new rows, saving."""

import os
from dataclasses import replace
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from bifactor.arrays import Array
from bifactor.errors import InputError
from bifactor.estimators.checked import frame_header
from bifactor.estimators.convergence import warn_unless_converged
from bifactor.estimators.inputs import given_factors, note_columns, observations, require_small
from bifactor.estimators.long_form import Column, LongForm
from bifactor.estimators.shown import Shown
from bifactor.estimators.side_information import with_features
from bifactor.estimators.stores import FromStore, held
from bifactor.estimators.watched import CallbackSupportMixin, fit_watched
from bifactor.kernels.blas import matmul
from bifactor.models.fit import Fit
from bifactor.models.fitting import Settings, fit_model
from bifactor.models.model import Model
from bifactor.models.scoring import mean_noise
from bifactor.models.told import single_or_all
from bifactor.models.updating import updated
from bifactor.tables import BlockStore, Names, Observations, read
from bifactor.tables.matrices import is_triples


class Factorised(Shown, FromStore, LongForm, CallbackSupportMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Fits factors to entries of a matrix."""

    def _fitted(self, settings: Settings, X: Any, data: Observations) -> Self:
        if data.values.size == 0:
            raise InputError("No entry of X is known. Pass at least one known entry.")
        data = self._with_features(self._encoded(data, reset=True))
        start = getattr(self, "model_", None) if self.warm_start else None
        model = fit_watched(self, X, data, settings, start, self._fit_model)
        if model.side is not None and self._readers[0] is not None:
            model = replace(model, side=replace(model.side, standard=self._readers[0].standard))
        self._keep(model, data)
        sure = model.posterior is not None
        self._note(model, mean_noise(model.posterior_or_advice(), data) if sure else None)
        return self

    def _note(self, model: Model, noise: float | None) -> None:
        """Set the attributes that describe the run."""
        self.result_, self.ridge_path_, self.alpha_ = model.result, model.path, model.ridge
        self.n_iter_, self.noise_choice_ = model.result.n_iter, model.choice
        self.evidence_ = None if model.posterior is None else -model.result.objective
        self.noise_ = noise
        warn_unless_converged(model)

    def _with_features(self, data: Observations) -> Observations:
        """Add the features of the estimator, and the rows and columns that only features name."""
        users, items = (getattr(self, name, None) for name in ("user_features", "item_features"))
        columns = data.shape[1]
        data, self._readers = with_features(data, users, items)
        if data.shape[1] > columns:
            note_columns(self, data.shape[1])
        return data

    def _features(self, given: Any, rows: int | Names) -> sparse.csr_array | None:
        if given is None:
            return None
        reader = self._readers[0] if isinstance(self.observations_, Observations) else None
        if reader is None:
            raise InputError("The fit has no features of rows. Leave them out, or fit with user_features.")
        reader = replace(reader, what="features")
        return reader.named(given, rows) if isinstance(rows, Names) else reader.matrix(given, rows)

    def _fit_model(self, data: Observations, settings: Settings, start: Model | None) -> Model:
        return fit_model(data, settings, start)

    def _keep(self, model: Model, data: Observations | BlockStore) -> None:
        """Store a model, and the data that it was fitted to."""
        extra = model.fixed_columns
        self.model_, self.observations_ = model, data
        self.fit_ = Fit.of(model, data, getattr(self, "classes_", None))
        self.row_names_, self.column_names_ = data.row_names, data.column_names
        self.components_ = model.V[:, extra:].T
        self.row_factors_ = model.U[:, extra:]
        self.n_components_ = model.rank
        self.intercept_ = model.intercept
        self.row_offsets_: Array = model.U[:, 1] if model.offsets else np.zeros(model.U.shape[0], model.U.dtype)
        self.column_offsets_: Array = model.V[:, 0] if model.offsets else np.zeros(model.V.shape[0], model.V.dtype)

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Add new rows, and new columns if X is triples, without fitting the others again.

        A table contains new rows. Triples may contain existing rows, whose factors are then computed again from all
        their entries, and rows and columns beyond the last. On an estimator that is not fitted, this is `fit`.
        """
        if not hasattr(self, "model_"):
            return self.fit(X, sample_weight=sample_weight)
        if self.row_names_ is not None:
            raise InputError("This estimator was fitted to names. Use partial_fit_long.")
        old = held(self.observations_)
        if is_triples(X):
            new = observations(BaseEstimator(), X, sample_weight)
        else:
            new = observations(self, X, sample_weight, reset=False)
            new = replace(new, rows=new.rows + old.shape[0], shape=(old.shape[0] + new.shape[0], old.shape[1]))
        return self._updated(new)

    def _updated(self, new: Observations) -> Self:
        model, data = updated(self.model_, held(self.observations_), self._encoded(new, reset=False))
        if data.shape[1] > self.n_features_in_:
            note_columns(self, data.shape[1])
        self._keep(model, data)
        return self

    def decision_function(self, rows: Any, cols: Any = None, unknown: str = "mean") -> Array:
        """z at the entries (rows[t], cols[t]), before the link of the loss.

        Without `cols`, `rows` is a frame of pairs after `fit_long`, or a table of new rows as for `transform`; then z
        is returned in all columns. `unknown` says how to treat names that were not in the fit, see `predict`.
        """
        check_is_fitted(self, "model_")
        if cols is not None:
            if self.row_names_ is not None:
                return self.fit_.decision_function(rows, cols, unknown)
            i, j = (np.atleast_1d(np.asarray(side)) for side in (rows, cols))
            z = self.model_.scores(*(np.broadcast_arrays(i, j) if 1 in (i.size, j.size) else (i, j)))
            return single_or_all(z, rows, cols)
        if self.row_names_ is not None and self._has_pairs(frame_header(rows)):
            return self.fit_.decision_function(*self._pairs_of(rows), unknown)
        data = self._encoded(observations(self, rows, reset=False), reset=False)
        return self._everywhere(self.model_.rows(data))

    def _has_pairs(self, header: list[str] | None) -> bool:
        """Whether a frame contains pairs: by its column names, or because its columns are not those of the matrix."""
        if header is None:
            return False
        return set((self._header or ())[:2]) <= set(header) or len(header) != self.n_features_in_

    def _pairs_of(self, frame: Any, row: Column = None, col: Column = None) -> tuple[Array, Array]:
        """Names in each line of a frame, by default in the same columns as in the fit."""
        pairs = read(frame, row=row, col=col, values=False, hints=self._header)
        assert pairs.row_names is not None
        assert pairs.column_names is not None
        return pairs.row_names[pairs.rows], pairs.column_names[pairs.cols]

    def transform(self, X: Any, features: Any = None) -> Array:
        """Factors of new rows, from their known entries: b and u, or u alone without offsets.

        The factors of columns are fixed, and each row is fitted with the loss and ridge of the fit. `features` are the
        features of the rows of X, in the same form as in the fit; they alone determine the factors of a row without
        known entries.
        """
        check_is_fitted(self, "model_")
        data = self._encoded(observations(self, X, reset=False), reset=False)
        data = replace(data, row_features=self._features(features, data.shape[0]))
        return self.model_.rows(data)[:, int(self.model_.offsets) :]

    def inverse_transform(self, Z: Any) -> Array:
        """Predictions from factors of rows, in all columns."""
        check_is_fitted(self, "model_")
        first = int(self.model_.offsets)
        Z = given_factors(Z, self.model_.V.shape[1] - first)
        return self.model_.predicted(self._everywhere(np.hstack([np.ones((Z.shape[0], first), Z.dtype), Z])))

    def _everywhere(self, U: Array) -> Array:
        """z of rows in all columns, from factors whose first columns are offsets."""
        require_small((U.shape[0], self.model_.V.shape[0]))
        return matmul(U, self.model_.V.T) + U.dtype.type(self.model_.intercept)

    def save(self, folder: str | os.PathLike[str], *, force: bool = False, error_bars: bool = True) -> None:
        """Write the fit to a new folder, which `bifactor.load` and the command line can read.

        Parameters
        ----------
        folder : path
            The folder to create.
        force : bool
            Replace an existing fit.
        error_bars : bool
            Keep the covariances of a posterior, (m + n)(r + 1)(r + 2)/2 numbers, which error bars need.
        """
        check_is_fitted(self, "model_")
        told = {name: value for name, value in self.get_params().items() if isinstance(value, (str, int, float))}
        origin = self.observations_.origin
        card: dict[str, Any] = {"estimator": type(self).__name__, "settings": told}
        if origin is not None:
            card["data"] = {"columns": list(origin.header), "layout": origin.layout}
        replace(self.fit_, card=card).save(folder, force=force, error_bars=error_bars)

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Names of the columns that `transform` returns."""
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
