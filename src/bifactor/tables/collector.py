"""Collects the names of rows and columns from blocks of text."""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from bifactor.arrays import Array
from bifactor.errors import FileError
from bifactor.tables.fields import Block
from bifactor.tables.names import Names
from bifactor.tables.numbers import integers

WIDE = 1 << 23
"""Characters of names that are compared at a time."""

SPARE = 1 << 20
"""Integers are looked up in a table if their range is below four times their number plus this."""


class Words(NamedTuple):
    """A column of text: distinct words, and the index of each name among them."""

    distinct: list[str]
    inverse: Array


def names_in(block: Block, column: int, what: str, path: Path, text: bool) -> list[Array | Words]:
    """The names in a column of fields; integers if all of them are, in their shortest form, and `text` is False."""
    starts, ends = block.starts[:, column], block.ends[:, column]
    empty = starts == ends
    if empty.any():
        line = block.lines[int(np.argmax(empty))]
        raise FileError(f"Line {line} of {path}: the {what} has no name. Fill it in, or drop the line.")
    if not text:
        values, good = integers(block.text, starts, ends)
        if good.all():
            return [values]
    return _words(block, starts, ends, path)


def _words(block: Block, starts: Array, ends: Array, path: Path) -> list[Array | Words]:
    width = int(np.max(ends - starts))
    half = starts.size // 2
    if half and starts.size * width > WIDE:  # one long name must not widen the array for all of them
        found = []
        for part in (slice(None, half), slice(half, None)):
            some = Block(block.text, block.starts, block.ends, block.lines[part])
            found += _words(some, starts[part], ends[part], path)
        return found
    steps = np.arange(width)
    inside = steps < (ends - starts)[:, None]
    letters = np.where(inside, block.text[np.minimum(starts[:, None] + steps, block.text.size - 1)], 0)
    words = np.ascontiguousarray(letters.astype(np.uint8)).view(f"S{width}").ravel()
    distinct, first, inverse = np.unique(words, return_index=True, return_inverse=True)
    came = np.argsort(first, kind="stable")
    place = np.empty_like(came)
    place[came] = np.arange(came.size)
    return [Words([_decoded(distinct[k], block.lines[first[k]], path) for k in came], place[inverse])]


def _decoded(word: bytes, line: int, path: Path) -> str:
    try:
        return bytes(word).decode("utf-8")
    except UnicodeDecodeError:
        raise FileError(f"Line {line} of {path} is not UTF-8. Convert the file to UTF-8.") from None


class Collector:
    """Collects the names of one side.

    Names that are all integers in their shortest form are kept as integers, and sorted in the end. If there is any
    other name, all are text, in their original order.
    """

    def __init__(self, what: str, path: Path):
        self.what, self.path = what, path
        self._parts: list[Array] = []
        self._order: dict[str, int] | None = None

    def add(self, block: Block, column: int) -> None:
        """Add a column of fields."""
        for names in names_in(block, column, self.what, self.path, text=self._order is not None):
            if not isinstance(names, Words):
                self._parts.append(_compact(names))
                continue
            if self._order is None:
                self._become_text()
            assert self._order is not None
            order = self._order
            places = np.array([order.setdefault(word, len(order)) for word in names.distinct], np.int32)
            self._parts.append(places[names.inverse])

    def _become_text(self) -> None:
        labels, places = _numbered(self._parts)
        self._order = {str(name): k for k, name in enumerate(labels.values.tolist())}
        self._parts = [places]

    def done(self) -> tuple[Names, Array]:
        """The distinct names, and the index of each name that was added."""
        if self._order is None:
            return _numbered(self._parts)
        names = np.empty(len(self._order), object)
        names[:] = list(self._order)
        return Names(names), np.concatenate(self._parts)


def _compact(values: Array) -> Array:
    info = np.iinfo(np.int32)
    fits = values.size == 0 or (values.min() >= info.min and values.max() <= info.max)
    return values.astype(np.int32 if fits else np.int64)


def _numbered(parts: list[Array]) -> tuple[Names, Array]:
    """The distinct integers, sorted, and the index of each."""
    values = np.concatenate(parts) if parts else np.empty(0, np.int64)
    parts.clear()  # frees memory: the data are not held twice
    if values.size == 0:
        return Names(np.empty(0, np.int64)), np.empty(0, np.int32)
    low, high = int(values.min()), int(values.max())
    if high - low >= 4 * values.size + SPARE:
        distinct, inverse = np.unique(values, return_inverse=True)
        return Names(distinct.astype(np.int64)), inverse.astype(np.int32)
    present = np.zeros(high - low + 1, bool)
    present[values - low] = True
    place = np.cumsum(present, dtype=np.int32) - 1
    return Names(np.flatnonzero(present) + low), place[values - low].astype(np.int32)
