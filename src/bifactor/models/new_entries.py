"""New entries for a fit, in any form in which users have them: observations, files, frames, matrices and tuples."""

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy

from bifactor.arrays import floating, is_complex, to_numpy
from bifactor.arrays.sparse import coordinates
from bifactor.data import Dataset, Names, Observations, read
from bifactor.data.columns import is_frame
from bifactor.data.observations import fill_mask_with_nan, from_matrix, observations_from_names
from bifactor.errors import InputError
from bifactor.models.recommender.weights import later_lines
from bifactor.validation import pluralize, require_finite

if TYPE_CHECKING:
    from bifactor.models.fit import Fit


def read_new_entries(fit: "Fit", data: Any, **columns: Any) -> Observations:
    """New entries; see `Fit.fold_in`. `columns` are those of a file or frame, or other arguments of `data.read`."""
    if isinstance(data, (str, os.PathLike)) or is_frame(data):
        if fit.of_choices:
            return later_lines(data, fit.header, **columns)
        return read(data, hints=fit.header, **columns)
    if any(column is not None for column in columns.values()):
        raise InputError(f"{type(data).__name__} has no named columns. Leave out row, col, value and weight.")
    if isinstance(data, Dataset):
        return data.lines(np.ones(data.shape[0], bool))
    if isinstance(data, tuple) and len(data) in (2, 3):
        return _of_names(*data)
    return _of_matrix(fit, data)


def _of_names(rows: Any, cols: Any, values: Any = None) -> Observations:
    """Entries at pairs of names, of which one may be single; without values for choices."""
    sides = [np.atleast_1d(side) for side in (rows, cols)]
    if all(side.ndim == 1 for side in sides) and any(side.size == 1 for side in sides):
        sides = list(np.broadcast_arrays(*sides))
    y = np.ones(sides[0].shape) if values is None else np.atleast_1d(to_numpy(floating(values, "values")))
    if not sides[0].shape == sides[1].shape == y.shape or y.ndim != 1:
        shapes = ", ".join(str(part.shape) for part in (*sides, y))
        raise InputError(f"Rows, columns and values have shapes {shapes}. Pass one of each for every entry.")
    require_finite(y, "values", "Leave missing entries out.")
    (row_names, i), (column_names, j) = Names.of(sides[0], "row"), Names.of(sides[1], "column")
    return observations_from_names((row_names, i), (column_names, j), y[:0] if values is None else y, None)


def _of_matrix(fit: "Fit", data: Any) -> Observations:
    """One line for each new row, one column for each of the fit; unknown is NaN, or what is not stored."""
    if scipy.sparse.issparse(data):
        table = coordinates(data, "data")
        values = table.data = floating(table.data, "data")
    else:
        values = table = to_numpy(floating(fill_mask_with_nan(data), "data"))
    if table.ndim != 2 or is_complex(values) or np.isinf(values).any():
        raise InputError(
            f"{type(data).__name__} is not a table of finite real numbers. Pass a frame, a file, (rows, cols, values), "
            "or a matrix with NaN for unknown entries."
        )
    if table.shape[1] != len(fit.cols):
        found = f"The matrix has {pluralize(table.shape[1], 'column')}"
        raise InputError(f"{found}, but the fit has {len(fit.cols)}. Pass one for each, in the order of the fit.")
    return replace(from_matrix(table), column_names=fit.cols)
