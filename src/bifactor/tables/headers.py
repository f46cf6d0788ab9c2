"""Whether the first line of a text file is a header, and common names of columns."""

import re

from bifactor.tables.numbers import MISSING, number_of

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
