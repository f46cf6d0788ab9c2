"""Converts columns of data frames of any library to cells, and back with their holes filled in."""

import datetime as dt
from typing import Any
from zoneinfo import ZoneInfo

import narwhals as nw
import numpy as np

from bifactor.arrays import Array
from bifactor.errors import InputError
from bifactor.tables.forms import DAY, Declared
from bifactor.tables.object_cells import advice, as_objects, known_or_none, like_of, object_cells

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


def filled(series: Any, holes: Array, values: Array, like: Any = None) -> Any:
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
