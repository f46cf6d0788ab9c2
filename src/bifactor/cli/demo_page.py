"""The page of `bifactor demo`: a picture, ratings and a table, each with the code that does the same to your data."""

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from bifactor.arrays import Array
from bifactor.display.html import document, numbers, scrolling, table

STYLE = """
section{border-top:1px solid var(--line);padding:1.2rem 0;margin-top:1.2rem}
h2{font-size:1.25rem}
.pictures{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,22rem),1fr));gap:.8rem}
figure{margin:0}img{width:100%;height:auto;display:block;border-radius:.4rem}
figcaption{font-size:.88rem;color:var(--soft)}
.two{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,22rem),1fr));gap:1.2rem;margin:.6rem 0}
pre{background:var(--panel);border-radius:.5rem;padding:.7rem .9rem;overflow-x:auto;font-size:.85rem}
.facts td:first-child{white-space:normal;width:auto}.list td.new{color:var(--accent);font-weight:600}
"""

PICTURE = """import bifactor as bf

full = bf.ImageCompletion().fit_transform(picture, known)
# or: bifactor inpaint photo.jpg --mask mask.png -o whole.png"""
RATINGS = """model = bf.MatrixCompletion(n_components="auto").fit_long("ratings.csv")
films, stars = model.recommend(["ann"], n=5)
value, std = model.predict(["ann"], ["Solaris"], return_std=True)
# or: bifactor complete ratings.csv -o fit, and bifactor recommend fit --user ann"""
TABLE = """full = bf.TableImputer().fit_transform(frame)
# or: bifactor impute table.csv -o full.csv"""


@dataclass(frozen=True, eq=False)
class DemoPicture:
    """Pictures by name, the share of pixels that was kept, and the PSNR and seconds of each method."""

    shown: dict[str, Array]
    observed: float
    scores: dict[str, dict[str, float]]


@dataclass(frozen=True)
class Taste:
    """The best ratings of a user, and the recommendations with error bars."""

    user: int
    known: list[tuple[str, float]]
    told: list[tuple[str, float, float]]


@dataclass(frozen=True)
class Ratings:
    users: int
    films: int
    known: int
    rank: int
    errors: dict[str, float]
    level: float
    held: float
    """The share of held-out ratings inside the intervals of that level."""
    seconds: float
    tastes: list[Taste]


@dataclass(frozen=True)
class DemoTable:
    columns: tuple[str, ...]
    lines: Sequence[Sequence[tuple[Any, bool]]]
    """Cells of some rows, and which of them were filled in."""
    rows: int
    hidden: int
    scores: dict[str, dict[str, Any]]
    seconds: float


def report(picture: DemoPicture, ratings: Ratings, filled: DemoTable, seconds: float) -> str:
    """The page, which is self-contained."""
    title = "What bifactor does"
    text = (
        "Three tasks, one idea: the known entries of a low-rank matrix determine the others. Everything on this page "
        f"was computed on this machine in {seconds:.0f} seconds."
    )
    body = f"<h1>{title}</h1><p>{escape(text)}</p>{_picture(picture)}{_ratings(ratings)}{_table(filled)}"
    return document(title, body, STYLE)


def _picture(picture: DemoPicture) -> str:
    psnr = {name: f"{score['psnr']:.1f} dB at hidden pixels" for name, score in picture.scores.items()}
    said = {
        "observed": f"{picture.observed:.0%} of the pixels",
        "best blur": psnr["blur"],
        "bifactor": psnr["bifactor"],
    }
    figures = "".join(
        f'<figure><img alt="{escape(name)}" src="{_inline(shown)}">'
        f"<figcaption>{escape(', '.join(filter(None, (name, said.get(name)))))}</figcaption></figure>"
        for name, shown in picture.shown.items()
    )
    text = (
        "The photograph is completed from the pixels that are left, using groups of patches that look alike. The width "
        "of the best blur is chosen by the original; bifactor does not see the original."
    )
    return _section("A picture with holes", text, f'<div class="pictures">{figures}</div>', PICTURE)


def _ratings(ratings: Ratings) -> str:
    boxes = [
        *((f"{error:.3f}", f"RMSE, {name}") for name, error in reversed(ratings.errors.items())),
        (f"{ratings.users} × {ratings.films}", "users × films"),
        (f"{ratings.known:,}", "ratings known"),
        (str(ratings.rank), "components, chosen by the fit"),
        (f"{ratings.held:.0%}", f"of held-out ratings inside {ratings.level:.0%} intervals"),
        (f"{ratings.seconds:.1f} s", "to choose the settings and fit"),
    ]
    lists = "".join(
        f"<div><h3>User {taste.user}</h3>"
        + table(("rated best", "stars"), ((film, f"{stars:.0f}") for film, stars in taste.known))
        + table(("recommended", "predicted stars"), ((film, f"{a:.1f} ± {b:.1f}") for film, a, b in taste.told))
        + "</div>"
        for taste in ratings.tastes
    )
    text = (
        "The data are generated: users with different tastes rate films of six genres. The fit sees neither tastes nor "
        "genres, and is judged on a fifth of the ratings, which were held out."
    )
    return _section("Ratings and recommendations", text, f'{numbers(boxes)}<div class="two">{lists}</div>', RATINGS)


def _table(filled: DemoTable) -> str:
    boxes = []
    for name, score in filled.scores.items():
        words = score["metric"] == "errors"
        error, base = (f"{score[key]:.0%}" if words else f"±{score[key]:.1f}" for key in ("error", "baseline"))
        boxes.append((error, f"{name}{' wrong' if words else ''}; with the {'mode' if words else 'mean'}, {base}"))
    boxes += [
        (f"{filled.rows} × {len(filled.columns)}", "rows × columns"),
        (f"{filled.hidden:,}", "cells filled in"),
        (f"{filled.seconds:.1f} s", "to fit and fill in"),
    ]
    cells = "".join(
        "<tr>" + "".join(f"<td{' class=new' if new else ''}>{escape(_cell(cell))}</td>" for cell, new in line) + "</tr>"
        for line in filled.lines
    )
    header = "".join(f"<th>{escape(name)}</th>" for name in filled.columns)
    shown = scrolling(f'<table class="facts list"><tr>{header}</tr>{cells}</table>')
    text = (
        "A quarter of the cells was hidden. Those in colour were filled in, in columns of numbers and of words. The "
        "first figures are the errors at hidden cells."
    )
    return _section("A table with holes", text, numbers(boxes) + shown, TABLE)


def _section(title: str, text: str, body: str, code: str) -> str:
    return f"<section><h2>{title}</h2><p>{escape(text)}</p>{body}<pre>{escape(code)}</pre></section>"


def _cell(cell: Any) -> str:
    return f"{cell:.0f}" if isinstance(cell, float) else str(cell)


def _inline(picture: Array) -> str:
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(picture).save(file, format="JPEG", quality=85)
    return "data:image/jpeg;base64," + base64.b64encode(file.getvalue()).decode()
