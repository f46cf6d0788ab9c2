"""Names of rows and columns, of any kind, their indices from 0, and their form in files."""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from numbers import Integral, Real
from typing import Any

import numpy as np

from bifactor._compat import cached_property
from bifactor.arrays import Array
from bifactor.errors import InputError

SORTABLE = "biufmM"
"""Kinds of names that are sorted and searched as numbers, which is much faster than hashing for millions of them."""

DENSE = 4
"""Integers that span no more than this many times their number are counted instead of sorted."""

INT64 = np.iinfo(np.int64)
"""Integers that are kept as integers; longer ones are text."""

NUMBERS = Real, np.bool_, Decimal
"""Kinds of names that are equal to text of the same number where there is text."""


@dataclass(frozen=True, eq=False)
class Names:
    """Distinct names in a fixed order: `names[3]`, `len(names)`, `"ann" in names`, `for name in names`.

    7 and "7" are the same name, since files hold text and tables in memory hold integers. Names that are equal in
    Python are the same, too: in a column of 1, "1", 1.0 and True all four are "1". Where there is text, all numbers
    become text, whole ones as integers; numbers alone stay numbers.
    """

    values: Array

    @classmethod
    def of(cls, values: Any, what: str) -> tuple["Names", Array]:
        """The distinct values, sorted if they are numbers or dates, else in order; and the index of each value."""
        distinct, inverse = _distinct(np.asarray(values), what)
        return cls(distinct), inverse

    @classmethod
    def numbered(cls, count: int, first: int = 0) -> "Names":
        """The integers from `first` on."""
        return cls(np.arange(first, first + count))

    def __len__(self) -> int:
        return int(self.values.size)

    def __getitem__(self, place: Any) -> Any:
        return self.values[place]

    def __iter__(self) -> Iterator[Any]:
        return iter(to_python_objects(self.values))

    def __contains__(self, name: object) -> bool:
        return bool(self.indices(_filled([name]) if isinstance(name, tuple) else [name])[0] >= 0)

    def __repr__(self) -> str:
        some = ", ".join(
            str(name) if self.values.dtype.kind in "mM" else repr(name) for name in to_python_objects(self.values[:3])
        )
        return f"Names({len(self)}: {some}{', …' if len(self) > 3 else ''})"

    def extended(self, values: Any, what: str) -> tuple["Names", Array]:
        """These names with new values at the end, and the index of each value."""
        distinct, inverse = _distinct(self._alike(np.asarray(values)), what)
        if (distinct.dtype.kind in SORTABLE) != (self.values.dtype.kind in SORTABLE):
            raise InputError(
                f"The {what} names were {_kind(self.values)}, but the new ones are {_kind(distinct)}. Convert them to "
                "one kind, or read the data with text_names=True (--text-names)."
            )
        places = self.indices(distinct)
        new = places < 0
        places[new] = len(self) + np.arange(int(new.sum()))
        return Names(np.concatenate([self.values, distinct[new]])), places[inverse]

    def indices(self, values: Any) -> Array:
        """The index of each value, -1 if it is not known."""
        values = self._alike(np.asarray(values).ravel())
        if not _comparable(self.values.dtype, values.dtype) or len(self) == 0:
            places = self._places
            return np.fromiter((places.get(name, -1) for name in values.tolist()), np.int64, values.size)
        order, ranked = self._ranked
        sought, inverse = _sorted(values)  # a search in order is kind to the cache
        near = np.minimum(np.searchsorted(ranked, sought), ranked.size - 1)
        return np.where(ranked[near] == sought, order[near], -1)[inverse]

    def as_text(self) -> "Names":
        """These names as text, in their order."""
        return Names(_filled([str(number_as_text(name)) for name in self]))

    def take(self, index: Array) -> "Names":
        """The names at some indices, in this order."""
        return Names(self.values[index])

    def used(self, places: Array) -> tuple["Names", Array]:
        """The names at some indices, and these indices renumbered among them."""
        present = np.zeros(len(self), bool)
        present[places] = True
        new = np.cumsum(present, dtype=np.int32) - 1
        return Names(self.values[present]), new[places]

    def _alike(self, values: Array) -> Array:
        """Values converted to the type of the names, where possible."""
        kind = self.values.dtype.kind
        if kind in "mM" and values.dtype.kind not in "mM":
            return _dates(values, self.values.dtype)
        if kind in "iu" and values.dtype.kind in "OUST":
            return _integers(values)
        if values.dtype.kind in "biufO" and self._text:
            return _filled([number_as_text(value) for value in values.tolist()])
        return values

    @cached_property
    def _text(self) -> bool:
        """Whether all names are text."""
        return self.values.dtype.kind in "UT" or (
            self.values.dtype.kind == "O" and all(isinstance(name, str) for name in self.values.tolist())
        )

    @cached_property
    def _places(self) -> dict[Any, int]:
        return {name: k for k, name in enumerate(self.values.tolist())}

    @cached_property
    def _ranked(self) -> tuple[Array, Array]:
        order = np.argsort(self.values, kind="stable")
        return order, self.values[order]


