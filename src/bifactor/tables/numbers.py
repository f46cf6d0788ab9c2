"""Converts fields of text to numbers, many at a time."""

from pathlib import Path

import numpy as np

from bifactor.arrays import Array
from bifactor.errors import FileError
from bifactor.tables.fields import Block

MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "?", "-"})
"""Words for missing values, in lower case."""

_DIGITS = 18
"""Most digits of an integer that always fits in 64 bits."""

_EXACT = 15
"""Digits that a double holds exactly, so that dividing by a power of ten rounds only once."""

_MINUS, _ZERO = 45, 48


def integers(text: Array, starts: Array, ends: Array) -> tuple[Array, Array]:
    """The integers, and where the text is an integer in its shortest form: 7 is; 007, +7, -0 and 7.0 are names."""
    negative = text[np.minimum(starts, text.size - 1)] == _MINUS
    first = starts + negative
    count = ends - first
    value, good = np.zeros(starts.shape, np.int64), (count >= 1) & (count <= _DIGITS)
    for k in range(min(int(count.max(initial=0)), _DIGITS)):
        inside = k < count
        digit = text[np.minimum(first + k, text.size - 1)] - np.uint8(_ZERO)
        good &= ~inside | (digit <= 9)
        value = np.where(inside, value * 10 + digit, value)
        if k == 0:
            good &= (digit != 0) | ((count == 1) & ~negative)
    return np.where(negative, -value, value), good


def decimals(block: Block, column: int, path: Path, what: str, point: str = ".") -> Array:
    """The numbers in a column, with NaN for missing ones; raise `FileError` with the line of any other word."""
    starts, ends = block.starts[:, column], block.ends[:, column]
    value, simple = _plain(block.text, starts, ends, ord(point))
    for record in np.flatnonzero(~simple).tolist():
        word = block.word(record, column)
        number = number_of(word, point)
        if number is None:
            raise FileError(
                f"Line {block.lines[record]} of {path}: the {what} {word[:40]!r} is not a finite number. "
                "Correct it, or leave it empty if it is missing."
            )
        value[record] = number
    return value


def number_of(word: str, point: str = ".") -> float | None:
    """A number, NaN for a word that means a missing value, None for any other word."""
    word = word.strip()
    if point != ".":
        word = word.replace(".", "_").replace(point, ".")  # a point is then not part of a number
    if word.lower() in MISSING:
        return float("nan")
    try:
        number = float(word)
    except ValueError:
        return None
    return number if np.isfinite(number) and "_" not in word else None


def _plain(text: Array, starts: Array, ends: Array, point: int) -> tuple[Array, Array]:
    """Numbers with few digits, with or without a point, and where the text is such a number."""
    negative = text[np.minimum(starts, text.size - 1)] == _MINUS
    first = starts + negative
    count = ends - first
    mantissa, places = np.zeros(starts.shape, np.int64), np.zeros(starts.shape, np.int64)
    dotted, digits = np.zeros(starts.shape, bool), np.zeros(starts.shape, np.int64)
    good = (count >= 1) & (count <= _EXACT + 1)
    for k in range(min(int(count.max(initial=0)), _EXACT + 1)):
        inside = k < count
        letter = text[np.minimum(first + k, text.size - 1)]
        digit = letter - np.uint8(_ZERO)
        dot, figure = inside & (letter == point), inside & (digit <= 9)
        good &= ~inside | figure | (dot & ~dotted)
        dotted |= dot
        mantissa = np.where(figure, mantissa * 10 + digit, mantissa)
        digits += figure
        places += figure & dotted
    good &= (digits >= 1) & (digits <= _EXACT)
    value = np.where(good, mantissa, 0) / 10.0 ** np.where(good, places, 0)
    return np.where(negative, -value, value), good
