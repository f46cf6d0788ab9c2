"""Columns of data frames of any library, and of Python objects, as cells, and back with their holes filled in."""

import datetime as dt
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import narwhals as nw
import numpy as np

from bifactor.arrays import Array
from bifactor.data.column_types import DAY, INTEGERS, TIMES, Declared, is_nothing
from bifactor.errors import InputError

NUMBERS = int, float, Decimal, np.number

FIRST = dt.datetime(1970, 1, 1)
MICROSECOND = dt.timedelta(microseconds=1)


def object_cells(given: list[Any], name: Any) -> Array:
    """Numbers with NaN, times in microseconds since 1970, or else text and the like with None for missing cells."""
    if set(map(type, given)) <= {int, float, type(None)}:
        return np.array(given, np.float64)
    cells = known_or_none(given)
    like = _type_of(cells)
    if isinstance(like, TIMES):
        return np.array([np.nan if cell is None else _microseconds(cell, like, name) for cell in cells.tolist()])
    if like is not None:
        return np.array([np.nan if cell is None else float(cell) for cell in cells.tolist()])
    strange = next((cell for cell in cells.tolist() if not isinstance(cell, (str, int, float, type(None)))), None)
    if strange is not None:
        what = f"Column {name!r} of X holds {type(strange).__name__}, which is neither a number nor text."
        raise InputError(f"{what} {advice('Convert it', name)}")
    return cells


def like_of(given: list[Any]) -> Any:
    """A number or a time of the class that all objects have; None for other objects, and if all are missing."""
    return _type_of(known_or_none(given))


def as_objects(values: Array, like: Any) -> Array:
    """Values of cells as objects of the class of `like`, with as many decimals."""
    found = np.empty(values.size, object)
    if isinstance(like, TIMES):
        found[:] = [_time(round(value), like) for value in values.tolist()]
    elif isinstance(like, Decimal):
        places = max(-int(like.as_tuple().exponent), 0)
        found[:] = [Decimal(f"{value:.{places}f}") for value in values.tolist()]
    elif isinstance(like, INTEGERS):
        found[:] = [round(value) for value in values.tolist()]
    else:
        found[:] = values.tolist()
    return found


def advice(first: str, name: Any) -> str:
    """Advice for columns that cannot be filled in."""
    return f"{first}, or keep it as it is: columns={{{name!r}: 'keep'}}, in the shell --keep {name}."


def known_or_none(cells: list[Any]) -> Array:
    """Cells with None for all that are missing, and booleans of Python."""
    found = np.empty(len(cells), object)
    plain = set(map(type, cells)) <= {str, bool, type(None)}
    found[:] = cells if plain else [_known(cell) for cell in cells]
    return found


def _known(cell: Any) -> Any:
    if isinstance(cell, np.bool_):
        return bool(cell)
    return None if is_nothing(cell) else cell


def _type_of(cells: Array) -> Any:
    """What all cells are, if they are numbers or times; of decimals, the one with the most places."""
    known = [cell for cell in cells.tolist() if cell is not None]
    kinds = set(map(type, known))
    if not kinds or bool in kinds:
        return None
    if all(issubclass(kind, INTEGERS) for kind in kinds) or (len(kinds) == 1 and isinstance(known[0], TIMES)):
        return known[0]
    if kinds == {Decimal}:
        return min(known, key=lambda cell: int(cell.as_tuple().exponent) if cell.is_finite() else 0)
    return 0.0 if all(issubclass(kind, NUMBERS) for kind in kinds) else None


