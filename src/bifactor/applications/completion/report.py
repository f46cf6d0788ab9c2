"""The report of a fit to values: one small, self-contained page."""

from html import escape
from typing import Any

import numpy as np

from bifactor.applications.report import STYLE, chart, provenance, run_charts, settings_of
from bifactor.arrays import Array
from bifactor.display.html import document, facts, numbers, table
from bifactor.display.svg import density, line_chart
from bifactor.models.metrics import format_scores
from bifactor.solvers.variational.noise import NOISES


def report(card: dict[str, Any], held_out: tuple[Array, Array] | None) -> str:
    """The page, from a card and from the observed and predicted values at held-out entries."""
    data, fit = card["data"], card["fit"]
    title = f"{data['file']}, completed with rank {fit['rank']}"
    notes = "".join(f'<p class="note">{escape(note)}</p>' for note in card["notes"])
    return document(
        title,
        f"<h1>{escape(title)}</h1><p>{escape(data['layout'])}.</p>{notes}{_figures(card)}"
        f'<div class="charts">{"".join(_charts(card, held_out))}</div>'
        f'<section style="margin-top:1rem"><h2>How it was made</h2>{_table(card)}</section>',
        STYLE,
    )


def _figures(card: dict[str, Any]) -> str:
    data, fit = card["data"], card["fit"]
    noise = fit["noise"]
    figures = [
        *(_scores(card["scores"]) or _score_of_choice(card)),
        (str(fit["rank"]), f"rank, {_how_rank(card)}"),
        (f"{fit['ridge']:.4g}", _ridge(card)) if noise is None else (f"±{noise['std']:.3g}", "noise, estimated"),
        (f"{data['entries']:,}", "entries"),
        (f"{data['rows']:,} × {data['cols']:,}", "rows × columns"),
        (f"{100 * data['observed']:.3g} %", "of the matrix is known"),
        (f"{fit['iterations']:,}", "iterations of the last fit"),
        (f"{card['timings']['all']:.1f} s", "total time"),
    ]
    return numbers(figures)


def _scores(scores: dict[str, Any]) -> list[tuple[str, str]]:
    """The main score on each set of entries that the fit was judged on."""
    names = {name: "accuracy" if "accuracy" in score else "rmse" for name, score in scores.items()}
    return [(f"{scores[name][key]:.4f}", f"{key.replace('rmse', 'RMSE')}, {name}") for name, key in names.items()]


def _score_of_choice(card: dict[str, Any]) -> list[tuple[str, str]]:
    """The held-out error with the noise or the ridge that was chosen by it; empty if nothing was chosen."""
    noise, path = card["fit"]["noise"], card["path"]
    if noise is not None:
        found = [(2 * one["held_out"]) ** 0.5 for one in noise["tried"] if one["chosen"]]
        return [(f"{error:.4f}", "RMSE at entries held out to choose the noise") for error in found]
    if path is None:
        return []
    squared = card["settings"]["loss"] == "squared"
    least = min(path["held_out"])
    name = f"{'RMSE' if squared else 'mean loss'} at entries held out to choose the ridge"
    return [(f"{(2 * least) ** 0.5 if squared else least:.4f}", name)]


def _how_rank(card: dict[str, Any]) -> str:
    if card["settings"]["rank"] != "auto":
        return "given"
    if card["fit"]["noise"] is not None:
        return "the components that the data support"
    return "chosen by the fit" if card["path"] is None else "chosen with the ridge"


def _ridge(card: dict[str, Any]) -> str:
    if card["path"] is not None:
        return "ridge, chosen on held-out entries"
    return "ridge, too few entries to choose it" if card["settings"]["ridge"] in (None, "auto") else "ridge, given"


def _charts(card: dict[str, Any], held_out: tuple[Array, Array] | None) -> list[str]:
    fit, path = card["fit"], card["path"]
    charts = []
    if held_out is not None:
        text = "Each column is the distribution of predictions for an observed value; the dashed line is exact."
        charts.append(chart("Predictions at held-out entries", text, density(*held_out)))
    if path is not None and len(path["ridges"]) > 1:
        charts.append(chart("How the ridge was chosen", *_path(path, card["settings"]["loss"])))
    if fit["noise"] is not None and fit["noise"]["tried"]:
        charts.append(_tried(fit["noise"]["tried"]))
    return charts + run_charts(fit)


def _path(path: dict[str, Any], loss: str) -> tuple[str, str]:
    ridges, held = np.array(path["ridges"]), np.array(path["held_out"])
    errors, name = np.array(path["standard_error"]), "held-out loss"
    if loss == "squared":  # the loss is half the mean square; the root's error is the loss's error over the root
        root = (2 * held) ** 0.5
        held, errors, name = root, errors / np.maximum(root, 1e-300), "held-out RMSE"
    shown = ridges > 0  # a ridge of 0 cannot be shown on a logarithmic axis
    best = int(np.argmin(held))
    mark = int(np.count_nonzero(shown[:best])) if shown[best] else None
    text = (
        "Each ridge was fitted without a tenth of the entries and judged on these. Bars are standard errors of the "
        "difference from the best ridge, which is circled."
    )
    curve = line_chart(ridges[shown], held[shown], "ridge", name, log_x=True, errors=errors[shown], mark=mark)
    return text if mark is not None else text + " A fit without a ridge was even better.", curve


def _tried(tried: list[dict[str, Any]]) -> str:
    """The noise models that were tried, and how well each predicts."""
    text = (
        "Each noise model and prior was fitted without a tenth of the entries and judged on these. The one marked ✓ "
        "was used: the best, or a simpler one that is not clearly worse."
    )
    lines = [
        (
            "✓" * one["chosen"],
            NOISES[one["noise"]].kind,
            one["prior"],
            " and ".join(name for name in ("features", "implicit") if one[name]) or "none",
            f"{(2 * one['held_out']) ** 0.5:.5g}",
        )
        for one in sorted(tried, key=lambda one: one["held_out"])
    ]
    shown = table(("", "noise", "prior", "features", "held-out RMSE"), lines)
    return f"<section><h2>How the noise was chosen</h2>{shown}<p>{escape(text)}</p></section>"


def _table(card: dict[str, Any]) -> str:
    data = card["data"]
    values, again = data["values"], data["repeated"]
    return facts(
        [
            *settings_of(card),
            *((f"score, {name}", format_scores(score)) for name, score in card["scores"].items()),
            ("values", f"{values['least']:g} to {values['largest']:g}, mean {values['mean']:.4g}"),
            ("repeated pairs", f"{again:,}, each kept as a separate measurement" if again else "0"),
            ("without a value", f"{data['without_value']:,}"),
            *provenance(card),
        ]
    )
