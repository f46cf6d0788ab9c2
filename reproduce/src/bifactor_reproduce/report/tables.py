"""Tables as files with all digits, and as part of a page on which each column can be sorted."""

import csv
import io
import math
from collections.abc import Iterable, Sequence
from html import escape
from numbers import Integral, Real
from typing import Any

from bifactor_reproduce.harness.items import Table

NOTHING = "–"

SHORT = 24
"""Letters; longer texts may be broken into lines."""

SCRIPT = """
for (const head of document.querySelectorAll("table.data thead button")) {
  head.addEventListener("click", () => {
    const column = head.closest("th"), table = head.closest("table"), body = table.tBodies[0];
    const sign = column.getAttribute("aria-sort") === "ascending" ? -1 : 1;
    const kept = [...body.rows].map(row => {
      const cell = row.cells[column.cellIndex];
      const kind = cell.classList.contains("none") ? 2 : cell.dataset.value === undefined ? 1 : 0;
      return {row, kind, value: kind ? cell.textContent : Number(cell.dataset.value)};
    });
    const order = (a, b) => typeof a === "number" ? (a > b) - (a < b) : a.localeCompare(b, "en", {numeric: true});
    kept.sort((a, b) => a.kind - b.kind || sign * order(a.value, b.value));
    body.append(...kept.map(one => one.row));
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    column.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
  });
}
"""
"""Numbers go by value and before texts, and what is missing comes last in both directions."""


def as_csv(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Lines in which numbers have all their digits; what is missing is empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_exact(value) for value in row] for row in rows)
    return text.getvalue()


def as_html(table: Table) -> str:
    """The table in a box that scrolls where it is too wide; its heads are buttons that sort."""
    numeric = [_is_numeric(row[k] for row in table.rows) for k in range(len(table.columns))]
    heads = "".join(
        f'<th scope="col"{_kind(number)}><button type="button">{escape(name)}</button></th>'
        for name, number in zip(table.columns, numeric, strict=True)
    )
    rows = "".join(f"<tr>{_row(table, row)}</tr>" for row in table.rows)
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{escape(table.title)}"><table class="data">'
        f"<thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def shown(value: Any, how: str | None = None) -> str:
    """A number with four digits, or as `how` says; an integer whole, a text as it is."""
    if _is_missing(value):
        return NOTHING
    if not _is_number(value):
        return str(value)
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if how is not None:
        return format(value, how)
    if isinstance(value, Integral):
        return str(int(value))
    number = float(value)
    return f"{number:.0f}" if 1e3 <= abs(number) < 1e6 else f"{number:.4g}"


def _row(table: Table, row: Sequence[Any]) -> str:
    cells = []
    for k, (name, value) in enumerate(zip(table.columns, row, strict=True)):
        text = escape(shown(value, table.formats.get(name)))
        if _is_missing(value):
            marks = ' class="none"'
        elif _is_number(value):
            marks = f' class="number" data-value="{_exact(value).replace("inf", "Infinity")}"'
        else:
            marks = f' class="{"short" if len(text) <= SHORT else "long"}"'
        cells.append(f'<th scope="row"{marks}>{text}</th>' if k == 0 else f"<td{marks}>{text}</td>")
    return "".join(cells)


def _exact(value: Any) -> str:
    if _is_missing(value):
        return ""
    if not _is_number(value):
        return str(value)
    return str(int(value)) if isinstance(value, Integral) else repr(float(value))


def _is_missing(value: Any) -> bool:
    return value is None or (_is_number(value) and math.isnan(value))


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _is_numeric(values: Iterable[Any]) -> bool:
    """Whether a column holds numbers for the most part."""
    told = [_is_number(value) for value in values if not _is_missing(value)]
    return 2 * sum(told) > len(told)


def _kind(number: bool) -> str:
    return ' class="number"' if number else ""