def _kind(values: Array) -> str:
    """The kind of names, in one word."""
    words = {"b": "booleans", "i": "integers", "u": "integers", "f": "numbers", "m": "durations", "M": "dates"}
    return words.get(values.dtype.kind, "text")


def to_python_objects(values: Array) -> list[Any]:
    """Values as Python objects, except dates, since Python lacks some of their precisions."""
    return list(values) if values.dtype.kind in "mM" else values.tolist()


def _distinct(values: Array, what: str) -> tuple[Array, Array]:
    if values.ndim != 1:
        raise InputError(f"The {what} names have {values.ndim} dimensions. Pass a vector.")
    if _missing(values):
        raise InputError(f"Some {what} names are missing. Drop these lines, or give every {what} a name.")
    if values.dtype.kind in SORTABLE:
        return _sorted(values)
    if values.dtype.kind == "O" and all(isinstance(name, (str, *NUMBERS)) for name in values.tolist()):
        mixed = any(isinstance(name, str) for name in values.tolist())
        values = _filled([number_as_text(name) for name in values.tolist()]) if mixed else values
    places: dict[Any, int] = {}
    try:
        numbers = (places.setdefault(name, len(places)) for name in values.tolist())
        inverse = np.fromiter(numbers, np.int64, values.size)
    except TypeError:
        raise InputError(f"Some {what} names are not hashable. Use strings or numbers.") from None
    first = np.flatnonzero(np.diff(np.maximum.accumulate(inverse), prepend=-1))
    return values[first], inverse


def _sorted(values: Array) -> tuple[Array, Array]:
    """The distinct values, sorted, and the index of each value."""
    if values.dtype.kind in "iu" and values.size:
        low, high = int(values.min()), int(values.max())
        if high - low < DENSE * values.size:
            wide = values if values.dtype.kind == "u" else values.astype(np.int64)  # differences may not fit
            first = wide.dtype.type(low)
            shifted = (wide - first).astype(np.int64)
            present = np.zeros(high - low + 1, bool)
            present[shifted] = True
            places = np.cumsum(present) - 1
            distinct = np.flatnonzero(present).astype(wide.dtype) + first
            return distinct.astype(values.dtype), places[shifted]
    distinct, inverse = np.unique(values, return_inverse=True)
    return distinct, inverse


def _missing(values: Array) -> bool:
    if values.dtype.kind in "fmM":
        return bool(np.any(values != values))
    return values.dtype.kind == "O" and any(name is None or name != name for name in values.tolist())


def _comparable(names: np.dtype[Any], values: np.dtype[Any]) -> bool:
    """Whether values can be searched among names as numbers, without rounding."""
    if names.kind in "mM":
        return values.kind == names.kind
    if not (names.kind in "biuf" and values.kind in "biuf"):
        return False
    return np.result_type(names, values).kind != "f" or "f" in names.kind + values.kind


def _dates(values: Array, dtype: np.dtype[Any]) -> Array:
    """Values converted to dates; NaT for values that are not dates."""
    try:
        return values.astype(dtype)
    except (TypeError, ValueError):
        return np.array([_date(value, dtype) for value in values.tolist()], dtype)


def _date(value: Any, dtype: np.dtype[Any]) -> Any:
    try:
        return np.array(value).astype(dtype)
    except (TypeError, ValueError):
        return np.array("NaT", dtype)


def _integers(values: Array) -> Array:
    """Text that is an integer in its shortest form as integers; all other values unchanged."""
    listed = [integer_or_name(value) for value in values.tolist()]
    if all(isinstance(value, int) for value in listed) and listed:
        return np.array(listed, np.int64)
    found = np.empty(len(listed), object)
    found[:] = listed
    return found


def number_as_text(name: Any) -> Any:
    """A number as text, a whole one as an integer; any other name unchanged."""
    if isinstance(name, (Integral, np.bool_)):
        return str(int(name))
    if isinstance(name, Decimal) and name.is_finite():
        return str(int(name)) if name == name.to_integral_value() else format(name.normalize(), "f")
    if isinstance(name, Real):
        return str(int(float(name))) if float(name).is_integer() else str(name)
    return name


def integer_or_name(value: Any) -> Any:
    """Text that is a 64-bit integer in its shortest form as an integer; any other value unchanged."""
    if not isinstance(value, str):
        return value
    digits = value.removeprefix("-")
    short = digits.isascii() and digits.isdigit() and len(digits) <= 19 and str(int(value)) == value
    return int(value) if short and INT64.min <= int(value) <= INT64.max else value


