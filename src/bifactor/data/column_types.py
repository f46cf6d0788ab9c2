"""Kinds of columns: numbers, grades, booleans or categories; and their cells as numbers.

Cells are an array of numbers, with NaN for missing ones, or an array of objects, with None for missing ones.
"""

import datetime as dt
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from bifactor.arrays import Array
from bifactor.errors import InputError

NUMBER, ORDINAL, BOOLEAN, CATEGORY, KEEP = "number", "ordinal", "boolean", "category", "keep"
KINDS = NUMBER, ORDINAL, BOOLEAN, CATEGORY, KEEP

FEW, OFTEN = 12, 0.1
"""Integers are grades with at most `FEW` levels, twice as many cells, and a level in a share `OFTEN` of the cells."""

DISTINCT = 0.5
"""Text is a category if it has at most this many distinct words per cell; else it holds names, and is kept."""


INTEGERS = int, np.integer
TIMES = dt.date, dt.timedelta, np.datetime64, np.timedelta64
"""Classes of integers and of times; those of pandas are subclasses."""

DAY = 86_400_000_000
"""A day in microseconds."""

STEPS = {DAY: "days", 60_000_000: "minutes", 1_000_000: "seconds", 1_000: "milliseconds", 1: "microseconds"}
"""Resolutions of times in microseconds: if all known times are whole days, so are the values that fill holes."""


class Declared(NamedTuple):
    """What the type of a column declares."""

    levels: Sequence[Any] = ()
    ordered: bool = False
    like: Any = None
    """A number or a time of the class that all cells have: an integer, a decimal, a date and so on."""

    @property
    def time(self) -> bool:
        """Whether cells are times, in microseconds."""
        return isinstance(self.like, TIMES)

    @property
    def whole(self) -> bool:
        """Whether cells are integers."""
        return isinstance(self.like, INTEGERS)


@dataclass(frozen=True)
class ColumnHint:
    """What a user declares about a column: its kind, or its levels in order."""

    kind: str | None = None
    levels: tuple[Any, ...] | None = None

    @classmethod
    def of(cls, name: Any, said: Any) -> Self:
        if isinstance(said, str):
            if said not in KINDS:
                raise InputError(
                    f"Column {name!r} has the unknown kind {said!r}. Choose {', '.join(KINDS)}, or list its levels."
                )
            return cls(said)
        if not isinstance(said, Sequence) or len(said) < 2 or len(set(map(repr, said))) < len(said):
            raise InputError(f"Column {name!r} is declared as {said!r}. Pass a kind, or distinct levels in order.")
        return cls(ORDINAL, tuple(said))


@dataclass(frozen=True)
class ColumnSpec:
    """A column as in the fit."""

    name: Any
    kind: str
    levels: tuple[Any, ...] = ()
    """For all kinds except numbers."""
    step: int = 0
    """For times: all of them are multiples of this, in microseconds."""
    like: Any = None
    """As in `Declared`."""

    @classmethod
    def of(cls, name: Any, cells: Array, told: ColumnHint | None = None, declared: Declared = Declared()) -> Self:  # noqa: B008
        """Inferred from the cells, unless the user or the type declares it."""
        told = told or ColumnHint()
        kind = told.kind or _kind(cells, declared)
        if kind in (NUMBER, KEEP):
            if kind == NUMBER and cells.dtype == object and any(cell is not None for cell in cells.tolist()):
                found = next(cell for cell in cells.tolist() if cell is not None)
                raise InputError(
                    f"Column {name!r} is declared as numbers, but has {_short(found)}. Choose another kind."
                )
            step = _step(cells) if declared.time and kind == NUMBER else 0
            return cls(name, kind, step=step, like=declared.like)
        levels = told.levels or tuple(declared.levels) or _levels(cells, declared.whole)
        if kind == BOOLEAN and len(levels) > 2:
            raise InputError(f"Column {name!r} is declared as boolean, but has {len(levels)} levels. Choose category.")
        if told.levels:
            strange = next((cell for cell in _levels(cells) if cell not in told.levels), None)
            if strange is not None:
                raise InputError(
                    f"Column {name!r} has {_short(strange)}, which is not among its levels. List all of them."
                )
        return cls(name, BOOLEAN if kind == CATEGORY and len(levels) == 2 else kind, levels, like=declared.like)

    def codes(self, cells: Array) -> Array:
        """Numbers, or indices of levels; NaN for holes and for levels that were not in the fit."""
        if self.kind == NUMBER:
            return _numbers(cells, self.name)
        words = [isinstance(level, str) for level in self.levels]
        if cells.dtype != object and self.kind == ORDINAL and self.levels and not any(words):
            levels = np.array(self.levels, np.float64)
            nearest = np.abs(cells[:, None] - levels).argmin(axis=1) if cells.size else np.empty(0)
            return np.where(np.isnan(cells), np.nan, nearest)
        if cells.dtype != object and words and all(words) and not np.isnan(cells).all():
            raise InputError(f"Column {self.name!r} held text in the fit, but now numbers. Pass text.")
        places = {level: float(k) for k, level in enumerate(self.levels)}
        return np.array([places.get(cell, np.nan) for cell in cells.tolist()], np.float64)

    def values(self, codes: Array) -> Array:
        """The values for codes without NaN."""
        if self.kind == NUMBER:
            return np.rint(codes / self.step) * self.step if self.step else codes
        found = np.empty(len(self.levels), object)
        found[:] = self.levels
        return found[codes.astype(np.int64)]


