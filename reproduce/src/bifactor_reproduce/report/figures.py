"""Figures as files, and as part of a page on which they take its colours."""

import io
import re
from dataclasses import dataclass
from html import escape
from typing import Any

from bifactor.plots import matplotlib_or_advice
from bifactor_reproduce.harness.items import Figure
from bifactor_reproduce.report.panels import Box, Parts, number_all, parts

INK, PAPER = "#1d2530", "#fefefe"
"""Of letters and axes, and behind legends: on the page these two become the page's own."""

COLOURS = (
    "#2f7fd0",
    "#d9701e",
    "#2f9a5a",
    "#d64550",
    "#9068d0",
    "#1797a8",
    "#d05aa5",
    "#94862a",
    "#7c8794",
    "#a9714b",
)
"""Bright enough for night and dark enough for day: each has a contrast above 3 with both pages."""

DOTS = 150
"""An inch, in PNG files and in pictures inside of SVG ones."""

ROOT = "figure_1"
"""The id under which matplotlib puts all that it draws."""

STYLE: dict[str, Any] = {
    "axes.axisbelow": True,
    "axes.edgecolor": INK,
    "axes.facecolor": "none",
    "axes.grid": True,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.8,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 11,
    "figure.dpi": 72,
    "figure.facecolor": "none",
    "font.family": "DejaVu Sans",  # which comes with matplotlib, so that figures are the same everywhere
    "font.size": 10.5,
    "grid.alpha": 0.16,
    "grid.color": INK,
    "grid.linewidth": 0.7,
    "hatch.color": INK,
    "image.cmap": "viridis",
    "legend.edgecolor": PAPER,
    "legend.facecolor": PAPER,
    "legend.fontsize": 9.5,
    "legend.framealpha": 0.8,
    "lines.linewidth": 1.8,
    "lines.markersize": 5,
    "patch.edgecolor": INK,
    "svg.fonttype": "path",  # a phone has other letters, and cropped panels must not cut them
    "text.color": INK,
    "xtick.color": INK,
    "xtick.labelsize": 9.5,
    "ytick.color": INK,
    "ytick.labelsize": 9.5,
}


@dataclass(frozen=True)
class Drawing:
    """A figure in three forms."""

    png: bytes
    svg: str
    inline: str
    """For the page: without a background, its letters in the page's colour."""


def drawn(figure: Figure) -> Drawing:
    """Draw once, on white paper; nothing of what pyplot keeps is touched, and the bytes are the same each time."""
    matplotlib_or_advice()
    from cycler import cycler
    from matplotlib import style
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas

    settings = {**STYLE, "axes.prop_cycle": cycler(color=COLOURS), "svg.hashsalt": figure.name}
    png, svg = io.BytesIO(), io.BytesIO()
    with style.context(["default", settings]):
        canvas = Canvas(figsize=figure.size, layout="constrained")
        FigureCanvasAgg(canvas)
        figure.draw(canvas)
        number_all(canvas)
        for ax in canvas.axes:
            if ax.images:  # which lines would cross
                ax.grid(False)
        canvas.savefig(png, format="png", dpi=DOTS, facecolor="white", metadata={"Software": None})
        canvas.set_layout_engine("none")  # all is in its place, and stays there in the other forms
        nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        canvas.savefig(svg, format="svg", dpi=DOTS, metadata=nothing)
        apart = parts(canvas)
    text = svg.getvalue().decode()
    return Drawing(png.getvalue(), _alone(text), _inline(text, figure, apart))


def _alone(svg: str) -> str:
    """On white, and without the address of a document type, which some programs would go and read."""
    head, body = _cut(svg)
    white = '<rect width="100%" height="100%" fill="#ffffff"/>'
    return f'<?xml version="1.0" encoding="utf-8"?>\n{head}{white}{body.replace(PAPER, "#ffffff")}'


def _inline(svg: str, figure: Figure, apart: Parts) -> str:
    """The drawing, and on narrow screens its panels one below the other: windows on the same drawing."""
    _, body = _cut(svg)
    body = re.sub(r"<!--.*?-->\s*|<defs>\s*<style.*?</style>\s*</defs>\s*", "", body, flags=re.DOTALL)
    body = _own_ids(body.replace("xlink:href=", "href="), f"{figure.name}.")
    body = body.replace(INK, "currentColor").replace(PAPER, "var(--page)")
    label = f'role="img" aria-label="{escape(figure.title)}"'
    whole = f'<div class="scroll whole">{_frame(Box(0, 0, *(72 * side for side in figure.size)), label)}{body}</div>'
    if not apart.panels:
        return f'<div class="drawing">{whole}</div>'
    use = f'<use href="#{figure.name}.{ROOT}"/></svg>'
    keys = "".join(f'<svg {_view(box)} style="width:{1.3 * box.width:.0f}px">{use}' for box in apart.keys)
    windows = "".join(f'<div class="scroll">{_frame(box, "")}{use}</div>' for box in apart.panels)
    above = f'<div class="keys">{keys}</div>' if keys else ""
    return f'<div class="drawing split">{whole}<div class="panels" aria-hidden="true">{above}{windows}</div></div>'


def _own_ids(body: str, prefix: str) -> str:
    """Ids that no other part of the page has: the dot of the prefix is in none of them."""
    used = {ROOT, *re.findall(r'(?:url\(|href=")#([^)"]+)', body)}  # two equal pictures have one id, which nothing uses
    body = re.sub(r' id="([^"]*)"', lambda found: f' id="{prefix}{found[1]}"' if found[1] in used else "", body)
    return body.replace('href="#', f'href="#{prefix}').replace("url(#", f"url(#{prefix}")


def _frame(box: Box, more: str) -> str:
    """The beginning of an SVG that is never so small that its letters cannot be read, nor very large."""
    limits = f"min-width:{0.9 * box.width:.0f}px;max-width:{1.6 * box.width:.0f}px"
    return f'<svg {_view(box)} style="{limits}" {more}>'


def _view(box: Box) -> str:
    return f'viewBox="{box.left:g} {box.top:g} {box.width:g} {box.height:g}"'


def _cut(svg: str) -> tuple[str, str]:
    """The opening tag, and what follows it."""
    start = svg.index("<svg")
    end = svg.index(">", start) + 1
    return svg[start:end], svg[end:]
