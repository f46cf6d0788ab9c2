"""Verdicts: how many of each there are, and each with the numbers behind it."""

from collections import Counter
from collections.abc import Iterable
from html import escape

from bifactor_reproduce.harness.items import Verdict
from bifactor_reproduce.report.section import Section

HOLDS, FAILS, UNTOLD = "holds", "does not hold", "cannot tell"

COLUMNS = ("experiment", "claim of", "claim", "verdict", "numbers", "note")

SIGNS = {HOLDS: ("good", "✓"), FAILS: ("bad", "✗"), UNTOLD: ("open", "?")}


def said(verdict: Verdict) -> str:
    """The verdict in words."""
    if verdict.holds is None:
        return UNTOLD
    return HOLDS if verdict.holds else FAILS


def verdicts(sections: Iterable[Section], ours: bool) -> list[Verdict]:
    """Those on the paper's claims, or those on bifactor's own."""
    found = [section.findings for section in sections if section.findings is not None]
    return [verdict for findings in found for verdict in findings.verdicts if verdict.ours == ours]


def counts(judged: Iterable[Verdict]) -> list[tuple[int, str]]:
    """How many hold, how many do not, and how many these numbers cannot tell."""
    number = Counter(said(verdict) for verdict in judged)
    return [
        (number[HOLDS], "holds" if number[HOLDS] == 1 else "hold"),
        (number[FAILS], "does not hold" if number[FAILS] == 1 else "do not hold"),
        (number[UNTOLD], "cannot tell"),
    ]


def tally(section: Section) -> str:
    """The verdicts of a section in one line."""
    lines = []
    for name, ours in (("the paper's claims", False), ("bifactor's own", True)):
        some = [f"{count} {word}" for count, word in counts(verdicts([section], ours)) if count]
        if some:
            lines.append(f"{name}: {', '.join(some)}")
    return "; ".join(lines)


def address(section: Section, number: int) -> str:
    """The part of the page where a verdict is."""
    return f"verdict-{section.name}-{number}"


def mark(verdict: Verdict) -> str:
    """Words and a sign, so that colour alone says nothing."""
    word = said(verdict)
    kind, sign = SIGNS[word]
    return f'<span class="mark {kind}"><span aria-hidden="true">{sign} </span>{word}</span>'


def listed(section: Section) -> str:
    """All verdicts of a section, first those on the paper."""
    if section.findings is None:
        return ""
    parts = []
    for name, ours in (("What the paper claims", False), ("What bifactor adds", True)):
        some = [_entry(address(section, k), one) for k, one in enumerate(section.findings.verdicts) if one.ours == ours]
        if some:
            parts.append(f'<h3>{name}</h3><ul class="verdicts">{"".join(some)}</ul>')
    return "".join(parts)


def lines(sections: Iterable[Section]) -> list[tuple[str, ...]]:
    """The rows of `COLUMNS`."""
    return [
        (section.name, "bifactor" if one.ours else "paper", one.claim, said(one), one.numbers, one.note)
        for section in sections
        if section.findings is not None
        for one in section.findings.verdicts
    ]


def _entry(place: str, verdict: Verdict) -> str:
    kind = SIGNS[said(verdict)][0]
    note = f'<p class="why">{escape(verdict.note)}</p>' if verdict.note else ""
    return (
        f'<li class="{kind}" id="{place}">{mark(verdict)} <b>{escape(verdict.claim)}</b>'
        f"<p>{escape(verdict.numbers)}</p>{note}</li>"
    )
