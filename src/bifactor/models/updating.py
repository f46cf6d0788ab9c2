"""More data for a model: new rows and columns, and rows of which more is known."""

from dataclasses import replace

import numpy as np
from scipy import sparse

from bifactor.arrays import Array
from bifactor.models.model import Model
from bifactor.tables import Observations


def updated(model: Model, known: Observations, new: Observations) -> tuple[Model, Observations]:
    """The model with rows and columns that are new, and with the rows anew for which there is more data.

    Rows are found first, by their entries in columns that were there, then new columns by all of theirs. Other rows and
    columns stay as they are.
    """
    shape = (max(known.shape[0], new.shape[0]), max(known.shape[1], new.shape[1]))
    every = merged(known, new, shape)
    m, n = model.U.shape[0], model.V.shape[0]
    touched = np.union1d(np.unique(new.rows[new.cols < n]), np.arange(m, shape[0]))
    if touched.size:
        place = np.full(shape[0], -1)
        place[touched] = np.arange(touched.size)
        used = (place[every.rows] >= 0) & (every.cols < n)
        some = every.part(used)
        some = replace(
            some, rows=place[some.rows], shape=(touched.size, n), row_features=_lines(every.row_features, touched)
        )
        model = model.with_found(0, shape[0], some, touched)
    if shape[1] > n:
        some = every.part(every.cols >= n)
        added = np.arange(n, shape[1])
        some = replace(
            some, cols=some.cols - n, shape=(shape[0], added.size), column_features=_lines(every.column_features, added)
        )
        model = model.with_found(1, shape[1], some, added)
    return model, every


def merged(known: Observations, new: Observations, shape: tuple[int, int]) -> Observations:
    """All of them; of an entry that is in both, the new value counts."""
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
    features = (first if second is None else second for first, second in zip(known.features, new.features, strict=True))
    names = row_names, column_names, known.origin
    return Observations(rows[stay], cols[stay], values[stay], shape, weights, *names, *features)


def _lines(features: sparse.csr_array | None, places: Array) -> sparse.csr_array | None:
    """Of some rows; None where those of any are not known."""
    return None if features is None or places.max() >= features.shape[0] else features[places]
