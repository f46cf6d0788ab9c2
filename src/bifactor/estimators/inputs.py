"""What scikit-learn's users pass, checked by its rules, as observations."""

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from bifactor.arrays import Array, floating, is_complex
from bifactor.errors import InputError
from bifactor.estimators.checked import checked, frame_header
from bifactor.operators.sparse import require_sound
from bifactor.tables import Observations
from bifactor.tables.headers import usual_columns
from bifactor.tables.matrices import from_matrix, from_triples, is_triples
from bifactor.validation import require_finite
from bifactor.words import counted

LARGEST = 100_000_000
"""Entries of a completed matrix that are made at once."""

LONG = 6
"""Columns up to which a frame may be a long one."""


def note_columns(estimator: BaseEstimator, count: int) -> None:
    """What scikit-learn's validation notes, for data that it does not know: a number of columns without names."""
    estimator.n_features_in_ = count
    vars(estimator).pop("feature_names_in_", None)


def observations(estimator: BaseEstimator, X: Any, weights: Any = None, reset: bool = True) -> Observations:
    """The known entries of X: not NaN in a table, stored in a sparse matrix, listed in triples.

    With `reset` the number of columns, and their names, are noted on the estimator; else they are compared.
    """
    if is_triples(X):
        data = from_triples(X, weights, None if reset else int(estimator.n_features_in_))
        if reset:
            note_columns(estimator, data.shape[1])
        return data
    require_wide(X)
    if sparse.issparse(X):
        require_sound(X, "X")  # scikit-learn converts it without a look
    return from_matrix(checked(estimator, unmasked(X), reset, accept_sparse=("csr", "csc", "coo")), weights)


def unmasked(X: Any) -> Any:
    """A masked array with NaN for what is masked; anything else as it is."""
    return np.ma.filled(X.astype(np.result_type(X.dtype, np.float32)), np.nan) if np.ma.isMaskedArray(X) else X


def given_factors(Z: Any, width: int) -> Array:
    """Factors of rows, as `transform` gives them: so many columns of real numbers."""
    Z = floating(Z, "Z")
    if Z.ndim != 2 or Z.shape[1] != width or is_complex(Z):
        found = f"Z has shape {Z.shape} and dtype {Z.dtype}"
        raise InputError(f"{found}, but transform gives {counted(width, 'column')} of real numbers. Pass what it gave.")
    require_finite(Z, "Z", "Pass what transform gave.")
    return Z


def require_wide(X: Any) -> None:
    """Raise `InputError` where X is a frame with one line per entry, which as a table would make no sense."""
    header = frame_header(X)
    if header is None or len(header) > LONG:
        return
    found = usual_columns(tuple(header))
    if None not in found:
        names = ", ".join(header[k] for k in found if k is not None)
        raise InputError(f"X has one line per entry: {names}. Use fit_long, predict_long, … for such frames.")


def require_small(shape: tuple[int, int]) -> None:
    """Raise `InputError` where a matrix is too large to be made at once."""
    if shape[0] * shape[1] > LARGEST:
        raise InputError(
            f"The completed matrix of {shape[0]}×{shape[1]} has more than {LARGEST} entries. "
            "Use predict(rows, cols) for some of them, or transform and inverse_transform for some rows."
        )
