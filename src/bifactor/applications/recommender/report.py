"""The report of a fit to clicks: its ranking metrics, how settings were chosen, and recommendations with reasons."""

from collections.abc import Mapping
from html import escape
from typing import Any

import numpy as np

from bifactor.applications.report import STYLE, provenance, run_charts, settings_of
from bifactor.arrays import Array
from bifactor.display.html import document, facts, numbers, table
from bifactor.models.fit import Fit
from bifactor.models.recommender.evaluation import describe_gain, metric_label
from bifactor.models.recommender.explain import Reasons
from bifactor.models.recommender.hyperparameters import RANKING_DEPTH, TRIAL_RANK
from bifactor.models.top_k import RankingCriterion, popular_columns, top_columns
from bifactor.validation import pluralize

TRIALS, ITEMS, USERS, PLACES, CARRIERS = 10, 10, 3, 5, 3
"""Numbers of trials, popular items, users, recommendations per user, and reasons per recommendation that are shown."""

SETTINGS = ("unobserved", "ridge", "item_share", "item_ridge")


def report(fit: Fit, card: dict[str, Any], titles: Array | None) -> str:
    """The page, from a fit and its card; `titles` are the titles of the items."""
    data = card["data"]
    title = f"{data['file']}: {data['choices']:,} choices fitted by {pluralize(card['fit']['rank'], 'component')}"
    notes = "".join(f'<p class="note">{escape(note)}</p>' for note in card["notes"])
    called = _called(fit, titles)
    sections = [*_check(card), _trials(card["choice"]), _popular(fit, called), *run_charts(card["fit"])]
    return document(
        title,
        f"<h1>{escape(title)}</h1><p>{escape(data['layout'])}.</p>{notes}{_figures(card)}"
        f'<div class="charts">{"".join(sections)}</div>'
        f'<section style="margin-top:1rem"><h2>Recommendations and their reasons</h2>{_some(fit, called)}</section>'
        f'<section style="margin-top:1rem"><h2>How it was made</h2>{_made(card)}</section>',
        STYLE,
    )


def _figures(card: dict[str, Any]) -> str:
    data, fit, choice = card["data"], card["fit"], card["choice"]
    figures = []
    for score in card["scores"].values():
        name = score["gain"]["metric"]
        figures += [(f"{score['metrics'][name]['mean']:.4f}", f"{metric_label(name)}, held out")]
        figures += [(f"{score['metrics'][name]['popular']:.4f}", f"{metric_label(name)} of the most popular items")]
    figures += [
        (f"{data['choices']:,}", "choices"),
        (f"{data['rows']:,} × {data['cols']:,}", "users × items"),
        (
            str(fit["rank"]),
            "components" + (", the smaller side" if fit["rank"] < card["settings"]["rank"] else ", given"),
        ),
        (f"{choice['unobserved']:.3g}", "weight of items not chosen"),
        (f"{choice['ridge']:.3g}", "ridge"),
        (f"{choice['item_share']:.0%}", "of scores are item-to-item"),
        (f"{card['timings']['all']:.1f} s", "total time"),
    ]
    return numbers(figures)


def _check(card: dict[str, Any]) -> list[str]:
    """How well the first fit ranked the held-out choices, beside a list of popular items."""
    sections = []
    for score in card["scores"].values():
        lines = [
            (metric_label(name), f"{one['mean']:.4f}", _interval(one), f"{one['popular']:.4f}")
            for name, one in score["metrics"].items()
        ]
        words = held_out_choices(card)
        text = (
            f"{words[0].upper()}{words[1:]} were held out of a first fit, which ranked all items for "
            f"{pluralize(score['users'], 'user')}. Recall is {score['recall']}, where T are the held-out choices of a "
            f"user. {describe_gain(score)}"
        )
        shown = table(("", "this fit", "95 % interval", "most popular"), lines)
        sections.append(f"<section><h2>How well it ranks</h2>{shown}<p>{escape(text)}</p></section>")
    return sections


