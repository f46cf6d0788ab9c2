"""The layout of a text file: inferred from its first lines, or as given."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bifactor.data.text import BLANKS, MISSING, SPACES, cells, number_of, open_quote, ragged, unclosed
from bifactor.errors import FileError, InputError

FIGURES = re.compile(r"[+-]?\d[\d.,' ]*")
"""Text that looks like a number, possibly with thousands separators, and so is not the name of a column."""

USUAL = (
    frozenset({"user", "u", "row", "customer", "reader", "listener", "person", "viewer", "rater", "source", "i"}),
    frozenset({"item", "movie", "col", "column", "product", "book", "artist", "song", "track", "joke", "target", "j"}),
    frozenset({"rating", "value", "score", "count", "plays", "stars", "weight", "v", "vote", "sign"}),
)
"""Common names for rows, columns and values."""

NAMED = re.compile(
    "account|app|article|author|brand|buyer|category|channel|client|course|device|document|film|game|hotel|keyword|"
    "member|page|patient|place|player|query|recipe|restaurant|session|shop|show|sku|student|tag|title|url|video|visitor"
)
"""Other common names for columns of names: two such words in the first line of two columns are a header."""

ENDS = re.compile(r"(^|.*[_ .-])(id|name|key|code)|.*[a-z]I[dD]", re.ASCII)
"""Words whose ending shows that they name a column."""

INDEX = frozenset({"", "id", "name", "index", "sample", "unnamed0"}) | USUAL[0]
"""Common headers of the row names in a wide table."""


def has_header(table: list[list[str]], named: list[str], point: str) -> bool:
    """Whether the first line consists of words, one of them above a number, or has the names that were asked for."""
    first, below = table[0], [row for row in table[1:] if len(row) == len(table[0])]
    if any(name in first and not name.isdigit() for name in named):
        return True
    words = [k for k, cell in enumerate(first) if number_of(cell, point) is None and not FIGURES.fullmatch(cell)]
    if len(words) + sum(cell.lower() in MISSING for cell in first) < len(first):
        # Numbers may be names of columns, beside a corner that is empty or names the rows.
        over_numbers = words == [0] and any(number_of(row[0], point) is not None for row in below)
        return len(first) > 3 and (plain(first[0]) in INDEX or over_numbers)
    usual = None not in usual_columns(tuple(first))[:2] or _names_columns(first, below)
    return usual or not below or any(number_of(row[k], point) is not None for row in below for k in words)


def _names_columns(first: list[str], below: list[list[str]]) -> bool:
    """Whether words above text are a header: by the words, or because they lack the digits that all text below has."""
    named = (NAMED.fullmatch(plain(cell)) or any(plain(cell) in usual for usual in USUAL) for cell in first[:2])
    if all(named) or any(ENDS.fullmatch(cell) for cell in first):
        return True
    figures = [k for k, cell in enumerate(first) if not any(letter.isdigit() for letter in cell)]
    return len(below) > 1 and any(all(any(map(str.isdigit, row[k])) for row in below) for k in figures)


def plain(name: str) -> str:
    """A name in lower case, without punctuation and a final `id`."""
    letters = re.sub(r"[^a-z0-9]", "", name.lower())
    return letters.removesuffix("id") or letters


def usual_columns(header: tuple[str, ...] | None) -> tuple[int | None, ...]:
    """The columns with common names for rows, columns and values."""
    found: list[int | None] = []
    for words in USUAL:
        places = [k for k, name in enumerate(header or ()) if plain(name) in words]
        found.append(places[0] if len(places) == 1 else None)
    return tuple(found)


DELIMITERS = ("\t", ";", ",", "|", "::", SPACES)
"""In the order in which they are tried; semicolons come before commas, which may be decimal commas."""

COMMA, POINT = re.compile(r"[+-]?\d+,\d+"), re.compile(r"[+-]?\d*\.\d+")
"""Numbers with a decimal comma, and with a point."""

THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+")
"""Numbers whose commas may be thousands separators."""

TIMES = ((3e8, 5e9), (3e11, 5e12))
"""Ranges of seconds and milliseconds since 1970 for times from 1979 on, which are not ratings."""

DIGITS = 9
"""Most digits of the number of a column."""

MAX_SHOWN_LENGTH = 40
"""Most characters of a name or number that errors show."""

SAMPLE = 200
"""Lines from which the layout is inferred."""

MOST = 4
"""Most columns for which their order is trusted: rows, columns, values, and possibly times."""

SIDES = ("row", "column", "value")


@dataclass(frozen=True)
class ReadOptions:
    """What a user specifies about a file; None means that it is inferred."""

    row: str | None = None
    col: str | None = None
    value: str | None = None
    weight: str | None = None
    delimiter: str | None = None
    header: bool | None = None
    wide: bool | None = None
    decimal: str | None = None
    """The decimal point, or comma."""
    values: bool | None = True
    """Whether a long table needs values, or only pairs; None for values if a column has the name in the hints."""
    text_names: bool = False
    """Whether names of rows and columns are text, even if all of them are numbers."""
    hints: tuple[str, ...] | None = None
    """Names of the row, the column and the value, used if the header has them."""


@dataclass(frozen=True)
class FileLayout:
    """The layout of a text file."""

    delimiter: str
    width: int
    header: tuple[str, ...] | None
    wide: bool
    places: tuple[int | None, ...]
    """Indices of the row, the column and the value; in a wide table, only that of the row names."""
    numeric: tuple[int, ...]
    """The columns of a wide table that hold values."""
    reason: str
    point: str = "."
    """The decimal point, or comma."""
    weight: int | None = None
    """Index of the column with weights."""

    def name(self, place: int) -> str:
        """The name of a column in the header, or its number from 1."""
        return self.header[place] if self.header is not None else str(place + 1)


def infer_layout(lines: Sequence[str], asked: ReadOptions, path: Path) -> FileLayout:
    """The layout of a file that begins with these lines."""
    layout, body = detect_dialect(lines, asked, path)
    return with_columns(layout, body, with_hints(asked, layout.header or tuple(body[0])), path)


def detect_dialect(
    lines: Sequence[str], asked: ReadOptions, path: Path, first: str | None = None
) -> tuple[FileLayout, list[list[str]]]:
    """The delimiter, header and decimal point of a file, and the lines below the header; `first` may name a column."""
    numbers = [number for number, line in enumerate(lines, 1) if line.strip(BLANKS.decode())][:SAMPLE]
    lines = [lines[number - 1] for number in numbers]
    delimiter = _delimiter(lines, asked, path)
    table = cells(lines, delimiter)
    width = len(table[0])
    asked = with_hints(asked, tuple(table[0]))
    named = [choice for choice in (asked.row, asked.col, asked.value, first) if choice is not None]
    point = _point(table, delimiter, asked)
    header = has_header(table, named, point) if asked.header is None else asked.header
    body = [row for row in (table[1:] if header else table) if len(row) == width]
    if not body:
        opened = open_quote(lines, delimiter)
        if opened is not None:
            raise unclosed(path, numbers[opened])
        if len(table) > 1:
            raise ragged(path, numbers[1], len(table[1]), width)
        raise InputError(f"{path} has a header but no lines below it. Pass a file with at least one entry.")
    if header and any(name.encode("utf-8", "replace").decode() != name for name in table[0]):
        raise FileError(f"Line 1 of {path} is not UTF-8. Convert the file to UTF-8.")
    return FileLayout(delimiter, width, tuple(table[0]) if header else None, False, (), (), "", point), body


def with_hints(asked: ReadOptions, header: tuple[str, ...]) -> ReadOptions:
    """With the hints, if no column is given and the header has them."""
    row, col, value = (*(asked.hints or ()), None, None, None)[:3]
    told = asked.row is not None or asked.col is not None or asked.value is not None
    if asked.values is None:
        numbered = not told and value is not None and value.isdecimal() and int(value) <= len(header)
        asked = replace(asked, values=asked.value is not None if told else value in header or numbered)
        if numbered and value not in header:
            return replace(asked, row=row, col=col, value=value)
    if told or row not in header or col not in header:
        return asked
    return replace(asked, row=row, col=col, value=value if asked.values and value in header else None)


def _point(table: list[list[str]], delimiter: str, asked: ReadOptions) -> str:
    if asked.decimal is not None:
        if asked.decimal not in (".", ",") or asked.decimal == delimiter:
            raise InputError(f"decimal={asked.decimal!r} is not possible. Pass '.' or ',', other than the delimiter.")
        return asked.decimal
    words = [word for row in table for word in row]
    commas = [word for word in words if COMMA.fullmatch(word)] if delimiter != "," else []
    if not commas or any(POINT.fullmatch(word) for word in words):
        return "."
    if all(THOUSANDS.fullmatch(word) for word in commas):
        raise InputError(
            f"The comma in {commas[0][:MAX_SHOWN_LENGTH]} may be a decimal comma or separate thousands. "
            "Pass decimal, ',' or '.'."
        )
    return ","


def with_columns(layout: FileLayout, body: list[list[str]], asked: ReadOptions, path: Path | str) -> FileLayout:
    """The layout with the roles of its columns, wide or long."""
    usual = usual_columns(layout.header)
    named = asked.col is not None or asked.value is not None
    holes = any(cell.strip().lower() in MISSING for row in body for cell in row)
    needed = 3 if asked.values else 2
    wide = asked.wide
    if wide is None:
        wide = asked.values and not named and layout.width > 3 and holes and None in usual
    if wide:
        why = (
            "as given" if asked.wide else f"{layout.width} columns with holes, none of them called row, column or value"
        )
        if asked.weight is not None:
            raise InputError(f"{path} is wide, and weights are read from long tables only. Leave out weight.")
        return _wide(replace(layout, wide=True, reason=why), body, asked, path)
    _require_width(layout, needed, path)
    choices = (asked.row, asked.col, asked.value)[:needed]
    if None in usual[:needed] and None in choices and layout.width > MOST:
        raise InputError(
            f"{path} has {layout.width} columns, and it is not clear which are {', '.join(SIDES[:needed])}. "
            "Name them with row, col and value, or pass wide for a table with holes."
        )
    by_name = None not in usual[:needed]
    fallback = usual if by_name else (0, 1, 2)
    places = tuple(
        fallback[k] if choice is None else _place(choice, layout, path, SIDES[k]) for k, choice in enumerate(choices)
    )
    weight = None if asked.weight is None else _place(asked.weight, layout, path, "weight")
    if len(set(places)) < needed or weight in places:
        raise InputError(f"{path}: one column cannot be two of {', '.join(SIDES[:needed])}. Name all of them.")
    why = "as given" if None not in choices else "by their names" if by_name else "by their order"
    if asked.values and asked.value is None and not by_name:
        _question(layout, body, places[2], path)
    return replace(layout, places=places, reason=why, weight=weight)


def _require_width(layout: FileLayout, needed: int, path: Path | str) -> None:
    """Raise `InputError` if a long table has too few columns."""
    if layout.width == 2 < needed:
        raise InputError(
            f"{path} has two columns and no values. Clicks, plays and purchases need none: use bifactor.Recommender, "
            "`fold_in` of its fit, read(…, values=False), or --implicit on the command line; else check the delimiter."
        )
    if layout.width < needed:
        raise InputError(
            f"{path} has {layout.width} column{'s' if layout.width > 1 else ''}, but {needed} are needed: "
            f"{', '.join(SIDES[:needed])}. Check the delimiter, or pass wide for a table with holes."
        )


def _question(layout: FileLayout, body: list[list[str]], place: int | None, path: Path | str) -> None:
    """Raise `InputError` if the values look like times, which a log of clicks has in their place."""
    assert place is not None
    words = [row[place] for row in body]
    numbers = [number_of(word, layout.point) for word in words]
    for low, high in TIMES:
        if numbers and all(number is not None and low <= number <= high and number % 1 == 0 for number in numbers):
            name, word = layout.name(place)[:MAX_SHOWN_LENGTH], words[0][:MAX_SHOWN_LENGTH]
            raise InputError(
                f"Column {name} of {path} holds numbers like {word}, which look like times. "
                f"Name the column with the values, {name} if these are right; for clicks "
                "without values use Recommender (--implicit)."
            )


def _wide(layout: FileLayout, body: list[list[str]], asked: ReadOptions, path: Path | str) -> FileLayout:
    numeric = tuple(k for k in range(layout.width) if all(number_of(row[k], layout.point) is not None for row in body))
    place = None
    if asked.row is not None:
        place = _place(asked.row, layout, path, "row")
    elif 0 not in numeric or (layout.header is not None and plain(layout.header[0]) in INDEX):
        place = 0
    numeric = tuple(k for k in numeric if k != place)
    if not numeric:
        raise InputError(f"{path} has no column of numbers. Check the delimiter.")
    return replace(layout, places=(place,), numeric=numeric)


def _delimiter(lines: Sequence[str], asked: ReadOptions, path: Path) -> str:
    if asked.delimiter is not None:
        told = {"\\t": "\t", "tab": "\t", "space": SPACES}.get(asked.delimiter, asked.delimiter)
        if told == "" or (len(told) > 1 and told != "::") or told in '"\n\r':
            raise InputError(f"{asked.delimiter!r} is not a delimiter. Pass one character, tab or space.")
        return told
    needed = 3 if asked.values else 2
    likely = ""
    for candidate in DELIMITERS:
        counts = [len(row) for row in cells(lines, candidate)]
        if counts and min(counts) == max(counts) >= needed:
            return candidate
        if counts and counts[0] >= needed and not likely:
            likely = candidate
    if likely:
        return likely
    for candidate in DELIMITERS:
        if len(cells(lines[:1], candidate)[0]) > 1:
            return candidate
    raise InputError(
        f"No comma, tab, semicolon, bar or space splits the lines of {path} into columns. Pass the delimiter."
    )


def _place(choice: object, layout: FileLayout, path: Path | str, what: str) -> int:
    choice = str(choice)
    if layout.header is not None and choice in layout.header:
        return layout.header.index(choice)
    if choice.isdecimal() and len(choice) <= DIGITS and 1 <= int(choice) <= layout.width:
        return int(choice) - 1
    names = ", ".join(layout.name(k)[:MAX_SHOWN_LENGTH] for k in range(min(layout.width, 20)))
    raise InputError(f"{path} has no column {choice!r} for the {what}. Pass one of {names}, or its number.")
