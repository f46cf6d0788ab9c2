"""Tables of rows. Medians, means, ratios and differences are computed only here, from raw numbers."""

import math
import statistics
from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.harness.rows import NOUNS, Row, load, median, names

SCORES = ("rmse", "scaled_rmse", "accuracy", "deviance", "log_likelihood", "psnr_hidden", "ndcg@10", "ndcg@100")
"""Averaged over folds and draws, as usual, and compared with those of the first solver."""

RANKED = ("recall@10", "recall@20", "recall@50", "coverage@10", "popularity_share@10", "low", "high", "behind")
AVERAGED = (*SCORES, *RANKED, "cover80", "cover90", "cover95", "length90", "psnr", "ssim")
"""Shown as means; everything else is shown as a median with its range."""

CAPTION = (
    "median (least to largest). ratio: seconds against the first solver on the same objective and data. "
    "difference: of means to that solver, ± its standard error."
)
AGAINST_CAPTION = "ratio: new/old in each round, median (least to largest); below 1 is faster."

Groups = dict[tuple[str, ...], list[Row]]


def show(report: dict[str, Any]) -> None:
    console = Console()
    if not console.is_terminal:
        console = Console(width=180)  # a file is read in a wide window
    facts = ", ".join(f"{key} {value}" for key, value in report["metadata"].items() if value is not None)
    console.print(facts, style="dim", soft_wrap=True, highlight=False)
    for name, rows in grouped(report["rows"], ("benchmark",)).items():
        compared = any("side" in row for row in rows)
        lines = against_lines(rows) if compared else plain_lines(rows)
        console.print(drawn(name[0], lines, AGAINST_CAPTION if compared else CAPTION))
        summary, caption = summarised(name[0], rows)
        if summary:
            console.print(drawn(f"{name[0]}, summary", summary, caption))


def summarised(name: str, rows: list[Row]) -> tuple[list[dict[str, str]], str]:
    """Lines that a benchmark forms of its own rows, and what they mean, where it has a `summary`."""
    module = load(name) if name in names() else None
    return module.summary(rows) if hasattr(module, "summary") else ([], "")


def drawn(title: str, lines: list[dict[str, str]], caption: str) -> Table:
    """Nouns that are the same in all lines go to the title."""
    nouns = [noun for noun in NOUNS if noun in lines[0]]
    common = {noun: lines[0][noun] for noun in nouns if len(lines) > 1 and len({line[noun] for line in lines}) == 1}
    title = " · ".join([title, *filter(None, common.values())])
    table = Table(title=title, title_justify="left", caption=caption, caption_justify="left")
    columns = list(dict.fromkeys(key for line in lines for key in line if key not in common))
    for column in columns:
        table.add_column(column.replace("_", " "))
    for line in lines:
        table.add_row(*(line.get(column, "") for column in columns))
    return table


def grouped(rows: Iterable[Row], keys: Sequence[str]) -> Groups:
    groups: Groups = {}
    for row in rows:
        groups.setdefault(tuple(str(row.get(key, "")) for key in keys), []).append(row)
    return groups


def plain_lines(rows: list[Row]) -> list[dict[str, str]]:
    lines = []
    for group in grouped(rows, NOUNS[:2]).values():
        solvers = list(grouped(group, NOUNS).items())
        for nouns, runs in solvers:
            line = dict(zip(NOUNS, nouns, strict=True))
            if len(runs) > 1:
                line["runs"] = str(len(runs))
            for key in dict.fromkeys(key for row in runs for key in row):
                if key not in {"benchmark", "draw", *NOUNS}:
                    line[key] = cell(key, [row.get(key) for row in runs])
            if runs is not solvers[0][1]:
                line |= compared_to(solvers[0][1], runs)
            lines.append(line)
    return lines


def compared_to(first: list[Row], runs: list[Row]) -> dict[str, str]:
    line = {}
    if found := ratios(runs, first, "seconds"):
        line["ratio"] = spread(found)
    for key in SCORES:
        differences = [a - b for a, b in pairs(runs, first, key)]
        if len(differences) > 1:
            error = statistics.stdev(differences) / math.sqrt(len(differences))
            line["difference"] = f"{statistics.mean(differences):+.4f} ± {error:.4f}"
    return line


def pairs(rows: list[Row], others: list[Row], key: str) -> list[tuple[float, float]]:
    """Values of the same draw, where both have one."""
    there = {row["draw"]: row[key] for row in others if row.get("draw") is not None and row.get(key) is not None}
    return [(row[key], there[row["draw"]]) for row in rows if row.get(key) is not None and row.get("draw") in there]


def ratios(rows: list[Row], others: list[Row], key: str) -> list[float]:
    """rows/others draw by draw; of their medians where no draw is common to both; none where one side has no value."""
    if both := pairs(rows, others, key):
        return [a / b for a, b in both]
    if any("draw" in row for row in rows) and any("draw" in row for row in others):
        return []
    sides = [[row[key] for row in side if row.get(key) is not None] for side in (rows, others)]
    return [median(sides[0]) / median(sides[1])] if all(sides) else []


def against_lines(rows: list[Row]) -> list[dict[str, str]]:
    lines = []
    for nouns, runs in grouped(rows, NOUNS).items():
        new, old = ([row for row in runs if row.get("side") == side] for side in ("new", "old"))
        line = dict(zip(NOUNS, nouns, strict=True))
        for name, side in (("new", new), ("old", old)):
            line[f"{name}, s"] = cell("seconds", [row.get("seconds") for row in side])
        line["ratio"] = spread(ratios(new, old, "seconds"))
        for key in dict.fromkeys(key for row in runs for key in row):
            if key not in {"benchmark", "side", "draw", "seconds", "skipped", *NOUNS}:
                both = (cell(key, [row.get(key) for row in side]) for side in (new, old))
                line[f"{key}, new : old"] = " : ".join(both)
        if reasons := dict.fromkeys(row["skipped"] for row in runs if "skipped" in row):
            line["skipped"] = " ".join(reasons)
        lines.append(line)
    return lines


def cell(key: str, values: list[Any]) -> str:
    """A few characters for the values of one column over all repeats; None means not reached."""
    values = [value for value in values if value is not None]
    if not values:
        return "–"
    if all(isinstance(value, bool) for value in values):
        return f"{sum(values)} of {len(values)}" if len(values) > 1 else ("yes" if values[0] else "no")
    if any(isinstance(value, str) for value in values):
        return ", ".join(dict.fromkeys(map(str, values)))
    if key in AVERAGED:
        return f"{statistics.mean(values):.4f}"
    return spread(values, 5 if key == "fidelity" else 3)


def spread(values: Sequence[float], digits: int = 3) -> str:
    if not values:
        return "–"
    middle, least, largest = (number(v, digits) for v in (median(values), min(values), max(values)))
    return middle if least == largest else f"{middle} ({least} to {largest})"


def number(value: float, digits: int = 3) -> str:
    """So many digits, and all of a whole number."""
    if (value == int(value) and abs(value) < 1e6) or 1000 <= abs(value) < 1e6:
        return f"{value:,.0f}"
    return f"{value:.{digits}g}"
