"""A delimited text file with a header, whose cells stay exactly as they are unless they are filled in."""

import csv
import io
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np

from bifactor.arrays import Array
from bifactor.data.column_types import Declared
from bifactor.data.layout import DELIMITERS, INDEX, plain
from bifactor.data.text import MISSING, Progress, cells, content, head, number_of, open_quote, unclosed
from bifactor.errors import FileError, InputError

WORDS_FOR_NOTHING = MISSING - {"none", "-"}
"""Words for missing values in columns of text, where "none" may be a level."""

INTEGER = re.compile(r"\s*[+-]?\d+\s*")

TIME = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?)?")
"""Times in ISO 8601."""

UNITS = (10, "D"), (16, "m"), (19, "s"), (23, "ms")
"""Most characters of times, by their unit."""

DIGITS = 6
"""Significant digits of numbers that are filled in."""


@dataclass(frozen=True, eq=False)
class TextTable:
    """The header and the lines below it."""

    header: list[str]
    body: list[list[str]]
    delimiter: str
    where: str

    @classmethod
    def read(cls, path: Path, delimiter: str | None, progress: Progress) -> Self:
        separator = _delimiter(path, delimiter)
        text = content(path, progress)
        try:
            reader = csv.reader(io.StringIO(text.decode("utf-8"), newline=""), delimiter=separator)
            header: list[str] = []
            body: list[list[str]] = []
            for words in reader:
                if not words:
                    continue
                if not header:
                    header = words
                elif len(words) != len(header):
                    _require_closed(text, separator, path)
                    raise FileError(
                        f"Line {reader.line_num} of {path} has {len(words)} fields, but the header has {len(header)}. "
                        "Check that line, and the delimiter."
                    )
                else:
                    body.append(words)
        except (UnicodeDecodeError, csv.Error) as error:
            raise FileError(f"{path} is not csv in UTF-8 ({error}). Convert it.") from None
        if text.count(b'"') % 2:  # an open quote may contain the rest of the file
            _require_closed(text, separator, path)
        if not body:
            raise FileError(f"{path} has a header but no lines below it. Pass a table with at least one row.")
        _check_header(header, path)
        return cls(header, body, separator, str(path))

    @property
    def aside(self) -> list[str]:
        """Columns that are kept as they are: names of rows, and columns without any value."""
        places = range(len(self.header))
        holes = [[row[k].strip().lower() in MISSING for row in self.body] for k in places]
        found = [self.header[k] for k in places if all(holes[k])]
        return [self.header[0], *found] if names_rows(self.header[0]) and not any(holes[0]) else found

    def cells(self, name: str) -> tuple[Array, Declared]:
        """Numbers with NaN, times in microseconds, or text with None."""
        words = self._words(name)
        numbers = self._numbers(words)[0]
        if numbers is not None:
            return numbers, Declared()
        times = _times(words)
        if times is not None:
            return times, Declared(like=np.datetime64(0, "us"))
        found = np.empty(len(words), object)
        found[:] = [None if word.strip().lower() in WORDS_FOR_NOTHING else word.strip() for word in words]
        return found, Declared()

    def fill(self, name: str, holes: Array, values: Array) -> None:
        """Write values into holes, in the notation of the column, or with a few digits."""
        place, words = self.header.index(name), self._words(name)
        numbers, point = self._numbers(words)
        if numbers is None and _times(words) is not None:
            told = _as_times(values.astype(np.float64), words)
        elif numbers is None:
            told = values.tolist()
        elif values.dtype == object:
            written = {number_of(word, point): word.strip() for word in reversed(words)}
            told = [written.get(value, f"{value:g}") for value in values.tolist()]
        else:
            whole = all(INTEGER.fullmatch(word) for word, hole in zip(words, holes.tolist(), strict=True) if not hole)
            told = [str(round(value)) if whole else f"{value:.{DIGITS}g}" for value in values.tolist()]
            told = told if point == "." else [word.replace(".", point) for word in told]
        for row, word in zip(np.flatnonzero(holes).tolist(), told, strict=True):
            self.body[row][place] = word

    def _numbers(self, words: list[str]) -> tuple[Array | None, str]:
        """Numbers and their decimal point, which may be a comma unless that is the delimiter; None for other text."""
        for point in ".," if self.delimiter != "," else ".":
            found = [number_of(word, point) for word in words]
            if None not in found:
                return np.array(found, np.float64), point
        return None, "."

    def _words(self, name: str) -> list[str]:
        place = self.header.index(name)
        return [row[place] for row in self.body]


def _require_closed(text: bytes, delimiter: str, path: Path) -> None:
    """Raise `FileError` if a quote is not closed."""
    line = open_quote(text.decode("utf-8").split("\n"), delimiter)
    if line is not None:
        raise unclosed(path, line + 1)


def _times(words: list[str]) -> Array | None:
    """Times in microseconds, with NaN for missing ones; None if some words are not times, or all are missing."""
    said = [word.strip() for word in words]
    known = np.array([word.lower() not in WORDS_FOR_NOTHING for word in said], bool)
    if not known.any() or not all(
        TIME.fullmatch(word) for word, is_known in zip(said, known.tolist(), strict=True) if is_known
    ):
        return None
    found = np.full(len(said), np.nan)
    try:
        found[known] = np.array([word for word in said if TIME.fullmatch(word)], "M8[us]").astype(np.int64)
    except ValueError:  # such as the 30th of February
        return None
    return found


def _as_times(values: Array, words: list[str]) -> list[str]:
    """Times in the notation of the longest known one, with the same separator."""
    longest = max((word.strip() for word in words if TIME.fullmatch(word.strip())), key=len)
    unit = next((unit for size, unit in UNITS if len(longest) <= size), "us")
    told = np.rint(values).astype("M8[us]").astype(f"M8[{unit}]").astype(str).tolist()
    return [word.replace("T", " ") for word in told] if " " in longest else told


def names_rows(name: str) -> bool:
    """Whether a first column with this name holds the names of rows."""
    return plain(name) in INDEX


def _check_header(header: list[str], path: Path) -> None:
    if all(number_of(name) is not None and name.strip().lower() not in MISSING for name in header):
        raise InputError(f"The first line of {path} holds numbers, not names of columns. Add a header.")
    if len(set(header)) < len(header):
        twice = next(name for name in header if header.count(name) > 1)
        raise InputError(f"{path} has two columns called {twice!r}. Rename one.")


def _delimiter(path: Path, told: str | None) -> str:
    lines = [line for line in head(path, advice="Pass a csv, tsv or parquet file.") if line.strip()]
    if told is not None:
        told = {"tab": "\t", "\\t": "\t"}.get(told, told)
        if len(told) != 1 or told in '"\n\r':
            raise InputError(f"--delimiter {told!r} is not a delimiter. Pass one character, or tab.")
        return told
    single = [mark for mark in DELIMITERS if len(mark) == 1 and mark != " "]
    counts = {mark: len(cells(lines[:1], mark)[0]) for mark in single}
    return max(single, key=lambda mark: counts[mark])
