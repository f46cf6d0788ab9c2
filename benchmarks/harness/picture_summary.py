"""The gain of one method for pictures over the best of all others, mask by mask."""

import statistics
from collections.abc import Iterable

from benchmarks.harness.rows import Row

SCORE = "psnr_hidden"
CAPTION = (
    "Means in dB on hidden pixels. gain: over the best other solver on the same picture, chosen with the truth: "
    "mean / median / least. best: pictures on which it is above 0. SSIM: mean of the best other solver → ours."
)

Cell = dict[str, Row]
"""What each solver reached on one picture with one mask."""


def summary_lines(rows: Iterable[Row], ours: str) -> list[dict[str, str]]:
    """For each mask, and for all: of all pictures, and of the new ones. Any solver may be missing anywhere."""
    rows = list(rows)
    cells: dict[tuple[str, str], Cell] = {}
    for row in rows:
        if row.get(SCORE) is not None:
            cells.setdefault((row["objective"], row["draw"]), {})[row["solver"]] = row
    masks = list(dict.fromkeys(mask for mask, _ in cells))
    rivals = [name for name in dict.fromkeys(row["solver"] for row in rows) if name not in ("", ours)]
    groups = {mask: [cell for (its, _), cell in cells.items() if its == mask] for mask in masks}
    if len(masks) > 1:
        groups["all masks"] = list(cells.values())
    return [
        {"mask": mask, "pictures": f"{len(part)} {which}", **line(part, rivals, ours)}
        for mask, group in groups.items()
        for which, part in (("in all", group), ("new", [cell for cell in group if is_new(cell)]))
        if part
    ]


def is_new(cell: Cell) -> bool:
    return any(row.get("new") for row in cell.values())


def line(cells: list[Cell], rivals: list[str], ours: str) -> dict[str, str]:
    told = {name: mean([cell[name][SCORE] for cell in cells if name in cell]) for name in (*rivals, ours)}
    both = [cell for cell in cells if ours in cell and len(cell) > 1]
    gains = [cell[ours][SCORE] - best(cell, SCORE, ours) for cell in both]
    if gains:
        three = (statistics.mean(gains), statistics.median(gains), min(gains))
        told["gain"] = " / ".join(f"{gain:+.2f}" for gain in three)
        told["best"] = f"{sum(gain > 0 for gain in gains)} of {len(gains)}"
    if alike := [cell for cell in both if all(row.get("ssim") is not None for row in cell.values())]:
        sides = [best(cell, "ssim", ours) for cell in alike], [cell[ours]["ssim"] for cell in alike]
        told["SSIM"] = " → ".join(f"{statistics.mean(side):.3f}" for side in sides)
    return told


def best(cell: Cell, key: str, ours: str) -> float:
    return max(row[key] for name, row in cell.items() if name != ours)


def mean(values: list[float]) -> str:
    return f"{statistics.mean(values):.2f}" if values else "–"