def _filled(values: list[Any]) -> Array:
    found = np.empty(len(values), object)
    found[:] = values
    return found


# Names of rows and columns as arrays for a file: numbers as they are, text as bytes.

INTEGER_KINDS = "iumMb"
"""Kinds of names that are stored as 64-bit integers."""


def packed_names(rows: Names, cols: Names) -> tuple[dict[str, Array], dict[str, str]]:
    """The names of both sides as arrays, and the type of each."""
    sides = (("row", rows), ("column", cols))
    arrays = {key: array for side, names in sides for key, array in _packed(names, side).items()}
    return arrays, {side: names.values.dtype.str for side, names in sides}


def _packed(names: Names, side: str) -> dict[str, Array]:
    """Text is stored as one sequence of bytes, with the end of each name."""
    kind = names.values.dtype.kind
    if kind in INTEGER_KINDS:
        return {f"{side}:integers": names.values.astype(np.int64)}
    if kind == "f":
        return {f"{side}:numbers": names.values.astype(np.float64)}
    strange = next((name for name in names if not isinstance(name, str)), None)
    if strange is not None:
        raise InputError(
            f"The {side} name {strange!r} has type {type(strange).__name__}, which is not saved. Use text or numbers."
        )
    try:
        words = [name.encode() for name in names]
    except UnicodeEncodeError as error:
        raise InputError(f"The {side} name {error.object!r} is not Unicode text. Rename it.") from None
    ends = np.cumsum([len(word) for word in words], dtype=np.int64)
    return {f"{side}:utf8": np.frombuffer(b"".join(words), np.uint8), f"{side}:ends": ends}


def unpacked_names(arrays: dict[str, Array], side: str, kind: Any) -> Names:
    """The names of one side; raise `ValueError`, with part of a sentence, if the arrays are invalid."""
    if f"{side}:integers" in arrays:
        values = _stored_integers(arrays[f"{side}:integers"], side, kind)
    elif f"{side}:numbers" in arrays:
        values = arrays[f"{side}:numbers"]
        if values.dtype != np.float64 or values.ndim != 1:
            raise ValueError(f"the {side} names are {values.dtype} of shape {values.shape}")
    else:
        values = _words(arrays, side)
    missing = values.dtype.kind in "fmM" and bool(np.any(values != values))
    if missing or not _are_distinct(values):
        raise ValueError(f"a {side} name is missing or repeated")
    return Names(values)


def _are_distinct(values: Array) -> bool:
    if values.dtype.kind == "O":
        return len(set(values.tolist())) == values.size
    # Numbers are mostly sorted, which is checked much faster.
    return bool(np.all(values[1:] > values[:-1])) or np.unique(values).size == values.size


def _stored_integers(values: Array, side: str, kind: Any) -> Array:
    if values.dtype != np.int64 or values.ndim != 1:
        raise ValueError(f"the {side} names are {values.dtype} of shape {values.shape}")
    if kind is None:  # files of the first format
        return values
    try:
        dtype = np.dtype(kind)
    except (TypeError, ValueError):
        raise ValueError(f"the {side} names have the unknown type {str(kind)[:40]!r}") from None
    if dtype.kind not in INTEGER_KINDS or not isinstance(kind, str):
        raise ValueError(f"the {side} names are integers but declared as {str(dtype)[:40]}")
    cast = values.astype(dtype)
    if not np.array_equal(cast.astype(np.int64), values):
        raise ValueError(f"the {side} names do not fit into {dtype}")
    return cast


def _words(arrays: dict[str, Array], side: str) -> Array:
    if f"{side}:utf8" not in arrays or f"{side}:ends" not in arrays:
        raise ValueError(f"the {side} names are missing")
    text, ends = arrays[f"{side}:utf8"], arrays[f"{side}:ends"]
    if text.dtype != np.uint8 or ends.dtype != np.int64 or text.ndim != 1 or ends.ndim != 1:
        raise ValueError(f"the {side} names are {text.dtype} and {ends.dtype}")
    starts = np.concatenate([[0], ends[:-1]]) if ends.size else ends
    if np.any(ends < starts) or (ends[-1] if ends.size else 0) != text.size:
        raise ValueError(f"the ends of the {side} names are not in order")
    content, names = text.tobytes(), np.empty(ends.size, object)
    try:
        names[:] = [content[a:b].decode() for a, b in zip(starts.tolist(), ends.tolist(), strict=True)]
    except UnicodeDecodeError:
        raise ValueError(f"a {side} name is not UTF-8") from None
    return names
