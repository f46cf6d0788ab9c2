"""scikit-learn's validation of a table, with errors that name the column and give advice."""

from collections.abc import Iterator
from typing import Any

import narwhals as nw
import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from bifactor.errors import InputError, KindError
from bifactor.validation import counted

TIMES = (nw.Date, nw.Datetime, nw.Duration, nw.Time)
"""Column types that NumPy would convert to numbers, such as nanoseconds."""

SHOWN = 40
"""Letters of a cell that messages show."""


def checked(estimator: BaseEstimator, X: Any, reset: bool, **options: Any) -> Any:
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
        found = counted(len(shape), "dimension")
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
