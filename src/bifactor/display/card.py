"""Cards: HTML representations of objects in notebooks.

Text and lines take the colour of the notebook, so that a card is readable in light and dark themes. Cards contain no
scripts and load nothing.
"""

from collections.abc import Iterable
from html import escape

from bifactor.display.html import numbers

STYLE = """
.bifactor-card{border:1px solid rgba(128,128,128,.35);border-radius:6px;padding:8px 12px;margin:2px 0;max-width:960px;
font:13px/1.45 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;color:inherit}
.bifactor-card p{margin:2px 0}.bifactor-card .detail{opacity:.75}
.bifactor-card .title{font-weight:600;font-size:14px;margin-right:.6em}
.bifactor-card .sign{display:inline-block;width:9px;height:9px;border-radius:50%;margin-right:.5em}
.bifactor-card .numbers{display:flex;flex-wrap:wrap;gap:4px 22px;margin:6px 0 2px}
.bifactor-card .numbers b{display:block;font-weight:600}.bifactor-card .numbers span{opacity:.7;font-size:12px}
.bifactor-card .charts{display:flex;flex-wrap:wrap;gap:4px 14px;margin-top:4px}
.bifactor-card svg{width:300px;max-width:100%;height:auto;display:block}
.bifactor-card .curve{fill:none;stroke:#3d85c6;stroke-width:1.8}
.bifactor-card .dot,.bifactor-card .bar{fill:#3d85c6}.bifactor-card .error{stroke:#3d85c6;stroke-width:1}
.bifactor-card .mark{fill:none;stroke:#d9762b;stroke-width:2}
.bifactor-card .grid{stroke:currentColor;opacity:.13}.bifactor-card .axis{fill:none;stroke:currentColor;opacity:.5}
.bifactor-card .tick{fill:currentColor;opacity:.75;font-size:11px}
.bifactor-card .name{fill:currentColor;font-size:12px}
.bifactor-card table.list{border-collapse:collapse;margin:4px 0;font-size:12px;border:0}
.bifactor-card table.list tr:nth-child(n){background:none;border:0}
.bifactor-card table.list th,.bifactor-card table.list td{text-align:right;padding:1px 0 1px 18px;border:0;
background:none;font-variant-numeric:tabular-nums;max-width:none;color:inherit}
.bifactor-card table.list th{font-weight:600;border-bottom:1px solid rgba(128,128,128,.5)}
.bifactor-card table.list th:first-child,.bifactor-card table.list td:first-child{padding-left:2px}
"""

GOOD, FAIR, BAD = "#3c9a5f", "#d9762b", "#c9443c"
"""Colours of the sign in front of a sentence: good, worth a look, wrong."""


def card(title: str, detail: str = "", *parts: str) -> str:
    """Frame with a title and a line of text, followed by parts that are already HTML."""
    line = f'<span class="detail">{escape(detail)}</span>' if detail else ""
    head = f'<p><span class="title">{escape(title)}</span>{line}</p>' if title else ""
    return f'<div class="bifactor-card"><style>{STYLE}</style>{head}{"".join(parts)}</div>'


def sentence(text: str, colour: str) -> str:
    """Sentence after a coloured sign."""
    return f'<p><span class="sign" style="background:{colour}"></span>{escape(text)}</p>'


def figures(pairs: Iterable[tuple[object, object]]) -> str:
    """Numbers with their names; values of None are left out."""
    return numbers([(value, name) for value, name in pairs if value is not None])


def charts(*pictures: str) -> str:
    """Pictures in a row."""
    return f'<div class="charts">{"".join(pictures)}</div>' if pictures else ""