def held_out_choices(card: Mapping[str, Any]) -> str:
    """Which choices were held out: a share of them, or those in some cells."""
    holdout = card["settings"]["holdout"]
    return f"the choices in {holdout}" if isinstance(holdout, str) else f"about {holdout:.0%} of the choices"


def _interval(one: dict[str, float]) -> str:
    return f"{one['low']:.4f}–{one['high']:.4f}" if "low" in one else ""


def trial_used(choice: Mapping[str, Any]) -> dict[str, Any] | None:
    """The trial of the settings in use: of several the last, which is the one with all components."""
    wanted = [choice[name] for name in SETTINGS]
    same = [one for one in choice["trials"] if np.allclose([one[name] for name in SETTINGS], wanted)]
    return same[-1] if same else None


def _trials(choice: dict[str, Any]) -> str:
    """The trial of the settings in use, then the others, best first."""
    used = trial_used(choice)
    tried = sorted(choice["trials"], key=lambda one: (one is not used, -one["users"], -one["ndcg"]))
    head = "<h2>How the weights and the ridge were chosen</h2>"
    if not tried:
        return f"<section>{head}<p>They were given, or there were too few users to choose them by.</p></section>"
    names = ("not chosen", "ridge", "item-to-item", "its ridge", f"NDCG@{RANKING_DEPTH}", "users")
    lines = [
        (*(f"{one[name]:.3g}" for name in SETTINGS), f"{one['ndcg']:.4f}", f"{one['users']:,}")
        for one in tried[:TRIALS]
    ]
    rest = f", then the best others, {TRIALS} in all" if len(tried) > TRIALS else ", then the others"
    text = (
        f"{pluralize(len(tried), 'trial')}, judged on held-out choices of held-out users. The first line was "
        f"used{rest}. Weights and ridges were compared with at most {TRIAL_RANK} components, item-to-item scores with "
        "all of them."
    )
    return f"<section>{head}{table(names, lines)}<p>{escape(text)}</p></section>"


def _popular(fit: Fit, called: Array) -> str:
    places, shares = popular_columns(fit.seen, len(fit.cols), ITEMS)
    lines = zip(called[places], (f"{share:.1%}" for share in shares), strict=True)
    text = "The share of users who chose each item. These are recommended to users without choices."
    return f"<section><h2>Popular items</h2>{table(('item', 'users'), lines)}<p>{escape(text)}</p></section>"


def _some(fit: Fit, called: Array) -> str:
    """Users with many, some and few choices, their recommendations, and the reasons for these."""
    counts = fit.seen.counts
    order = np.argsort(-counts, kind="stable")[: int(np.count_nonzero(counts))]
    some = np.unique(np.linspace(0, order.size - 1, USERS).round().astype(np.int64))
    rows = order[some]
    columns, scores, _ = top_columns(
        fit, RankingCriterion(fit.model.U[rows], fit.model.V), fit.seen.select(rows), PLACES, True, None
    )
    reasons, parts = Reasons(fit), []
    for row, found, score in zip(rows.tolist(), columns, scores, strict=True):
        there = found >= 0
        carried = zip(*reasons.of(row, found[there], CARRIERS), strict=True)
        why = ("because of " + "; ".join(called[own[parts > 0]]) for own, parts in carried)
        lines = zip(called[found[there]], (f"{one:.3f}" for one in score[there]), why, strict=True)
        chose = pluralize(int(counts[row]), "choice")
        parts.append(f"<h3>{escape(str(fit.rows[row]))}, {chose}</h3>{table(('item', 'score', 'why'), lines)}")
    return "".join(parts)


def _called(fit: Fit, titles: Array | None) -> Array:
    """The titles of items, or their names where there are none."""
    names = np.array([str(name) for name in fit.cols], object)
    return names if titles is None else np.where(titles == "", names, titles)


def _made(card: dict[str, Any]) -> str:
    return facts([*settings_of(card), ("lines read", f"{card['data']['entries']:,}"), *provenance(card)])