def _kind(cells: Array, declared: Declared) -> str:
    if declared.levels:
        return ORDINAL if declared.ordered and len(declared.levels) > 2 else CATEGORY
    if cells.dtype == object:
        words = [cell for cell in cells.tolist() if cell is not None]
        if all(isinstance(cell, bool) for cell in words):
            return BOOLEAN
        distinct = len(set(words))
        return KEEP if distinct > 2 and distinct > DISTINCT * len(words) else CATEGORY
    known = cells[~np.isnan(cells)]
    if np.isinf(known).any() or known.size == 0 or not np.all(known[:1000] % 1 == 0) or not np.all(known % 1 == 0):
        return NUMBER
    levels, counts = np.unique(known, return_counts=True)
    if set(levels.tolist()) == {0.0, 1.0}:
        return BOOLEAN
    if not 1 < len(levels) <= min(FEW, known.size / 2) or counts.max() < OFTEN * known.size:
        return NUMBER
    return BOOLEAN if len(levels) == 2 else ORDINAL


def _step(cells: Array) -> int:
    known = cells[~np.isnan(cells)]
    return next(step for step in STEPS if step == 1 or np.all(known % step == 0))


def _levels(cells: Array, whole: bool = False) -> tuple[Any, ...]:
    """All levels that occur, sorted; text alphabetically."""
    if cells.dtype != object:
        found = np.unique(cells[~np.isnan(cells)]).tolist()
        return tuple(map(int, found)) if whole else tuple(found)
    counts = Counter(cell for cell in cells.tolist() if cell is not None)
    try:
        return tuple(sorted(counts))
    except TypeError:
        return tuple(sorted(counts, key=repr))


def _numbers(cells: Array, name: Any) -> Array:
    if cells.dtype == object:
        cells = np.array([np.nan if cell is None else cell for cell in cells.tolist()])
        if cells.dtype.kind not in "bif":
            raise InputError(f"Column {name!r} held numbers in the fit, but now other cells. Pass numbers.")
    found = np.asarray(cells, np.float64)
    infinite = np.flatnonzero(np.isinf(found))
    if infinite.size:
        raise InputError(
            f"X contains infinity, or nearly, in row {infinite[0]}, column {name!r}. Pass NaN for missing values."
        )
    return found


def is_nothing(cell: Any) -> bool:
    """Whether a cell is missing: None, NaN, NaT or pandas' NA, for which == returns NA."""
    if cell is None:
        return True
    try:
        same = cell == cell
    except ArithmeticError:  # a signalling NaN of a decimal
        return True
    return not (same is True or same is np.True_ or np.ndim(same) > 0)


def _short(cell: Any) -> str:
    text = repr(cell)
    return text if len(text) <= 40 else f"{text[:39]}…"
