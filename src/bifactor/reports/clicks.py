"""The report of a fit to clicks: how well it ranks, how it was chosen, and what it recommends to some users and why."""

from html import escape
from typing import Any

import numpy as np

from bifactor.arrays import Array
from bifactor.markup.fragments import facts, numbers, table
from bifactor.models.explanation import Reasons
from bifactor.models.fit import Fit
from bifactor.models.judging import spelt, worth
from bifactor.models.orders import Order
from bifactor.models.recommending import popular, served
from bifactor.reports.completion import STYLE, provenance, run_charts
from bifactor.reports.page import document
from bifactor.words import counted

TRIALS, ITEMS, USERS, PLACES, CARRIERS = 10, 10, 3, 5, 3
"""Shown: the best trials, the most popular items, some users, what each of them gets, and what carries that."""


def report(fit: Fit, card: dict[str, Any], titles: Array | None) -> str:
    """The page, from a fit and its card; `titles` are what the items are called for people."""
    data = card["data"]
    title = f"{data['file']}: {data['choices']:,} choices fitted by {counted(card['fit']['rank'], 'component')}"
    notes = "".join(f'<p class="note">{escape(note)}</p>' for note in card["notes"])
    called = _called(fit, titles)
    sections = [*_check(card), _trials(card["choice"]), _popular(fit, called), *run_charts(card["fit"])]
    return document(
        title,
        f"<h1>{escape(title)}</h1><p>{escape(data['layout'])}.</p>{notes}{_figures(card)}"
        f'<div class="charts">{"".join(sections)}</div>'
        f'<section style="margin-top:1rem"><h2>What it recommends, and why</h2>{_some(fit, called)}</section>'
        f'<section style="margin-top:1rem"><h2>How it was made</h2>{_made(card)}</section>',
        STYLE,
    )


def _figures(card: dict[str, Any]) -> str:
    data, fit, choice = card["data"], card["fit"], card["choice"]
    figures = []
    for score in card["scores"].values():
        name = score["gain"]["metric"]
        figures += [(f"{score['metrics'][name]['mean']:.4f}", f"{spelt(name)}, held out")]
        figures += [(f"{score['metrics'][name]['popular']:.4f}", f"{spelt(name)} of the most popular items")]
    figures += [
        (f"{data['choices']:,}", "choices"),
        (f"{data['rows']:,} × {data['cols']:,}", "users × items"),
        (str(fit["rank"]), "components"),
        (f"{choice['unobserved']:.3g}", "weight of what was not chosen"),
        (f"{choice['alpha']:.3g}", "ridge"),
        (f"{choice['item_share']:.0%}", "of scores item-to-item"),
        (f"{card['timings']['all']:.1f} s", "total time"),
    ]
    return numbers(figures)


def _check(card: dict[str, Any]) -> list[str]:
    """How well it ranked what it had not seen, beside what is popular."""
    sections = []
    for score in card["scores"].values():
        lines = [
            (spelt(name), f"{one['mean']:.4f}", _interval(one), f"{one['popular']:.4f}")
            for name, one in score["metrics"].items()
        ]
        text = (
            f"{card['settings']['holdout']:.0%} of the choices of {counted(score['users'], 'user')}, at least one "
            f"each, were held out of a first fit, which ranked all items. Recall is {score['recall']}, T being what "
            f"was held out of a user. {worth(score)}"
        )
        shown = table(("", "this fit", "95 % interval", "most popular"), lines)
        sections.append(f"<section><h2>How well it ranks</h2>{shown}<p>{escape(text)}</p></section>")
    return sections


def _interval(one: dict[str, float]) -> str:
    return f"{one['low']:.4f}–{one['high']:.4f}" if "low" in one else ""


def _trials(choice: dict[str, Any]) -> str:
    """The settings that were tried, best first."""
    tried = sorted(choice["trials"], key=lambda one: (-one["users"], -one["ndcg"]))
    head = "<h2>How the weights were chosen</h2>"
    if not tried:
        return f"<section>{head}<p>They were given, or there were too few users to choose them by.</p></section>"
    names = ("not chosen", "ridge", "item-to-item", "its ridge", "NDCG", "users")
    lines = [
        (
            *(f"{one[name]:.3g}" for name in ("unobserved", "alpha", "item_share", "item_alpha")),
            f"{one['ndcg']:.4f}",
            f"{one['users']:,}",
        )
        for one in tried[:TRIALS]
    ]
    rest = f" The best {TRIALS} are shown." if len(tried) > TRIALS else ""
    text = f"{counted(len(tried), 'choice')} were tried on the held-out choices of held-out users.{rest}"
    return f"<section>{head}{table(names, lines)}<p>{escape(text)}</p></section>"


def _popular(fit: Fit, called: Array) -> str:
    places, shares = popular(fit.seen, len(fit.cols), ITEMS)
    lines = zip(called[places], (f"{share:.1%}" for share in shares), strict=True)
    text = "The share of users who chose each. Users without a history get these."
    return f"<section><h2>What is popular</h2>{table(('item', 'users'), lines)}<p>{escape(text)}</p></section>"


def _some(fit: Fit, called: Array) -> str:
    """Users with many, a middling number of and few choices, what they get, and what carries it."""
    counts = fit.seen.counts
    order = np.argsort(-counts, kind="stable")[: int(np.count_nonzero(counts))]
    some = np.unique(np.linspace(0, order.size - 1, USERS).round().astype(np.int64))
    rows = order[some]
    columns, scores, _ = served(fit, Order(fit.model.U[rows], fit.model.V), fit.seen.taken(rows), PLACES, True, None)
    reasons, parts = Reasons(fit), []
    for row, found, score in zip(rows.tolist(), columns, scores, strict=True):
        there = found >= 0
        carried = zip(*reasons.of(row, found[there], CARRIERS), strict=True)
        why = ("because of " + "; ".join(called[own[parts > 0]]) for own, parts in carried)
        lines = zip(called[found[there]], (f"{one:.3f}" for one in score[there]), why, strict=True)
        chose = counted(int(counts[row]), "choice")
        parts.append(f"<h3>{escape(str(fit.rows[row]))}, {chose}</h3>{table(('item', 'score', 'why'), lines)}")
    return "".join(parts)


def _called(fit: Fit, titles: Array | None) -> Array:
    """What items are called: their titles, or their names where there are none."""
    names = np.array([str(name) for name in fit.cols], object)
    return names if titles is None else np.where(titles == "", names, titles)


def _made(card: dict[str, Any]) -> str:
    lines = [(name.replace("_", " "), value) for name, value in card["settings"].items() if value is not None]
    return facts([*lines, ("lines read", f"{card['data']['entries']:,}"), *provenance(card)])
