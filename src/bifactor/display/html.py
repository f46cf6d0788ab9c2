"""Parts of a page; all arguments are escaped."""

import base64
import hashlib
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


# The frame of all pages: a document that loads nothing, with light and dark colours and a style.

STYLE = """
:root{--page:#fff;--ink:#1d2530;--soft:#5b6675;--line:#e3e7ec;--panel:#f6f8fa;--main:#2563a8;--accent:#c2571a}
@media (prefers-color-scheme:dark){
:root{--page:#14181d;--ink:#e4e8ed;--soft:#9aa5b1;--line:#2c343d;--panel:#1c2229;--main:#6fa8e8;--accent:#f0955a}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:62rem;padding:1.2rem;background:var(--page);color:var(--ink);
font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;overflow-wrap:anywhere}
h1{font-size:1.5rem;margin:.2rem 0}h2{font-size:1.05rem;margin:0 0 .3rem}p{margin:.3rem 0;color:var(--soft)}
svg{width:100%;height:auto;display:block}
.numbers{display:grid;grid-template-columns:repeat(auto-fit,minmax(8.5rem,1fr));gap:.6rem;margin:1rem 0}
.numbers div{background:var(--panel);border-radius:.5rem;padding:.6rem .8rem}
.numbers b{display:block;font-size:1.3rem}.numbers span{color:var(--soft);font-size:.85rem}
.note{border-left:4px solid var(--accent);padding:.2rem .8rem;background:var(--panel)}
.facts{border-collapse:collapse;width:100%;font-size:.9rem}
.facts td{border-bottom:1px solid var(--line);padding:.25rem .4rem;vertical-align:top}
.facts th{text-align:left;padding:.25rem .4rem;font-weight:600;border-bottom:1px solid var(--soft)}
.facts td:first-child{color:var(--soft);white-space:nowrap;width:1%}
.list td:first-child{color:inherit;white-space:normal;width:auto}.list th,.list .whole{overflow-wrap:normal}
h3{font-size:.95rem;margin:.9rem 0 .1rem}
"""


def document(title: str, body: str, style: str = "", script: str = "") -> str:
    """A self-contained page; `title` is text, `body` is HTML.

    The policy in its head blocks all requests, and all scripts but the given one, which is identified by its hash. So
    text that was left unescaped by mistake can do no harm.
    """
    policy = "default-src 'none';style-src 'unsafe-inline';img-src data:"
    if script:
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        policy += f";script-src 'sha256-{digest}'"
        body += f"<script>{script}</script>"
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        f'<meta name="color-scheme" content="light dark"><title>{escape(title)}</title>'
        f"<style>{STYLE}{style}</style></head><body>{body}</body></html>\n"
    )
