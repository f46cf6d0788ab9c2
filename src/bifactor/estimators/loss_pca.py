"""Base class of principal components under a loss."""

from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from bifactor.arrays import Array
from bifactor.arrays.sparse import require_sound
from bifactor.errors import InputError
from bifactor.estimators.checked import checked
from bifactor.estimators.convergence import warn_unless_converged
from bifactor.estimators.inputs import given_factors, require_wide
from bifactor.estimators.shown import Shown
from bifactor.estimators.watched import CallbackSupportMixin, fit_watched
from bifactor.kernels.blas import matmul
from bifactor.models.components import EFFECTS, deviances, fit_components, left_out, null_effects, rows_of
from bifactor.models.fitting import Settings
from bifactor.models.settings import settings
from bifactor.operators.full_table import Table
from bifactor.tables.matrices import is_triples
from bifactor.validation import is_count


class LossPCA(Shown, CallbackSupportMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Finds a few directions, and the scores of each row along them, that make the known entries of X likely."""

    def inverse_transform(self, Z: Any) -> Array:
        """Predictions from scores of rows, in all columns."""
        check_is_fitted(self, "model_")
        Z = given_factors(Z, self.n_components_)
        return self.model_.loss.mean(matmul(Z, self.components_.astype(Z.dtype)) + self.intercept_.astype(Z.dtype))

    def _settings(self, loss: Any) -> Settings:
        if self.n_components != "auto" and not is_count(self.n_components, 1):
            raise InputError(
                f"n_components={self.n_components!r} is not an integer ≥ 1. Pass the number of components, or 'auto'."
            )
        names = ("n_components", "alpha", "solver", "max_iter", "tol", "verbose", "random_state")
        chosen = settings(loss=loss, offsets=False, **{name: getattr(self, name) for name in names})
        if chosen.n_components is None and chosen.alpha == 0:
            raise InputError("n_components='auto' needs a ridge, but alpha=0. Pass alpha='auto'.")
        return chosen

    def _entries(self, X: Any, reset: bool) -> Any:
        """X as an array with NaN for missing entries, or as a sparse array.

        Unlike in completion, entries that a sparse matrix does not store are 0.
        """
        if is_triples(X):
            raise InputError("X is a tuple of three vectors, not a table. Pass an array, a frame or a sparse matrix.")
        require_wide(X)
        if sparse.issparse(X):
            require_sound(X, "X")
        if np.ma.isMaskedArray(X):
            X = np.ma.filled(X.astype(np.result_type(X.dtype, np.float32)), np.nan)
        X = checked(self, X, reset, accept_sparse="csr")
        if reset and not sparse.issparse(X) and np.isnan(X).all():
            raise InputError("No entry of X is known. Pass at least one known entry.")
        return X

    def _fitted(self, X: Any, table: Table, chosen: Settings) -> Self:
        m, n = table.shape
        if chosen.n_components is not None and chosen.n_components > min(m, n):
            raise InputError(
                f"n_components={self.n_components} is more than min(n_samples={m}, n_features={n}) allows. Pass fewer."
            )
        start = getattr(self, "model_", None) if self.warm_start else None
        model = fit_watched(self, X, table, chosen, start, fit_components)
        V = model.V[:, model.fixed_columns :]
        self.model_, self.result_, self.ridge_path_, self.alpha_ = model, model.result, model.path, model.ridge
        self._lengths = np.linalg.norm(V, axis=0).astype(V.dtype)
        self.components_ = np.divide(V, self._lengths, out=np.zeros_like(V), where=self._lengths > 0).T
        self.intercept_ = model.V[:, EFFECTS] + V.dtype.type(model.intercept)
        self.null_intercept_ = null_effects(table)
        self.n_components_ = int(self.components_.shape[0])
        self.n_iter_ = model.result.n_iter
        found, self.explained_deviance_ratio_ = deviances(table, model, self.null_intercept_)
        self.deviance_explained_ = found.explained
        warn_unless_converged(model)
        return self

    def _scores(self, table: Table) -> Array:
        """Scores of rows, from their known entries."""
        return rows_of(table, self.model_) * self._lengths

    def _left_out(self, table: Table) -> float:
        """Deviance explained; a fifth of the entries at a time is predicted from the rest."""
        return left_out(table, self.model_, self.null_intercept_).explained

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
