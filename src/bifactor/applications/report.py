"""What the reports of fits share: their style, charts of a run, settings and provenance."""

from html import escape
from typing import Any

import numpy as np

from bifactor.display.svg import bar_chart, line_chart

STYLE = """
.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,25rem),1fr));gap:1rem}
section{border:1px solid var(--line);border-radius:.5rem;padding:.8rem;min-width:0}
section p{font-size:.88rem}
.curve{fill:none;stroke:var(--main);stroke-width:2}.dot,.bar,.cell{fill:var(--main)}
.error{stroke:var(--main);stroke-width:1.2}.mark{fill:none;stroke:var(--accent);stroke-width:2.5}
.diagonal{stroke:var(--accent);stroke-width:1.5;stroke-dasharray:5 4}.grid{stroke:var(--line)}
.axis{fill:none;stroke:var(--soft)}.tick{fill:var(--soft);font-size:13px}.name{fill:var(--ink);font-size:14px}
"""


def run_charts(fit: dict[str, Any]) -> list[str]:
    """Charts of the components of a fit, and of its convergence."""
    charts, history = [], fit["history"]
    values = np.array(fit["singular_values"])
    text = "The singular values of the fitted matrix without offsets: the size of each component."
    text = text if values.size else "There are no components: the rank of the fit is 0."
    charts.append(chart("Components", text, bar_chart(values, "component", "singular value")))
    objective = np.array(history["objective"])
    log = bool(np.all(objective > 0))
    curve = line_chart(np.array(history["iteration"]), objective, "iteration", "objective", whole_x=True, log_y=log)
    sentence = fit["sentence"][0].upper() + fit["sentence"][1:]
    charts.append(chart("Convergence", f"{sentence}.", curve))
    return charts


def chart(title: str, text: str, svg: str) -> str:
    """A section with a chart."""
    return f"<section><h2>{escape(title)}</h2>{svg}<p>{escape(text)}</p></section>"


def settings_of(card: dict[str, Any]) -> list[tuple[str, Any]]:
    """The settings of a fit, in words."""
    words = {True: "yes", False: "no"}
    return [
        (name.replace("_", " "), words[value] if isinstance(value, bool) else value)
        for name, value in card["settings"].items()
        if value is not None
    ]


def provenance(card: dict[str, Any]) -> list[tuple[str, str]]:
    """The data, date and versions of a fit."""
    machine = card["machine"]
    versions = ", ".join(f"{name} {number}" for name, number in machine["packages"].items())
    data = card["data"]
    names = {"sha256": "SHA-256 of the data", "content": "content of the blocks"}
    known = [(words, data[name]) for name, words in names.items() if name in data]
    return [*known, ("written", machine["created"]), ("versions", versions)]
