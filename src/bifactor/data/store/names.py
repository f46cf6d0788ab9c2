"""The names of one side of a matrix, in pieces: first collected and counted, then looked up."""

from typing import Any

import numpy as np

from bifactor import kernels
from bifactor.arrays import HOST_ARRAY, Array
from bifactor.data.delimited import Words
from bifactor.data.names import Names, number_as_text
from bifactor.data.store.census_reference import EMPTY
from bifactor.errors import FileError, InputError

Column = Array | Words
"""Names: numbers or dates, or text."""

SPARE, LOOSE = 1 << 20, 4
"""Integers are counted in an array if their range is at most so long, or so many times their number."""

FIRST = 1 << 12
"""Initial slots of a hash table."""

WORD = 150
"""Bytes that a word of average length takes in a Python dictionary."""

SIGN = np.uint64(1 << 63)

WHOLE = 1 << 53
"""Below this, floating-point numbers without a fraction are exact integers."""


class NameCounter:
    """Collects the names of one side and counts the observations of each.

    The order of names is that of `data.read`: numbers and dates are sorted; text is in its original order, after the
    integers before the first word.
    """

    def __init__(self, what: str, room: int):
        self.what, self.room = what, room
        self.dtype: np.dtype[Any] | None = None
        self._integers = _Integers(what, room)
        self._places: dict[str, int] = {}
        self._counts = np.zeros(0, np.int64)
        self.text = False

    def add(self, column: Column, known: Array) -> None:
        """Add names, and count those of known observations."""
        if isinstance(column, Words):
            self._add_words(column, known)
            return
        if self.text or (self.dtype is not None and self.dtype.kind != column.dtype.kind):
            raise InputError(f"Some {self.what} names are text or dates, others numbers. Convert them to one kind.")
        self.dtype = column.dtype if self.dtype is None else np.result_type(self.dtype, column.dtype)
        self._integers.add(to_sortable_keys(column), known)

    def _add_words(self, column: Words, known: Array) -> None:
        if not self.text:
            self._become_text()
        order = self._places
        places = np.array([order.setdefault(word, len(order)) for word in column.distinct], np.int64)
        if WORD * len(order) > self.room:
            raise _crowded(self.what, len(order), self.room)
        if len(order) > self._counts.size:
            self._counts = np.concatenate([self._counts, np.zeros(len(order), np.int64)])
        self._counts[: len(order)] += np.bincount(places[column.inverse[known]], minlength=len(order))

    def _become_text(self) -> None:
        if self.dtype is not None and self.dtype.kind not in "iu":
            raise InputError(f"Some {self.what} names are text, others {self.dtype}. Convert them to one kind.")
        numbers, self._counts = self._integers.sorted()
        self._places = {str(number): k for k, number in enumerate(numbers.tolist())}
        self._integers, self.text = _Integers(self.what, self.room), True

    def done(self) -> tuple[Names, Array]:
        """The names with observations, and the number of observations of each."""
        if not self.text:
            keys, counts = self._integers.sorted()
            return Names(_narrowed(from_sortable_keys(keys[counts > 0], self.dtype or np.dtype(np.int64)))), counts[
                counts > 0
            ]
        counts = self._counts[: len(self._places)]
        used = [word for word, count in zip(self._places, counts.tolist(), strict=True) if count > 0]
        names = np.empty(len(used), object)
        names[:] = used
        return Names(names), counts[counts > 0]


class Locator:
    """Looks up names: numbers in an array over their range or in a hash table, text in a dictionary."""

    def __init__(self, names: Names, room: int):
        self.names, self.room = names, room
        self._dtype: np.dtype[Any] | None = None
        text = names.values.dtype.kind == "O"
        self._words = {word: k for k, word in enumerate(names.values.tolist())} if text else {}

    def places(self, column: Column) -> Array:
        """The index of each name, -1 if it is not known."""
        if isinstance(column, Words):
            places = np.array([self._words.get(word, EMPTY) for word in column.distinct], np.int32)
            return places[column.inverse]
        if self._words:  # integers in front of the first word
            distinct, inverse = np.unique(column, return_inverse=True)
            return self.places(Words([str(number_as_text(name)) for name in distinct.tolist()], inverse))
        if self._dtype is None or self._dtype != column.dtype:  # NumPy takes None for double precision
            self._index(column.dtype)
        return self._found(to_sortable_keys(column))

    def _index(self, dtype: np.dtype[Any]) -> None:
        numbers = to_sortable_keys(self.names.values.astype(dtype))
        place = np.arange(numbers.size, dtype=np.int32)
        self._dtype, self._low, span = dtype, int(numbers[0]), int(numbers[-1]) - int(numbers[0]) + 1
        self._dense = span <= max(SPARE, LOOSE * numbers.size) and 4 * span <= self.room
        if self._dense:
            self._held = np.full(span, EMPTY, np.int32)
            self._held[numbers - self._low] = place
            return
        size = _power(2 * numbers.size)
        self._keys, counts = np.zeros(size, np.int64), np.full(size, EMPTY, np.int32)
        # Sorted numbers have ascending indices, which are stored as counts.
        census = kernels.get("data.store.census", HOST_ARRAY, numbers.size)
        census.fill(numbers, self._keys, counts)
        self._held = counts

    def _found(self, numbers: Array) -> Array:
        if self._dense:
            inside = (numbers >= self._low) & (numbers <= self._low + (self._held.size - 1))
            places = np.where(inside, numbers, self._low) - self._low
            return np.where(inside, self._held[places], EMPTY)
        found = np.empty(numbers.size, np.int32)
        kernels.get("data.store.census", HOST_ARRAY, numbers.size).find(numbers, self._keys, self._held, found)
        return found


