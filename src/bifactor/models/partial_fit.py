"""Updates of a model: new rows and columns, and rows with more data."""

from dataclasses import replace
from typing import TypeAlias

import numpy as np
from scipy import sparse

from bifactor.data import Observations
from bifactor.models.model import Model
from bifactor.models.side_information import with_features_of

Features: TypeAlias = "sparse.csr_array | None"


def update_model(model: Model, known: Observations, new: Observations) -> tuple[Model, Observations]:
    """The model with new rows and columns, and with updated rows that have more data.

    Rows are computed first, from their entries in existing columns, then new columns from all of their entries. Other
    rows and columns do not change.
    """
    shape = (max(known.shape[0], new.shape[0]), max(known.shape[1], new.shape[1]))
    every = merge_observations(known, new, shape)
    m, n = model.U.shape[0], model.V.shape[0]
    touched = np.union1d(np.unique(new.rows[new.cols < n]), np.arange(m, shape[0]))
    if touched.size:
        place = np.full(shape[0], -1)
        place[touched] = np.arange(touched.size)
        used = (place[every.rows] >= 0) & (every.cols < n)
        some = every.part(used)
        some = replace(some, rows=place[some.rows], shape=(touched.size, n))
        some = with_features_of(some, every, touched, slice(n))
        model = model.with_rows(0, shape[0], some, touched)
    if shape[1] > n:
        some = every.part(every.cols >= n)
        some = replace(some, cols=some.cols - n, shape=(shape[0], shape[1] - n))
        some = with_features_of(some, every, slice(None), slice(n, None))
        model = model.with_rows(1, shape[1], some, np.arange(n, shape[1]))
    return model, every


def merge_observations(known: Observations, new: Observations, shape: tuple[int, int]) -> Observations:
    """All observations; for an entry in both, the new value counts."""
    rows, cols = np.concatenate([known.rows, new.rows]), np.concatenate([known.cols, new.cols])
    keys = rows.astype(np.int64) * shape[1] + cols
    again = np.isin(keys[: known.values.size], keys[known.values.size :])
    stay = np.concatenate([~again, np.ones(new.values.size, bool)])
    weights = None
    if known.weights is not None or new.weights is not None:
        sides = [np.ones(d.values.size) if d.weights is None else d.weights for d in (known, new)]
        weights = np.concatenate(sides)[stay]
    values = np.concatenate([known.values, new.values])
    row_names = known.row_names if new.row_names is None else new.row_names
    column_names = known.column_names if new.column_names is None else new.column_names
    features = (
        _lengthened(known.row_features, new.row_features, shape[0]),
        _lengthened(known.column_features, new.column_features, shape[1]),
    )
    names = row_names, column_names, known.origin
    return Observations(rows[stay], cols[stay], values[stay], shape, weights, *names, *features)


def _lengthened(known: Features, new: Features, rows: int) -> Features:
    """Features of all rows: old rows as before, others from the new data, or else zero."""
    if known is None:
        return new
    parts = [known]
    if new is not None:
        parts.append(new[known.shape[0] : rows])
    missing = rows - sum(part.shape[0] for part in parts)
    parts += [sparse.csr_array((missing, known.shape[1]))] if missing else []
    return sparse.csr_array(sparse.vstack(parts))
