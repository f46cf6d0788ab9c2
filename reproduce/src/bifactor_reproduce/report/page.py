"""The page of the report."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from html import escape
from typing import Any

from bifactor.display.html import document, facts, numbers
from bifactor_reproduce.harness.items import Figure, Table
from bifactor_reproduce.report.section import Section
from bifactor_reproduce.report.style import STYLE
from bifactor_reproduce.report.tables import NOTHING, SCRIPT, as_html, shown
from bifactor_reproduce.report.verdicts import address, counts, listed, mark, tally, verdicts

TITLE = "The experiments of the paper, run again"

PAPER = (
    "D. Park, A. Kyrillidis, C. Caramanis, S. Sanghavi: Finding low-rank solutions via non-convex matrix "
    "factorization, efficiently and provably."
)

INTRODUCTION = (
    "Each claim was judged by numbers that were computed for this page; where the paper prints numbers, they stand "
    "beside ours. A click on the head of a column sorts its table."
)


def page(sections: Sequence[Section], about: Mapping[str, Any], drawings: Mapping[str, str]) -> str:
    """The whole page; `drawings` has the figures by their names, as HTML."""
    scale = f"<p>Scale: <b>{escape(str(about['scale']))}</b>.</p>" if "scale" in about else ""
    body = "".join(
        [
            f"<header><h1>{TITLE}</h1><p>{PAPER}</p><p>{INTRODUCTION}</p>{scale}</header><main>",
            _summary(sections),
            _contents(sections),
            *(_section(section, k, drawings) for k, section in enumerate(sections, start=1)),
            f'<section id="environment"><h2>Environment</h2>{facts((a, told(b)) for a, b in about.items())}</section>',
            '<p class="files">All verdicts: <a href="verdicts.csv">CSV</a></p></main>',
        ]
    )
    return document(TITLE, body, STYLE, SCRIPT)


def told(value: Any) -> str:
    """A setting in words."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {told(one)}" for name, one in value.items()) or NOTHING
    if is_dataclass(value) and not isinstance(value, type):
        return ", ".join(f"{name} {told(one)}" for name, one in _settings(value))
    if isinstance(value, Sequence) and not isinstance(value, str):
        nested = any(isinstance(one, Sequence) and not isinstance(one, str) for one in value)
        return ("; " if nested else ", ").join(told(one) for one in value) or NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else shown(value)


def duration(seconds: float) -> str:
    """Seconds, minutes or hours."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def _summary(sections: Sequence[Section]) -> str:
    parts = ['<section id="summary"><h2>Summary</h2>']
    for name, ours in (("What the paper claims", False), ("What bifactor adds", True)):
        judged = verdicts(sections, ours)
        if judged or not ours:
            parts.append(f"<h3>{name}</h3>{numbers(counts(judged))}")
    open_ones = [
        f'<li>{mark(one)} <a href="#{address(section, k)}">{escape(one.claim)}</a></li>'
        for section in sections
        if section.findings is not None
        for k, one in enumerate(section.findings.verdicts)
        if not one.holds
    ]
    if open_ones:
        parts.append("<h3>Claims that do not hold, or of which these numbers cannot tell</h3>")
        parts.append(f'<ul class="short">{"".join(open_ones)}</ul>')
    return "".join(parts) + "</section>"


def _contents(sections: Sequence[Section]) -> str:
    lines = [_contents_line(section) for section in sections]
    lines.append('<li><a href="#environment">Environment</a></li>')
    return f'<nav aria-label="Contents"><h2>Contents</h2><ol>{"".join(lines)}</ol></nav>'


def _contents_line(section: Section) -> str:
    state = tally(section) if section.findings is not None else _without(section)
    links = "".join(f'<li><a href="#{_address(item)}">{escape(item.title)}</a></li>' for item in section.items)
    more = f"<details><summary>{_parts(section)}</summary><ul>{links}</ul></details>" if links else ""
    return (
        f'<li><a href="#section-{section.name}">{escape(section.title)}</a> <small>{escape(section.place)}</small>'
        f"<p>{escape(state)}</p>{more}</li>"
    )


def _parts(section: Section) -> str:
    tables = sum(isinstance(item, Table) for item in section.items)
    kinds = ((tables, "table"), (len(section.items) - tables, "figure"))
    return " and ".join(f"{count} {name}{'s' if count > 1 else ''}" for count, name in kinds if count)


def _section(section: Section, number: int, drawings: Mapping[str, str]) -> str:
    findings = section.findings
    parts = [
        f'<section id="section-{section.name}"><h2>{number}. {escape(section.title)}</h2>',
        f'<p class="place">{escape(section.place)}</p>',
    ]
    reason = _without(section) if findings is None else section.reason
    if reason:
        parts.append(f'<p class="note">{escape(reason)}</p>')
    if section.failed:
        failed = "".join(f"<li>{escape(label)}: {escape(error)}</li>" for label, error in section.failed)
        count = len(section.failed)
        parts.append(f'<div class="note">{count} {"cell" if count == 1 else "cells"} failed:<ul>{failed}</ul></div>')
    if findings is not None:
        parts += [f'<p class="prose">{escape(note)}</p>' for note in findings.notes]
        parts.append(listed(section))
        parts += [_item(item, drawings) for item in findings.items]
        if not findings.items and not findings.verdicts:
            parts.append("<p>There is nothing to show.</p>")
    settings = facts((name.replace("_", " "), told(value)) for name, value in _settings(section.configuration))
    parts.append(f"<details><summary>Configuration and seeds</summary>{settings}</details>")
    if findings is not None:
        parts.append(f'<p class="files">Processor time of all cells: {duration(section.seconds)}</p>')
    return "".join(parts) + "</section>"


def _without(section: Section) -> str:
    return f"No findings. {section.reason or 'No cell gave an outcome.'}"


def _item(item: Table | Figure, drawings: Mapping[str, str]) -> str:
    if isinstance(item, Table):
        content, files = as_html(item), [f"tables/{item.name}.csv"]
    else:
        content, files = drawings[item.name], [f"figures/{item.name}.{kind}" for kind in ("png", "svg")]
    links = " ".join(f'<a href="{file}">{file[-3:].upper()}</a>' for file in files)
    return (
        f'<article id="{_address(item)}"><h3>{escape(item.title)}</h3>{content}'
        f'<p class="caption">{escape(item.caption)}</p><p class="files">{links}</p></article>'
    )


def _address(item: Table | Figure) -> str:
    return f"{'table' if isinstance(item, Table) else 'figure'}-{item.name}"


def _settings(configuration: Any) -> list[tuple[str, Any]]:
    if not is_dataclass(configuration):
        return []
    return [(field.name, getattr(configuration, field.name)) for field in fields(configuration)]
