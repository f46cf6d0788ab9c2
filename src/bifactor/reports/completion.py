"""The report of a fit: one small page that needs nothing else."""

from html import escape
from typing import Any

import numpy as np

from bifactor.arrays import Array
from bifactor.markup.fragments import facts, numbers, table
from bifactor.markup.svg import bar_chart, density, line_chart
from bifactor.models.scores import spoken
from bifactor.reports.page import document

NOISES = {"one": "one variance", "student": "Student's t", "both": "by rows and columns"}
NOISES |= {side: f"by {side}" for side in ("rows", "columns")}

STYLE = """
.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,25rem),1fr));gap:1rem}
section{border:1px solid var(--line);border-radius:.5rem;padding:.8rem;min-width:0}
section p{font-size:.88rem}
.curve{fill:none;stroke:var(--main);stroke-width:2}.dot,.bar,.cell{fill:var(--main)}
.error{stroke:var(--main);stroke-width:1.2}.mark{fill:none;stroke:var(--accent);stroke-width:2.5}
.diagonal{stroke:var(--accent);stroke-width:1.5;stroke-dasharray:5 4}.grid{stroke:var(--line)}
.axis{fill:none;stroke:var(--soft)}.tick{fill:var(--soft);font-size:13px}.name{fill:var(--ink);font-size:14px}
"""


def report(card: dict[str, Any], held_out: tuple[Array, Array] | None) -> str:
    """The page, from a card and from what was observed and predicted at entries that were held out."""
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
    how = "chosen by the fit" if card["settings"]["rank"] == "auto" else "given"
    figures = [
        *_scores(card["scores"]),
        (f"{data['entries']:,}", "entries"),
        (f"{data['rows']:,} × {data['cols']:,}", "rows × columns"),
        (f"{100 * data['observed']:.3g} %", "of the matrix is known"),
        (str(fit["rank"]), f"rank, {how}"),
        (f"{fit['alpha']:.4g}", "ridge") if noise is None else (f"±{noise['std']:.3g}", "noise"),
        (f"{card['timings']['all']:.1f} s", "total time"),
        (f"{fit['iterations']:,}", "iterations of the last fit"),
    ]
    return numbers(figures)


def _scores(scores: dict[str, Any]) -> list[tuple[str, str]]:
    """What a fit is judged by, for each set of entries that it was judged on."""
    names = {name: "accuracy" if "accuracy" in score else "rmse" for name, score in scores.items()}
    return [(f"{scores[name][key]:.4f}", f"{key.replace('rmse', 'RMSE')}, {name}") for name, key in names.items()]


def _charts(card: dict[str, Any], held_out: tuple[Array, Array] | None) -> list[str]:
    fit, path = card["fit"], card["path"]
    charts = []
    if held_out is not None:
        text = "Each column shows how the predictions for one observed value are spread. The dashed line is exact."
        charts.append(chart("Entries that the fit has not seen", text, density(*held_out)))
    if path is not None and len(path["ridges"]) > 1:
        charts.append(chart("How the ridge was chosen", *_path(path, card["settings"]["loss"])))
    if fit["noise"] is not None and fit["noise"]["tried"]:
        charts.append(_tried(fit["noise"]["tried"]))
    return charts + run_charts(fit)


def run_charts(fit: dict[str, Any]) -> list[str]:
    """The components of a fit, and how the run went."""
    charts, history = [], fit["history"]
    values = np.array(fit["singular_values"])
    text = "The singular values of the fitted matrix, the offsets aside: how much each component carries."
    text = text if values.size else "There are no components: the rank of the fit is 0."
    charts.append(chart("Components", text, bar_chart(values, "component", "singular value")))
    objective = np.array(history["objective"])
    log = bool(np.all(objective > 0))
    curve = line_chart(np.array(history["iteration"]), objective, "iteration", "objective", whole_x=True, log_y=log)
    charts.append(chart("Convergence", f"The run has {fit['sentence']}.", curve))
    return charts


def _path(path: dict[str, Any], loss: str) -> tuple[str, str]:
    ridges, held = np.array(path["ridges"]), np.array(path["held_out"])
    errors, name = np.array(path["standard_error"]), "held-out loss"
    if loss == "squared":  # half the mean square, so that an error of it is the error of its root times that root
        root = (2 * held) ** 0.5
        held, errors, name = root, errors / np.maximum(root, 1e-300), "held-out RMSE"
    shown = ridges > 0  # none at all has no place on a logarithmic axis
    best = int(np.argmin(held))
    mark = int(np.count_nonzero(shown[:best])) if shown[best] else None
    text = (
        "A tenth of the entries was held out, and each ridge was tried on it. Bars are standard errors of the "
        "difference to the best ridge, which is circled."
    )
    curve = line_chart(ridges[shown], held[shown], "ridge", name, log_x=True, errors=errors[shown], mark=mark)
    return text if mark is not None else text + " A fit without a ridge was better still.", curve


def _tried(tried: list[dict[str, Any]]) -> str:
    """The kinds of noise that were tried, and how well each predicts."""
    text = "A tenth of the entries was held out, and each kind of noise and prior was tried on it; the best was taken."
    lines = [
        (
            NOISES.get(one["noise"], one["noise"]),
            one["prior"],
            " and ".join(name for name in ("features", "implicit") if one[name]) or "none",
            f"{(2 * one['held_out']) ** 0.5:.5g}",
        )
        for one in sorted(tried, key=lambda one: one["held_out"])
    ]
    shown = table(("noise", "prior", "features", "held-out RMSE"), lines)
    return f"<section><h2>How the noise was chosen</h2>{shown}<p>{escape(text)}</p></section>"


def chart(title: str, text: str, svg: str) -> str:
    """A section with a picture."""
    return f"<section><h2>{escape(title)}</h2>{svg}<p>{escape(text)}</p></section>"


def _table(card: dict[str, Any]) -> str:
    data = card["data"]
    lines = [(name.replace("_", " "), value) for name, value in card["settings"].items() if value is not None]
    lines += [(f"score, {name}", spoken(score)) for name, score in card["scores"].items()]
    values = data["values"]
    lines += [
        ("values", f"{values['least']:g} to {values['largest']:g}, mean {values['mean']:.4g}"),
        ("repeated pairs", f"{data['repeated']:,}, each kept as a measurement of its own"),
        ("without a value", f"{data['without_value']:,}"),
        *provenance(card),
    ]
    return facts(lines)


def provenance(card: dict[str, Any]) -> list[tuple[str, str]]:
    """What made a fit, and when."""
    machine = card["machine"]
    versions = ", ".join(f"{name} {number}" for name, number in machine["packages"].items())
    return [("SHA-256 of the data", card["data"]["sha256"]), ("written", machine["created"]), ("versions", versions)]