def _microseconds(cell: Any, like: Any, name: Any) -> float:
    if isinstance(cell, np.generic):
        return float(cell.astype("m8[us]" if isinstance(cell, np.timedelta64) else "M8[us]").astype(np.int64))
    if isinstance(cell, dt.timedelta):
        return float(cell // MICROSECOND)
    if not isinstance(cell, dt.datetime):
        return float((cell - FIRST.date()).days * DAY)
    if (cell.tzinfo is None) != (like.tzinfo is None):
        raise InputError(f"Column {name!r} of X holds times with zones and times without. Convert one to the other.")
    return float((cell - FIRST.replace(tzinfo=None if cell.tzinfo is None else dt.UTC)) // MICROSECOND)


def _time(value: int, like: Any) -> Any:
    if isinstance(like, np.generic):
        return np.int64(value).astype("m8[us]" if isinstance(like, np.timedelta64) else "M8[us]").astype(like.dtype)
    span, kind = dt.timedelta(microseconds=value), type(like)
    if isinstance(like, dt.timedelta):
        return _of(kind, dt.timedelta, span)
    if not isinstance(like, dt.datetime):
        return FIRST.date() + span
    if like.tzinfo is None:
        return _of(kind, dt.datetime, FIRST + span)
    return _of(kind, dt.datetime, (FIRST.replace(tzinfo=dt.UTC) + span).astimezone(like.tzinfo))


def _of(kind: Any, plain: type, time: Any) -> Any:
    """A time of Python, or of a subclass, such as those of pandas."""
    return time if kind is plain else kind(time)


STRANGE = nw.List, nw.Struct, nw.Array, nw.Binary, nw.Time, nw.Int128, nw.UInt128
"""Types of columns that raise an error, unless the columns are kept."""

COARSE = {"s": 1_000_000, "ms": 1_000}
"""Units of time in microseconds."""


def cells_of(series: Any, name: Any) -> Array:
    """Numbers with NaN, times in microseconds since 1970, or else objects with None."""
    kind = series.dtype
    if kind in (nw.Date, nw.Datetime):
        told = series.cast(nw.Datetime("us")) if kind == nw.Date else series
        return _floats(told.dt.timestamp("us"))
    if kind == nw.Duration:
        return _floats(series.dt.total_microseconds())
    if kind in STRANGE:
        raise InputError(f"Column {name!r} of X holds {kind}. {advice('Leave it out', name)}")
    if kind != nw.Boolean and kind.is_numeric():
        return _floats(series)
    if kind == nw.Object or kind == nw.Unknown:
        return object_cells(series.to_list(), name)
    return known_or_none(series.to_list())


def declared(series: Any) -> Declared:
    """What the type of a column declares."""
    if series.dtype in (nw.Object, nw.Unknown):
        return Declared(like=like_of(series.to_list()))
    if series.dtype == nw.Decimal:
        return Declared(like=like_of(series.drop_nulls().head(1).to_list()))  # all have as many places
    if series.dtype not in (nw.Categorical, nw.Enum):
        return Declared(like=_like(series.dtype))
    native = series.to_native()
    levels, ordered = None, False
    if series.implementation.is_pyarrow():
        levels, ordered = _dictionary(native)[1].tolist(), native.type.ordered
    elif series.dtype == nw.Enum or hasattr(getattr(native.dtype, "categories", None), "tolist"):
        levels, ordered = list(native.dtype.categories), getattr(native.dtype, "ordered", False)
    found = sorted(set(series.drop_nulls().to_list())) if levels is None else levels
    return Declared([level for level in found if level is not None], bool(ordered))


def _like(kind: Any) -> Any:
    """A number or a time as in columns of this type."""
    if kind == nw.Datetime:
        return dt.datetime(1970, 1, 1, tzinfo=None if kind.time_zone is None else ZoneInfo(kind.time_zone))
    known = {nw.Date: dt.date(1970, 1, 1), nw.Duration: dt.timedelta()}
    return next((like for time, like in known.items() if kind == time), 0 if kind.is_integer() else None)


def fill_column(series: Any, holes: Array, values: Array, like: Any = None) -> Any:
    """The column with its holes filled in, of the same type; objects are like the known ones, or like that."""
    kind, places = series.dtype, np.flatnonzero(holes)
    if places.size == 0:
        return series
    if kind.is_integer():
        values = _whole(values, series)
    elif kind in (nw.Date, nw.Datetime, nw.Duration):
        return _with_times(series, holes, values.astype(np.float64))
    elif kind.is_numeric():
        values = values.astype(np.float64)
    elif kind in (nw.Object, nw.Unknown) or values.dtype != object:
        own = like_of(series.to_list())
        values = as_objects(values, like if own is None else own)
    if series.implementation.is_pandas_like():
        native = series.to_native().copy()
        if kind == nw.Categorical and hasattr(native.dtype, "pyarrow_dtype"):  # pandas 2 cannot write into these
            words = _with_words(native.array.__arrow_array__(), places, values, _further(series, values))
            native = type(native)(type(native.array)(words), native.index, name=native.name)
            return nw.from_native(native, series_only=True)
        if hasattr(native.dtype, "categories"):
            native = native.cat.add_categories(_further(series, values))
        native.iloc[places] = values.tolist()
        return nw.from_native(native, series_only=True)
    if series.implementation.is_pyarrow() and kind in (nw.Categorical, nw.Enum):
        native = _with_words(series.to_native(), places, values, _further(series, values))
        return nw.from_native(native, series_only=True).alias(series.name)
    if kind == nw.Object:
        whole = known_or_none(series.to_list())
        whole[places] = values
        return nw.new_series(series.name, whole.tolist(), kind, backend=series.implementation)
    if kind == nw.Enum:
        _further(series, values)
    whole = np.empty(len(series), values.dtype)
    whole[:], whole[places] = values[0], values
    known = kind if kind.is_integer() else None  # the type of integers beyond 2⁶³ is not inferred
    other = nw.new_series(series.name, whole.tolist(), known, backend=series.implementation).cast(kind)
    return _either(series, holes, other)


def _with_times(series: Any, holes: Array, values: Array) -> Any:
    kind = series.dtype
    unit = DAY if kind == nw.Date else COARSE.get(kind.time_unit, 1)
    whole = np.zeros(len(series), np.int64)
    whole[holes] = np.rint(values / unit).astype(np.int64) * unit
    stamps = whole.astype("m8[us]" if kind == nw.Duration else "M8[us]")
    other = nw.Series.from_numpy(series.name, stamps, backend=series.implementation)
    zone = getattr(kind, "time_zone", None)
    if zone is not None:
        other = other.dt.replace_time_zone("UTC").dt.convert_time_zone(zone)
    other = other.cast(kind)
    if series.implementation.is_pandas_like():
        native = series.to_native().copy()
        native.iloc[np.flatnonzero(holes)] = other.to_native().iloc[np.flatnonzero(holes)].to_numpy(object)
        return nw.from_native(native, series_only=True)
    return _either(series, holes, other)


def _dictionary(native: Any) -> tuple[Any, Any]:
    """The indices and the words of a dictionary column of arrow."""
    whole = native.unify_dictionaries().combine_chunks()
    whole = whole.chunk(0) if hasattr(whole, "num_chunks") else whole
    return whole.indices, whole.dictionary


def _with_words(native: Any, places: Array, values: Array, further: list[Any]) -> Any:
    """The same column with words filled in; `further` words are added to the dictionary."""
    import pyarrow as pa

    indices, words = _dictionary(native)
    new = [word for word in further if word not in set(words.to_pylist())]
    words = pa.concat_arrays([words, pa.array(new, words.type)])
    at = {word: k for k, word in enumerate(words.to_pylist())}
    found = indices.to_pylist()
    for place, value in zip(places.tolist(), values.tolist(), strict=True):
        found[place] = at[value]
    whole = pa.array(found, native.type.index_type)
    return pa.chunked_array([pa.DictionaryArray.from_arrays(whole, words, ordered=native.type.ordered)])


def _further(series: Any, values: Array) -> list[Any]:
    """Levels that fill holes but are not in the type of these rows; they can be added unless levels are ordered."""
    levels, ordered, *_ = declared(series)
    found = sorted(set(values.tolist()) - set(levels), key=str)
    if found and (ordered or series.dtype == nw.Enum):
        what = f"The type of column {series.name!r} of X lacks the level {found[0]!r} of the fit."
        raise InputError(f"{what} Pass a column of the type in the fit.")
    return found


def _either(series: Any, holes: Array, other: Any) -> Any:
    known = nw.new_series("known", (~holes).tolist(), nw.Boolean, backend=series.implementation)
    return series.zip_with(known, other)


def _floats(series: Any) -> Array:
    """Numbers with NaN for missing ones; arrow does not round integers beyond 2⁵³, so NumPy does it."""
    if series.dtype.is_integer():
        known = series.fill_null(0).to_numpy().astype(np.float64)
        return np.where(series.is_null().to_numpy(), np.nan, known)
    return np.array(series.cast(nw.Float64).to_numpy(), np.float64)


def _whole(values: Array, series: Any) -> Array:
    """Integers within the limits of the type; beyond 2⁵³, where they are rounded, within the range of the column."""
    limits = np.iinfo(str(series.dtype).lower())
    low, high = int(limits.min), int(limits.max)
    if np.abs(values).max() > 1 << 53 and series.null_count() < len(series):
        low, high = int(series.min()), int(series.max())
    found = np.empty(values.size, object)
    found[:] = [min(max(round(value), low), high) for value in values.tolist()]
    return found
