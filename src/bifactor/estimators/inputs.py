"""Input of scikit-learn's users, validated by its rules and converted to observations."""

from typing import Any

from scipy import sparse
from sklearn.base import BaseEstimator

from bifactor.arrays import Array, floating, is_complex
from bifactor.arrays.sparse import require_sound
from bifactor.errors import InputError
from bifactor.estimators.checked import checked, frame_header
from bifactor.tables import Observations
from bifactor.tables.headers import usual_columns
from bifactor.tables.matrices import from_matrix, from_triples, is_triples, unmasked
from bifactor.validation import counted, require_finite

LARGEST = 100_000_000
"""Largest number of entries of a completed matrix in memory."""

LONG = 6
"""Largest number of columns of a frame with one line per entry."""


def note_columns(estimator: BaseEstimator, count: int) -> None:
    """Set the attributes of scikit-learn's validation for other data: a number of columns without names."""
    estimator.n_features_in_ = count
    vars(estimator).pop("feature_names_in_", None)


def observations(estimator: BaseEstimator, X: Any, weights: Any = None, reset: bool = True) -> Observations:
    """The known entries of X: not NaN in a table, stored in a sparse matrix, listed in triples.

    With `reset`, the number of columns and their names are stored on the estimator; otherwise they are compared.
    """
    if is_triples(X):
        data = from_triples(X, weights, None if reset else int(estimator.n_features_in_))
        if reset:
            note_columns(estimator, data.shape[1])
        return data
    require_wide(X)
    if sparse.issparse(X):
        require_sound(X, "X")  # scikit-learn converts it without a check
    return from_matrix(checked(estimator, unmasked(X), reset, accept_sparse=("csr", "csc", "coo")), weights)


def given_factors(Z: Any, width: int) -> Array:
    """Factors of rows as returned by `transform`: `width` columns of real numbers."""
    Z = floating(Z, "Z")
    if Z.ndim != 2 or Z.shape[1] != width or is_complex(Z):
        found = f"Z has shape {Z.shape} and dtype {Z.dtype}"
        raise InputError(f"{found}, but transform returns {counted(width, 'column')} of real numbers. Pass its result.")
    require_finite(Z, "Z", "Pass the result of transform.")
    return Z


def require_wide(X: Any) -> None:
    """Raise `InputError` if X is a frame with one line per entry, which makes no sense as a table."""
    header = frame_header(X)
    if header is None or len(header) > LONG:
        return
    found = usual_columns(tuple(header))
    if None not in found:
        names = ", ".join(header[k] for k in found if k is not None)
        raise InputError(f"X has one line per entry: {names}. Use fit_long, predict_long, etc. for such frames.")


def require_small(shape: tuple[int, int]) -> None:
    """Raise `InputError` if a dense matrix of this shape is too large."""
    if shape[0] * shape[1] > LARGEST:
        raise InputError(
            f"The completed {shape[0]}×{shape[1]} matrix has more than {LARGEST} entries. "
            "Use predict(rows, cols) for some of them, or transform and inverse_transform for some rows."
        )
