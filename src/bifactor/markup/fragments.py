"""Parts of a page; whatever they are given is escaped."""

from collections.abc import Iterable
from html import escape

SHORT = 16
"""Letters of a word that fits into any column."""


def numbers(pairs: Iterable[tuple[object, object]]) -> str:
    """A row of boxes, each a number and what it is."""
    boxes = (f"<div><b>{escape(str(a))}</b><span>{escape(str(b))}</span></div>" for a, b in pairs)
    return f'<div class="numbers">{"".join(boxes)}</div>'


def table(header: Iterable[object], rows: Iterable[Iterable[object]]) -> str:
    """A table with names above its columns."""
    lines = ("".join(map(_cell, row)) for row in rows)
    named = "".join(f"<th>{escape(str(name))}</th>" for name in header)
    return f'<table class="facts list"><tr>{named}</tr>{"".join(f"<tr>{line}</tr>" for line in lines)}</table>'


def _cell(value: object) -> str:
    """A cell of a table; words that are short are not broken."""
    text = str(value)
    whole = ' class="whole"' if max(map(len, text.split()), default=0) <= SHORT else ""
    return f"<td{whole}>{escape(text)}</td>"


def facts(pairs: Iterable[tuple[object, object]]) -> str:
    """A table of names and what they stand for."""
    rows = (f"<tr><td>{escape(str(a))}</td><td>{escape(str(b))}</td></tr>" for a, b in pairs)
    return f'<table class="facts">{"".join(rows)}</table>'
