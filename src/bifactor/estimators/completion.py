"""Base class of estimators that complete matrices."""

import warnings
from abc import abstractmethod
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from bifactor.arrays import Array
from bifactor.errors import InputError
from bifactor.estimators.factorised import Factorised
from bifactor.estimators.inputs import observations, require_small
from bifactor.estimators.stores import given_store, held
from bifactor.models.model import Model
from bifactor.models.scoring import explained, left_out_scores
from bifactor.tables import Observations
from bifactor.tables.matrices import is_triples


def warn_of_clicks(data: Observations) -> None:
    """Warn if all known entries are 1 and most are unknown: these look like clicks, which completion cannot rank."""
    if 1 < data.values.size < 0.5 * data.shape[0] * data.shape[1] and np.all(data.values == 1):
        warnings.warn(
            f"All {data.values.size:,} known entries are 1, and so will be every prediction. For clicks, plays and "
            "purchases, use bifactor.Recommender.",
            UserWarning,
            stacklevel=5,
        )


class Completed:
    """`fit_transform`, in a class of its own so that `set_output` does not name its columns as those of `transform`."""

    def fit_transform(self: Any, X: Any, y: Any = None, sample_weight: Any = None) -> Array:
        """Fit, and return the completed matrix as an array: known entries as given, predictions elsewhere."""
        settings = self._settings()
        data = observations(self, X, sample_weight)
        require_small(data.shape)
        return self._fitted(settings, X, data).complete()


class Completion(Completed, Factorised):
    """Fits a matrix to some of its entries, and predicts the others."""

    def _note(self, model: Model, noise: float | None) -> None:
        super()._note(model, noise)
        self.offset_alpha_ = model.offset_ridge

    @abstractmethod
    def _decoded(self, values: Array) -> Array:
        """Convert values of the loss to those that `predict` returns."""

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit to the known entries of X.

        Parameters
        ----------
        X : array, frame, sparse matrix, tuple, or BlockStore
            An array or frame with NaN for missing entries; a sparse matrix, whose stored entries are known, zeros
            included; a masked array; or triples (rows, cols, values) numbered from 0. For a frame or file with one line
            per entry, use `fit_long`. Data that do not fit into memory are passed as a `bifactor.tables.BlockStore`,
            or its folder; they are read block by block on `executor`.
        y : ignored
        sample_weight : array, optional
            One weight per row, or one per entry; an entry with weight 0 counts as missing.
        """
        settings, store = self._settings(), given_store(X)
        if store is not None:
            return self._fitted_store(settings, store, sample_weight)
        return self._fitted(settings, X, observations(self, X, sample_weight))

    def complete(self) -> Array:
        """The completed matrix of the fit; an entry that was measured twice has the last value."""
        check_is_fitted(self, "model_")
        data = held(self.observations_)
        full = self.model_.predicted(self._everywhere(self.model_.U))
        full[data.rows, data.cols] = self._decoded(data.values)
        return full

    def recommend(
        self,
        rows: Any = None,
        n: int = 10,
        *,
        filter_seen: bool = True,
        items: Any = None,
        by: str = "mean",
        level: float = 0.9,
        random_state: Any = None,
    ) -> tuple[Array, Array]:
        """For each row, the n columns with the largest predictions, best first, and these predictions.

        With `by="lower"`, columns are ranked by a lower bound that holds with probability `level`; with `by="draw"`, by
        one draw from the posterior, with the seed `random_state`. See `bifactor.models.Fit.recommend`. Rows and columns
        are given by number, or by name after `fit_long`.
        """
        check_is_fitted(self, "model_")
        asked = {"by": by, "level": level, "random_state": random_state}
        return self.fit_.recommend(rows, n, filter_seen=filter_seen, items=items, **asked)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Fraction of deviance explained, D²: R² for squared errors. 1 is perfect, 0 is as good as a constant.

        Triples are predicted by the fit. A table contains new rows: a fifth of its entries at a time is predicted by
        factors that were found from the other four fifths.
        """
        check_is_fitted(self, "model_")
        data = self._encoded(observations(self, X, sample_weight, reset=False), reset=False)
        if data.values.size == 0:
            raise InputError("No entry of X is known, so the score is undefined. Pass at least one known entry.")
        if is_triples(X):
            return explained(self.model_, data, self.model_.scores(data.rows, data.cols))
        return explained(self.model_, data, left_out_scores(self.model_, data))
