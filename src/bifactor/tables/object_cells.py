"""Columns of Python objects, such as text, decimals, dates and times: as cells, and back."""

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np

from bifactor.arrays import Array
from bifactor.errors import InputError
from bifactor.tables.forms import DAY, INTEGERS, TIMES, is_nothing

NUMBERS = int, float, Decimal, np.number

FIRST = dt.datetime(1970, 1, 1)
MICROSECOND = dt.timedelta(microseconds=1)


def object_cells(given: list[Any], name: Any) -> Array:
    """Numbers with NaN, times in microseconds since 1970, or else text and the like with None for missing cells."""
    if set(map(type, given)) <= {int, float, type(None)}:
        return np.array(given, np.float64)
    cells = known_or_none(given)
    like = _like(cells)
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
    return _like(known_or_none(given))


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


def _like(cells: Array) -> Any:
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
