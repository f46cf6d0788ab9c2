"""Pictures of the outcomes on MovieLens."""

from collections.abc import Mapping
from typing import Any

from bifactor_reproduce.movielens.cells import CONVEX, OWN, PRINTED, RAW
from bifactor_reproduce.movielens.results import PAPER, Results, Row, mean, mean_at, median, shared

MARKERS = {CONVEX: ("C0", "o"), RAW: ("C3", "^"), PRINTED: ("C1", "s"), OWN: ("C2", "D")}

SECONDS = (20, 50, 100, 200, 500)
"""Marks on the axis of the paper's times."""


def draw_trade(results: Results, figure: Any) -> None:
    """Percent of right signs over seconds, ours and the paper's."""
    left, right = figure.subplots(1, 2, sharey=True)
    rows, splits = results.rows, shared(*results.rows) if results.rows else []
    if splits:
        places = {(row.method, row.setting): (median(row, "seconds", splits), mean(row, splits)) for row in rows}
        _points(left, places)
    _points(right, {setting: (row.seconds, row.overall) for setting, row in PAPER.items()})
    left.set(title="Ours", xlabel="processor seconds", ylabel="right signs, %", xscale="log")
    right.set(title="The paper’s Table 7", xlabel="seconds", xscale="log")
    _plain(left)
    _plain(right)
    right.set_xticks(SECONDS)
    handles, labels = (left if splits else right).get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(MARKERS), frameon=False)


def _points(axis: Any, places: Mapping[tuple[str, float], tuple[float, float]]) -> None:
    seen: set[str] = set()
    for (method, setting), place in places.items():
        colour, marker = MARKERS[method]
        axis.plot(*place, marker, color=colour, label=None if method in seen else method)
        seen.add(method)
        beside = (6, -11) if method == RAW else (6, 4)  # BFGD is just above it
        axis.annotate(f"{setting:g}", place, xytext=beside, textcoords="offset points", fontsize=9)
    axis.margins(0.15)


def _plain(axis: Any) -> None:
    """Numbers and not powers of ten on a logarithmic axis."""
    axis.xaxis.set_major_formatter("{x:g}")
    axis.xaxis.set_minor_formatter("")


def draw_choices(results: Results, figure: Any) -> None:
    """BFGD over iterations, and PCG over ridges."""
    left, right = figure.subplots(1, 2, sharey=True)
    for index, (r, row) in enumerate(results.printed.items()):
        _curve(left, row, f"C{index}", "-", f"r = {r:g}")
        if r in results.longer:
            _curve(left, results.longer[r], f"C{index}", "--", None)
        if row.paper is not None and results.familiar:
            left.axhline(row.paper.overall, color=f"C{index}", linestyle=":", linewidth=1)
    for index, (r, row) in enumerate(results.own.items()):
        rows = dict(sorted({1.0: row, **{a: by[r] for a, by in results.ridges.items() if r in by}}.items()))
        splits = shared(*rows.values())
        if splits:
            right.plot(list(rows), [mean(one, splits) for one in rows.values()], "o-", color=f"C{index}")
    left.set(title="BFGD", xlabel="iteration", ylabel="right signs, %", xscale="log")
    right.set(title="PCG", xlabel="ρ in sizes of the noise", xscale="log")
    _plain(left)
    _plain(right)
    right.set_xticks(sorted({1.0, *results.ridges}))
    handles, labels = left.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)


def _curve(axis: Any, row: Row, colour: str, style: str, label: str | None) -> None:
    longest = max(row.runs.values(), key=lambda outcome: outcome["iterations"])
    counts = [int(t) for t in longest["curve"]["iteration"]]
    axis.plot(counts, [mean_at(row, count) for count in counts], style, color=colour, label=label, linewidth=1.3)
