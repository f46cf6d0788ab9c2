"""What was chosen: clicks, plays and purchases in all forms that users have them in."""

from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from bifactor.estimators.checked import frame_header
from bifactor.estimators.inputs import observations
from bifactor.estimators.long_form import Column
from bifactor.tables import Observations, read
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


def matrix_of(data: Observations) -> sparse.csr_array:
    return sparse.csr_array((data.weights, (data.rows, data.cols)), shape=data.shape)


def lines_of(
    source: Any, row: Column, col: Column, value: Column, weight: Column, hints: tuple[str, ...] | None = None
) -> Observations:
    """Choices, with counts where there is a column of these."""
    if value is None and weight is None:
        data = read(source, row=row, col=col, wide=False, values=False, hints=hints)
        return replace(data, values=np.ones(data.rows.size))
    data = read(source, row=row, col=col, value=weight if value is None else value, weight=weight, wide=False)
    return data if value is not None else replace(data, values=np.ones_like(data.values))


def is_long(X: Any) -> bool:
    """Whether a frame has one line for each choice."""
    header = frame_header(X)
    if header is None:
        return False
    found = usual_columns(tuple(header))
    return len(header) == 2 or (found[0] is not None and found[1] is not None)
