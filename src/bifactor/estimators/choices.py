"""What was chosen: clicks, plays and purchases in all forms that users have them in."""

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from bifactor.estimators.checked import frame_header
from bifactor.estimators.inputs import observations
from bifactor.tables import Observations
from bifactor.tables.layout import usual_columns
from bifactor.tables.matrices import is_triples


def given_choices(estimator: BaseEstimator, X: Any, weights: Any, reset: bool) -> Observations:
    """Entries of a matrix, or pairs or triples that count from 0; of an array what is neither 0 nor NaN."""
    if isinstance(X, tuple) and len(X) == 2:
        X = (*X, np.ones(np.size(X[0])))
    if not is_triples(X) and not sparse.issparse(X) and frame_header(X) is None and np.ndim(X) == 2:
        X = np.asarray(X, float)
        X = sparse.csr_array(np.where(np.isnan(X), 0, X))
    return observations(estimator, X, weights, reset)


def is_long(X: Any) -> bool:
    """Whether a frame has one line for each choice."""
    header = frame_header(X)
    if header is None:
        return False
    found = usual_columns(tuple(header))
    return len(header) == 2 or (found[0] is not None and found[1] is not None)
