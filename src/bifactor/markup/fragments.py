"""Parts of a page; all arguments are escaped."""

from collections.abc import Iterable
from html import escape

SHORT = 16
"""Longest word, in letters, that fits into any column."""


def numbers(pairs: Iterable[tuple[object, object]]) -> str:
    """Row of boxes, each with a number and its name."""
    boxes = (f"<div><b>{escape(str(a))}</b><span>{escape(str(b))}</span></div>" for a, b in pairs)
    return f'<div class="numbers">{"".join(boxes)}</div>'


def table(header: Iterable[object], rows: Iterable[Iterable[object]]) -> str:
    """Table with a header, in a box that scrolls where it is too wide."""
    lines = ("".join(map(_cell, row)) for row in rows)
    named = "".join(f"<th>{escape(str(name))}</th>" for name in header)
    return scrolling(
        f'<table class="facts list"><tr>{named}</tr>{"".join(f"<tr>{line}</tr>" for line in lines)}</table>'
    )


def scrolling(table: str) -> str:
    """A table, already HTML, in a box of its own: a page must not become wider than a phone."""
    return f'<div class="scroll" style="overflow-x:auto">{table}</div>'


def _cell(value: object) -> str:
    """Cell of a table; short words are not broken."""
    text = str(value)
    whole = ' class="whole"' if max(map(len, text.split()), default=0) <= SHORT else ""
    return f"<td{whole}>{escape(text)}</td>"


def facts(pairs: Iterable[tuple[object, object]]) -> str:
    """Table of names and values, in such a box as well."""
    rows = (f"<tr><td>{escape(str(a))}</td><td>{escape(str(b))}</td></tr>" for a, b in pairs)
    return scrolling(f'<table class="facts">{"".join(rows)}</table>')
