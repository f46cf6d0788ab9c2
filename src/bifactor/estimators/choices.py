"""Choices such as clicks, plays and purchases, in all forms in which users pass them."""

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from bifactor.errors import InputError
from bifactor.estimators.checked import frame_header
from bifactor.estimators.inputs import observations
from bifactor.models.chosen import ItemToItem
from bifactor.models.model import Model
from bifactor.tables import Observations
from bifactor.tables.headers import usual_columns
from bifactor.tables.matrices import is_triples
from bifactor.validation import is_at_least_zero, is_count


class ClickSettings:
    """Settings that a model of clicks was fitted with."""

    model_: Model

    @property
    def unobserved_(self) -> float:
        assert self.model_.clicks is not None
        return self.model_.clicks.unobserved

    @property
    def item_share_(self) -> float:
        return 0.0 if self._items is None else self._items.share

    @property
    def item_alpha_(self) -> float:
        return 0.0 if self._items is None else self._items.alpha

    @property
    def _items(self) -> ItemToItem | None:
        assert self.model_.clicks is not None
        return self.model_.clicks.items

    @property
    def trials_(self) -> Any:
        assert self.model_.clicks is not None
        return self.model_.clicks.tried


def given_choices(estimator: BaseEstimator, X: Any, weights: Any, reset: bool) -> Observations:
    """Entries of a matrix, or pairs or triples numbered from 0; for an array, entries that are neither 0 nor NaN."""
    if isinstance(X, tuple) and len(X) == 2:
        X = (*X, np.ones(np.size(X[0])))
    if not is_triples(X) and not sparse.issparse(X) and frame_header(X) is None and np.ndim(X) == 2:
        X = np.asarray(X, float)
        X = sparse.csr_array(np.where(np.isnan(X), 0, X))
    return observations(estimator, X, weights, reset)


def is_long(X: Any) -> bool:
    """Whether X is a frame with one line for each choice."""
    header = frame_header(X)
    if header is None:
        return False
    found = usual_columns(tuple(header))
    return len(header) == 2 or (found[0] is not None and found[1] is not None)


def require_settings(n_components: Any, unobserved: Any, alpha: Any, item_share: Any, item_alpha: Any) -> None:
    """Raise `InputError` unless these are valid settings of a `Recommender`."""
    if unobserved != "auto" and not (is_at_least_zero(unobserved) and float(unobserved) > 0):
        raise InputError(f"unobserved={unobserved!r} is not a number above 0. Pass such a number, or 'auto'.")
    if alpha is None:
        raise InputError("alpha=None is for numbers with a posterior. Pass a number ≥ 0, or 'auto'.")
    if item_share != "auto" and not (is_at_least_zero(item_share) and float(item_share) < 1):
        raise InputError(f"item_share={item_share!r} is not a number ≥ 0 and < 1. Pass such a number, or 'auto'.")
    if item_alpha != "auto" and not (is_at_least_zero(item_alpha) and float(item_alpha) > 0):
        raise InputError(f"item_alpha={item_alpha!r} is not a number above 0. Pass such a number, or 'auto'.")
    if not is_count(n_components, 1):
        raise InputError(f"n_components={n_components!r} is not an integer ≥ 1. Pass the number of components.")
