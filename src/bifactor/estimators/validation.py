"""Input of scikit-learn's users, validated by its rules and converted to observations, with errors that give advice."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from bifactor.arrays import Array, floating, is_complex
from bifactor.arrays.sparse import require_sound
from bifactor.data import BlockDataset, BlockStore, Dataset, Observations
from bifactor.data.layout import usual_columns
from bifactor.data.observations import fill_mask_with_nan, from_matrix, from_triples, is_triples
from bifactor.data.store.manifest import MANIFEST
from bifactor.errors import InputError, KindError
from bifactor.validation import pluralize, require_finite

TIMES = (nw.Date, nw.Datetime, nw.Duration, nw.Time)
"""Column types that NumPy would convert to numbers, such as nanoseconds."""

SHOWN = 40
"""Letters of a cell that messages show."""


def validate_table(estimator: BaseEstimator, X: Any, reset: bool, **options: Any) -> Any:
    """X as floating-point numbers, with NaN for missing entries.

    The columns are stored on the estimator, or compared with the stored ones. `options` are those of scikit-learn's
    `validate_data`.
    """
    frame = _frame(X)
    _require_no_times(X, frame)
    X = X if frame is None else nw.to_native(frame)
    kinds = (np.float64, np.float32)
    try:
        return validate_data(estimator, X, reset=reset, dtype=kinds, ensure_all_finite="allow-nan", **options)
    except InputError:
        raise
    except (ValueError, TypeError, OverflowError) as error:
        raise _in_words(estimator, X, frame, error) from None


def table_error(estimator: BaseEstimator, X: Any, error: Exception) -> InputError:
    """An error of scikit-learn about a frame, in our words."""
    return _in_words(estimator, X, _frame(X), error)


def frame_header(X: Any) -> list[str] | None:
    """Column names of a frame of any library; None for anything else."""
    try:
        frame = nw.from_native(X, pass_through=True)
        known = isinstance(frame, (nw.DataFrame, nw.LazyFrame))
        return [str(name) for name in frame.collect_schema().names()] if known else None
    except nw.exceptions.DuplicateError:
        raise InputError("Some columns of X have the same name. Rename them.") from None


def _frame(X: Any) -> "nw.DataFrame[Any] | None":
    """X as a frame, collected if it is lazy; None if X is anything else."""
    if frame_header(X) is None:
        return None
    frame = nw.from_native(X)
    return frame.collect() if isinstance(frame, nw.LazyFrame) else frame


def _require_no_times(X: Any, frame: "nw.DataFrame[Any] | None") -> None:
    if frame is not None:
        found = next((name for name, kind in frame.schema.items() if kind in TIMES), None)
        where = None if found is None else f"Column {found!r} of X"
    else:
        kind = getattr(getattr(X, "dtype", None), "kind", "")
        where = "X" if kind in ("m", "M") else None
    if where is not None:
        raise InputError(f"{where} contains dates or times, not numbers. Leave it out, or pass numbers such as days.")


def _in_words(estimator: BaseEstimator, X: Any, frame: Any, error: Exception) -> InputError:
    """An error of scikit-learn about X; its own words stay where its estimator checks look for them."""
    said, name = str(error), type(estimator).__name__
    if said.startswith("The feature names should match"):
        return InputError(f"{said}Pass the columns of the fit, in the same order.")
    if "is expecting" in said:
        return InputError(f"{said} Pass the columns of the fit.")
    if said.startswith("Feature names are only supported"):
        return InputError("Some column names of X are not strings. Use X.columns = X.columns.astype(str).")
    if sparse.issparse(X) and 0 not in X.shape:
        return _of_sparse(X.tocoo(), name, said)
    if X is None or type(X) in (str, bytes, dict):
        files = "; for files, use fit_long" if hasattr(estimator, "fit_long") else ""
        return InputError(f"X is {_short(X)}, not a table. Pass an array or a frame{files}.")
    shape = X.shape if sparse.issparse(X) else _shape(X)
    if shape is None:
        return InputError("The rows of X have different lengths. Pass a table of numbers.")
    if len(shape) != 2:
        found = pluralize(len(shape), "dimension")
        return InputError(f"X has {found}, but a table has 2. Reshape your data; a single row is X.reshape(1, -1).")
    if 0 in shape:
        what = f"{shape[0]} sample(s) and {shape[1]} feature(s) (shape={shape})"
        return InputError(f"X has {what} while a minimum of 1 is required. Pass at least one row and one column.")
    return _of_cells(X, frame, said, error)


def _of_sparse(X: Any, name: str, said: str) -> InputError:
    if "dense data is required" in said:
        fact = f"X is a sparse matrix, but {name} needs a table with NaN for missing entries."
        return InputError(f"{fact} Use X.toarray().")
    if X.dtype.kind == "c":
        return InputError("Complex data not supported: X is a sparse matrix of complex numbers. Pass real ones.")
    if X.dtype.kind == "f" and not np.all(np.isfinite(X.data)):
        return InputError("X contains infinity. Leave out missing entries.")
    return InputError(f"X is a sparse matrix of {X.dtype}: {said.splitlines()[0]} Pass numbers.")


def _of_cells(X: Any, frame: Any, said: str, error: Exception) -> InputError:
    for column, cells in _columns(X, frame):
        for k, cell in enumerate(cells):
            fault = _fault(cell)
            if fault == "complex":
                advice = "Pass real and imaginary parts as separate columns."
                return InputError(f"Complex data not supported: column {column} of X contains {_short(cell)}. {advice}")
            if fault == "infinite":
                where = f"row {k}, column {column}"
                return InputError(f"X contains infinity or a value too large in {where}. Pass NaN for missing entries.")
            if fault is not None:
                kind = KindError if isinstance(error, TypeError) else InputError
                rest = f" ({said})" if kind is KindError else ""
                what = f"Column {column} of X contains {_short(cell)}, which is not a number{rest}."
                return kind(f"{what} Leave such columns out, or encode them as numbers.")
    return InputError(f"{said.splitlines()[0]} Pass a table of numbers, with NaN for missing entries.")


def _columns(X: Any, frame: Any) -> Iterator[tuple[str, list[Any]]]:
    """Name and cells of each column that may contain something other than numbers."""
    if frame is not None:
        for name in frame.columns:
            yield repr(name), frame[name].to_list()
    else:
        table = np.asarray(X, dtype=object)
        for j in range(table.shape[1]):
            yield str(j), table[:, j].tolist()


def _fault(cell: Any) -> str | None:
    """The kind of error in a cell, if any."""
    if cell is None or type(cell).__name__ == "NAType":
        return None
    if isinstance(cell, (complex, np.complexfloating)):
        return "complex"
    try:
        return "infinite" if np.isinf(float(cell)) else None
    except (TypeError, ValueError):
        return "strange"
    except OverflowError:
        return "infinite"


def _shape(X: Any) -> tuple[int, ...] | None:
    """Shape of X; None if its rows have different lengths."""
    try:
        return tuple(np.shape(X))
    except ValueError:
        return None


def _short(cell: Any) -> str:
    text = repr(cell)
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"


# Input of scikit-learn's users, validated by its rules and converted to observations.

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
    return from_matrix(
        validate_table(estimator, fill_mask_with_nan(X), reset, accept_sparse=("csr", "csc", "coo")), weights
    )


def validate_factors(Z: Any, width: int) -> Array:
    """Factors of rows as returned by `transform`: `width` columns of real numbers."""
    Z = floating(Z, "Z")
    if Z.ndim != 2 or Z.shape[1] != width or is_complex(Z):
        found = f"Z has shape {Z.shape} and dtype {Z.dtype}"
        raise InputError(
            f"{found}, but transform returns {pluralize(width, 'column')} of real numbers. Pass its result."
        )
    require_finite(Z, "Z", "Pass the result of transform.")
    return Z


def require_wide(X: Any) -> None:
    """Raise `InputError` if X has one line per entry, which makes no sense as a table."""
    if isinstance(X, Dataset):
        raise InputError("X holds observations, one per entry. Use fit_long, partial_fit_long, etc. for them.")
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


# Choices such as clicks, plays and purchases, in all forms in which users pass them.


def validate_choices(estimator: BaseEstimator, X: Any, weights: Any, reset: bool) -> Observations:
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


def store_or_none(X: Any, long: bool = False) -> BlockDataset | None:
    """X as a dataset in blocks, or the store in a folder with this name; None if X is anything else.

    With `long`, None is also returned for other folders.
    """
    if isinstance(X, BlockDataset):
        return X
    if not isinstance(X, (str, os.PathLike)) or not Path(X).is_dir():
        return None
    return BlockStore.open(X) if not long or (Path(X) / MANIFEST).is_file() else None


def require_in_memory(data: Dataset) -> Observations:
    """Observations in memory; raises `InputError` if they are in blocks."""
    if data.in_memory:
        return data.lines(np.ones(data.shape[0], bool))
    raise InputError(
        f"The data of this fit, {data!r}, are in blocks. Use predict, recommend or transform, or fit in memory."
    )
