"""The figures of the experiment on photographs: PSNR over time, and the pictures."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from bifactor.plots import matplotlib_or_advice
from bifactor_reproduce.harness.experiment import Finished, Outcome
from bifactor_reproduce.harness.items import Figure
from bifactor_reproduce.images.cells import BEST, FLOW, OURS_RIDGED, RIDGED, PhotoCell
from bifactor_reproduce.images.thumbnails import decoded
from bifactor_reproduce.noiselets.cells import CALIBRATED, PRINTED

LOOKS = {
    "SVP": ("C0", "-"),
    FLOW: ("C1", "-"),
    PRINTED: ("C2", ":"),
    CALIBRATED: ("C2", "-"),
    RIDGED: ("C2", "--"),
    "PCG": ("C3", "-"),
    OURS_RIDGED: ("C3", "--"),
}
"""Colours and strokes of curves."""

PANELS = {"SVP": "SVP", FLOW: FLOW, CALIBRATED: "BFGD", "PCG": "PCG", OURS_RIDGED: "PCG with a ridge"}
"""Algorithms whose pictures are shown, and what is written above these."""

COLUMNS, WIDTH = 4, 3.1
"""Of pictures in a row, and of one in inches."""

HOLES = "#5b7db1"

BRIGHT = 99.7
"""The percentile of the photograph that is shown as white, so that dark ones can be seen."""

Shown = Sequence[Finished[PhotoCell]]


def curves(finished: Shown, titles: Mapping[str, str]) -> list[Figure]:
    """One figure, a panel for each photograph; none where no algorithm has run."""
    shown = [done for done in finished if done.cell.shown]
    if not any(cell.method in LOOKS for cell, _ in shown):
        return []
    return [
        Figure(
            "images-psnr",
            "PSNR over time",
            "The first choice of pixels. Where a curve falls, fitting the known pixels better makes the hidden ones "
            "worse. The dash-dotted line is the whole photograph cut to the rank.",
            partial(_draw_curves, shown, titles),
            (13.0, 4.8),
        )
    ]


def _draw_curves(shown: Shown, titles: Mapping[str, str], figure: Any) -> None:
    axes = figure.subplots(1, len(titles), squeeze=False)[0]
    lines: dict[str, Any] = {}
    for axis, (photo, title) in zip(axes, titles.items(), strict=True):
        for cell, outcome in shown:
            if cell.photo != photo:
                continue
            if cell.method == BEST:
                lines[BEST] = axis.axhline(outcome["psnr"], color="C8", linestyle="-.")
            else:
                (colour, stroke), curve = LOOKS[cell.method], outcome["curve"]
                lines[cell.method] = axis.semilogx(curve["seconds"], curve["psnr"], stroke, color=colour)[0]
        axis.set(title=title, xlabel="processor seconds")
    axes[0].set_ylabel("PSNR, dB")
    figure.legend(lines.values(), lines.keys(), loc="outside lower center", ncols=4, frameon=False)


def panels(finished: Shown, titles: Mapping[str, str]) -> list[Figure]:
    """One figure for each photograph whose pictures are there."""
    figures = []
    for index, (photo, title) in enumerate(titles.items()):
        shown = {cell.method: outcome for cell, outcome in finished if cell.photo == photo and cell.shown}
        if BEST in shown:
            pictures = _pictures(shown)
            height, width = shown[BEST]["shape"]
            rows = -(-len(pictures) // COLUMNS)
            figures.append(
                Figure(
                    f"images-panels-{index + 1}",
                    f"The pictures: {title}",
                    "Pixels that are not observed are blue. BFGD has the calibrated step. The first choice of pixels; "
                    "PSNR against the original. All are shown equally bright.",
                    partial(_draw_panels, pictures),
                    (COLUMNS * WIDTH, rows * (WIDTH * height / width + 0.35)),
                )
            )
    return figures


def _pictures(shown: Mapping[str, Outcome]) -> dict[str, str]:
    """Encoded, by their titles."""
    first = shown[BEST]
    common = first["pictures"]
    best = f"best of rank {first['rank']}, {first['psnr']:.2f} dB"
    pictures = {"original": common["original"], best: common["best"], "observed": common["observed"]}
    for method, name in PANELS.items():
        if method in shown:
            pictures[f"{name}, {shown[method]['psnr']:.2f} dB"] = shown[method]["picture"]
    return pictures


def _draw_panels(pictures: Mapping[str, str], figure: Any) -> None:
    axes = list(figure.subplots(-(-len(pictures) // COLUMNS), COLUMNS, squeeze=False).flat)
    grey = matplotlib_or_advice().colormaps["gray"].with_extremes(bad=HOLES)
    white = max(float(np.percentile(decoded(pictures["original"]), BRIGHT)), 0.01)
    for axis in axes:
        axis.set_axis_off()
    for axis, (title, text) in zip(axes, pictures.items(), strict=False):
        axis.imshow(decoded(text), cmap=grey, vmin=0, vmax=white, interpolation="nearest")
        axis.set_title(title)
