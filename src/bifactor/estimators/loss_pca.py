"""What principal components under a loss share: all but what an entry means."""

from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from bifactor.arrays import Array
from bifactor.errors import InputError
from bifactor.estimators.convergence import warn_unless_converged
from bifactor.estimators.inputs import given_factors, observations
from bifactor.estimators.watched import CallbackSupportMixin, fit_watched
from bifactor.kernels.blas import matmul
from bifactor.models.components import EFFECTS, fit_components, null_scores
from bifactor.models.fitting import Settings
from bifactor.models.scoring import explained, left_out_scores
from bifactor.models.settings import settings
from bifactor.operators.sparse import require_sound
from bifactor.tables import Observations
from bifactor.tables.matrices import is_triples
from bifactor.validation import is_count

LARGEST = 100_000_000
"""Entries of a sparse matrix, counted with its zeros, that are taken in."""


class LossPCA(CallbackSupportMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Finds few directions, and a score of each row along each, that make the known entries of X likely."""

    def inverse_transform(self, Z: Any) -> Array:
        """What scores of rows predict, in all columns."""
        check_is_fitted(self, "model_")
        Z = given_factors(Z, self.n_components_)
        return self.model_.loss.mean(matmul(Z, self.components_.astype(Z.dtype)) + self.intercept_.astype(Z.dtype))

    def _settings(self, loss: str) -> Settings:
        if not is_count(self.n_components, 1):
            raise InputError(
                f"n_components={self.n_components!r} is not a number of principal components. Pass one ≥ 1."
            )
        names = ("n_components", "alpha", "solver", "max_iter", "tol", "verbose", "random_state")
        return settings(loss=loss, offsets=False, **{name: getattr(self, name) for name in names})

    def _observed(self, X: Any, weights: Any, reset: bool) -> Observations:
        """The known entries. Unlike in completion, what a sparse matrix does not store is 0, and NaN is a hole."""
        if is_triples(X):
            raise InputError("X is a tuple of three vectors, not a table. Pass an array, a frame or a sparse matrix.")
        if sparse.issparse(X):
            if np.prod(X.shape, dtype=float) > LARGEST:
                raise InputError(f"X of {X.shape} has more than {LARGEST} entries, zeros included. Pass fewer columns.")
            require_sound(X, "X")
            X = X.toarray()
        data = observations(self, X, weights, reset)
        if reset and data.values.size == 0:
            raise InputError("No entry of X is known. Pass at least one that is not missing, with a weight > 0.")
        return data

    def _fitted(self, X: Any, data: Observations, chosen: Settings) -> Self:
        m, n = data.shape
        if chosen.n_components is None or chosen.n_components > min(m, n):
            raise InputError(
                f"n_components={self.n_components} is more than min(n_samples={m}, n_features={n}) allows. Pass fewer."
            )
        start = getattr(self, "model_", None) if self.warm_start else None
        model = fit_watched(self, X, data, chosen, start, fit_components)
        V = model.V[:, model.fixed_columns :]
        self.model_, self.result_, self.ridge_path_, self.alpha_ = model, model.result, model.path, model.ridge
        self._lengths = np.linalg.norm(V, axis=0).astype(V.dtype)
        self.components_ = np.divide(V, self._lengths, out=np.zeros_like(V), where=self._lengths > 0).T
        self.intercept_ = model.V[:, EFFECTS] + V.dtype.type(model.intercept)
        self.null_intercept_ = null_scores(data, chosen)
        self.n_components_ = int(self.components_.shape[0])
        self.n_iter_ = model.result.n_iter
        self.deviance_explained_ = self._explained(data, model.scores(data.rows, data.cols))
        warn_unless_converged(model)
        return self

    def _scores(self, data: Observations) -> Array:
        """Of rows, by some of their entries."""
        return self.model_.rows(data)[:, self.model_.fixed_columns :] * self._lengths

    def _left_out(self, data: Observations) -> float:
        """The deviance explained of entries that were each predicted from other four fifths."""
        return self._explained(data, left_out_scores(self.model_, data))

    def _explained(self, data: Observations, z: Array) -> float:
        return explained(self.model_, data, z, self.null_intercept_[data.cols])

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