class _Integers:
    """Counts of 64-bit integers, in an array over their range or in a hash table."""

    def __init__(self, what: str, room: int):
        self.what, self.room = what, room
        self.low, self.seen, self.used = 0, 0, 0
        self.counts = np.zeros(0, np.int64)
        self.keys: Array | None = None

    def add(self, numbers: Array, known: Array) -> None:
        self.seen += numbers.size
        census = kernels.get("data.store.census", HOST_ARRAY, numbers.size)
        while numbers.size:
            if self.keys is None and self._reach(int(numbers.min()), int(numbers.max())):
                census.count(numbers, known, self.low, self.counts)
                return
            if self.keys is None:
                self._become_table()
            self.used, taken = census.enter(numbers, known, self.keys, self.counts, self.used)
            numbers, known = numbers[taken:], known[taken:]
            if numbers.size:
                self._grow()

    def _reach(self, low: int, high: int) -> bool:
        """Make the array long enough; return False if it would be too long."""
        size = self.counts.size
        if size and self.low <= low and high < self.low + size:
            return True
        first, last = (min(low, self.low), max(high, self.low + size - 1)) if size else (low, high)
        span = last - first + 1
        if span > max(SPARE, LOOSE * self.seen, 2 * size) or 8 * span > self.room:
            return False
        # A little longer than needed, since the next piece may extend the range.
        more = min(span // 2, self.room // 8 - span, np.iinfo(np.int64).max - last)
        counts = np.full(span + more, EMPTY, np.int64)
        counts[self.low - first : self.low - first + size] = self.counts
        self.low, self.counts = first, counts
        return True

    def _become_table(self) -> None:
        numbers, counts = self.sorted()
        self._make(_power(max(FIRST, 4 * numbers.size)), numbers, counts)

    def _grow(self) -> None:
        """Double the table, or return to an array over the range if that takes no more memory."""
        assert self.keys is not None
        size, there = 2 * self.keys.size, self.counts != EMPTY
        keys, counts = self.keys[there], self.counts[there]
        low, span = int(keys.min()), int(keys.max()) - int(keys.min()) + 1
        if 8 * span > min(16 * size, self.room):
            self._make(size, keys, counts)
            return
        self.keys, self.low, self.counts = None, low, np.full(span, EMPTY, np.int64)
        self.counts[keys - low] = counts

    def _make(self, size: int, numbers: Array, counts: Array) -> None:
        if 16 * size > self.room:
            raise _crowded(self.what, numbers.size, self.room)
        self.keys, self.counts, self.used = np.zeros(size, np.int64), np.full(size, EMPTY, np.int64), numbers.size
        census = kernels.get("data.store.census", HOST_ARRAY, numbers.size)
        places = np.full(size, EMPTY, np.int32)
        census.fill(numbers, self.keys, places)
        there = places != EMPTY
        self.counts[there] = counts[places[there]]

    def sorted(self) -> tuple[Array, Array]:
        """All integers, sorted, and their counts."""
        there = np.flatnonzero(self.counts != EMPTY)
        if self.keys is None:
            return there + self.low, self.counts[there]
        order = np.argsort(self.keys[there], kind="stable")
        return self.keys[there][order], self.counts[there][order]


def to_sortable_keys(column: Array) -> Array:
    """Numbers and dates as 64-bit integers in the same order."""
    kind = column.dtype.kind
    if kind == "f":
        bits = (column.astype(np.float64) + 0.0).view(np.int64)  # -0 is 0
        return bits ^ ((bits >> 63) & np.iinfo(np.int64).max)
    if column.dtype == np.uint64:
        return (column ^ SIGN).view(np.int64)
    if kind in "mM":
        return column.view(np.int64)
    return column.astype(np.int64, copy=False)


def from_sortable_keys(keys: Array, dtype: np.dtype[Any]) -> Array:
    """The inverse of `to_sortable_keys`."""
    if dtype.kind == "f":
        return (keys ^ ((keys >> 63) & np.iinfo(np.int64).max)).view(np.float64).astype(dtype)
    if dtype == np.uint64:
        return keys.view(np.uint64) ^ SIGN
    return keys.view(dtype) if dtype.kind in "mM" else keys.astype(dtype)


def _narrowed(values: Array) -> Array:
    """Floating-point numbers as integers if all of them are: they were floats because of missing values."""
    if values.dtype.kind == "f" and np.all(np.abs(values) < WHOLE) and np.all(values % 1 == 0):
        return values.astype(np.int64)
    return values


def _power(least: int) -> int:
    """The next power of two."""
    return 1 << max(least - 1, 1).bit_length()


def _crowded(what: str, count: int, room: int) -> InputError:
    return InputError(
        f"There are more than {count:,} {what} names, which take more than {room / 1e6:,.0f} MB, a quarter of memory. "
        "Pass a larger memory."
    )


def changed_data_error(where: str) -> FileError:
    """The error for data that differed when they were read again."""
    return FileError(f"{where} has changed while it was read. Start again when no process writes to it.")
