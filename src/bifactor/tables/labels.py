"""Names of rows and columns, of any kind, as numbers from 0."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from bifactor.arrays import Array
from bifactor.caching import cached_property
from bifactor.errors import InputError

SORTABLE = "biufmM"
"""Kinds of names that are sorted and searched as numbers: for millions of them that is much quicker than hashing."""

DENSE = 4
"""Integers that span no more than this many times their number are counted instead of sorted."""


@dataclass(frozen=True)
class Labels:
    """Distinct names in a fixed order."""

    names: Array

    @classmethod
    def of(cls, values: Any, what: str) -> tuple["Labels", Array]:
        """The distinct values, sorted where they are numbers or dates, else as they come; the place of each value."""
        distinct, inverse = _distinct(np.asarray(values), what)
        return cls(distinct), inverse

    def extended(self, values: Any, what: str) -> tuple["Labels", Array]:
        """With the values that are new at the end; and the place of each value."""
        distinct, inverse = _distinct(np.asarray(values), what)
        if (distinct.dtype.kind in SORTABLE) != (self.names.dtype.kind in SORTABLE):
            raise InputError(
                f"The {what} names were {self.names.dtype}, the new ones are {distinct.dtype}. Make them of one kind."
            )
        places = self.indices(distinct)
        new = places < 0
        places[new] = self.names.size + np.arange(int(new.sum()))
        return Labels(np.concatenate([self.names, distinct[new]])), places[inverse]

    def indices(self, values: Any) -> Array:
        """The place of each value, -1 where it is not known."""
        values = np.asarray(values).ravel()
        if self.names.dtype.kind in "mM" and values.dtype.kind not in "mM":
            values = _dates(values, self.names.dtype)
        if not _comparable(self.names.dtype, values.dtype) or self.names.size == 0:
            places = self._places
            return np.fromiter((places.get(name, -1) for name in values.tolist()), np.int64, values.size)
        order, ranked = self._ranked
        sought, inverse = _sorted(values)  # searching in order stays in cache
        near = np.minimum(np.searchsorted(ranked, sought), ranked.size - 1)
        return np.where(ranked[near] == sought, order[near], -1)[inverse]

    def known(self, values: Any, what: str) -> Array:
        """The place of each value; all of them must have one."""
        places = self.indices(values)
        if np.any(places < 0):
            name = np.asarray(values).ravel()[places < 0].tolist()[0]
            raise InputError(f"There was no {what} named {name!r} in the fit. Use partial_fit_long for new ones.")
        return places

    @cached_property
    def _places(self) -> dict[Any, int]:
        return {name: k for k, name in enumerate(self.names.tolist())}

    @cached_property
    def _ranked(self) -> tuple[Array, Array]:
        order = np.argsort(self.names, kind="stable")
        return order, self.names[order]


def _distinct(values: Array, what: str) -> tuple[Array, Array]:
    if values.ndim != 1:
        raise InputError(f"The {what} names have {values.ndim} dimensions. Pass a vector.")
    if _missing(values):
        raise InputError(f"Some {what} names are missing. Drop these lines, or give every {what} a name.")
    if values.dtype.kind in SORTABLE:
        return _sorted(values)
    places: dict[Any, int] = {}
    try:
        numbers = (places.setdefault(name, len(places)) for name in values.tolist())
        inverse = np.fromiter(numbers, np.int64, values.size)
    except TypeError:
        raise InputError(
            f"Some {what} names cannot be told apart: they have no hash. Use strings or numbers."
        ) from None
    first = np.flatnonzero(np.diff(np.maximum.accumulate(inverse), prepend=-1))
    return values[first], inverse


def _sorted(values: Array) -> tuple[Array, Array]:
    """The distinct values in order, and the place of each value."""
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
    """Dates in other forms; as they are where they are none."""
    try:
        return values.astype(dtype)
    except (TypeError, ValueError):
        return values
