"""`bifactor demo`: a photograph completed from some of its pixels, beside what simpler ways make of them."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import numpy as np

from bifactor.arrays import Array
from bifactor.cli import watch
from bifactor.cli.look import tell
from bifactor.cli.options import Within, json_option
from bifactor.kernels.blas_threads import blas_at_most
from bifactor.pictures.blur import best_blur
from bifactor.pictures.nearest import nearest
from bifactor.pictures.picture import checked, filled
from bifactor.running.files import require_writable
from bifactor.running.places import new_file
from bifactor.tables.pictures import FORMATS, kept, pillow_or_advice, psnr

GAP = 8
"""Pixels between the pictures that are shown."""


@click.command()
@click.option(
    "--observed", default=0.3, show_default=True, type=Within(0, 1, min_open=True), help="Share of pixels kept."
)
@click.option("--seed", default=0, show_default=True, type=click.IntRange(min=0), help="Which pixels are kept.")
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), default="demo.png", show_default=True)
@json_option
def demo(observed: float, seed: int, output: Path) -> None:
    """Complete a photograph from some of its pixels, and write: original, observed, best blur, completed."""
    kind = FORMATS.get(output.suffix.lower())
    if kind is None:
        raise click.BadParameter(f"{output} should end in one of {', '.join(FORMATS)}.", param_hint="--output")
    require_writable(output)
    truth = _photograph()
    known = kept(truth.shape[:2], observed, seed)
    picture = np.where(known[:, :, None], truth, 0).astype(np.uint8)
    blur, blurring = _timed(lambda: best_blur(picture, known, truth))
    copied, copying = _timed(lambda: nearest(picture, known))
    with watch.share("completing") as show, blas_at_most(1):
        full, completing = _timed(lambda: filled(*checked(picture, known), progress=show)[0])
    _write(output, kind, [[truth, picture], [np.clip(np.rint(blur), 0, 255).astype(np.uint8), full]])
    height, width = known.shape
    ways = {"nearest": (copied, copying), "blur": (blur, blurring), "bifactor": (full, completing)}
    scores = {name: {"psnr": _hidden(found, truth, known), "seconds": s} for name, (found, s) in ways.items()}
    told = {"nearest": "nearest pixel", "blur": "best blur", "bifactor": "bifactor"}
    lines = [("picture", f"{width}×{height} pixels, {known.mean():.0%} observed")]
    for name, one in scores.items():
        lines.append((told[name], f"{one['psnr']:.2f} dB at hidden pixels, {one['seconds']:.1f} s"))
    lines.append(("written", f"{output}: original and observed, best blur and completed"))
    answer: dict[str, Any] = {"width": width, "height": height, "observed": float(known.mean()), "scores": scores}
    tell({**answer, "output": str(output)}, lines)


def _photograph() -> Array:
    """scikit-learn's `china.jpg`."""
    pillow_or_advice()
    from sklearn.datasets import load_sample_image

    return np.asarray(load_sample_image("china.jpg"))


def _timed(function: Callable[[], Array]) -> tuple[Array, float]:
    started = time.perf_counter()
    found = function()
    return found, time.perf_counter() - started


def _hidden(found: Array, truth: Array, known: Array) -> float:
    return psnr(found[~known] / 255, truth[~known] / 255) if not known.all() else 300.0


def _write(output: Path, kind: str, rows: list[list[Array]]) -> None:
    """Pictures of one size in rows, at one pixel for each of theirs."""
    from PIL import Image

    height, width, channels = rows[0][0].shape
    sheet = np.full((len(rows) * (height + GAP) - GAP, len(rows[0]) * (width + GAP) - GAP, channels), 255, np.uint8)
    for i, row in enumerate(rows):
        for j, picture in enumerate(row):
            top, left = i * (height + GAP), j * (width + GAP)
            sheet[top : top + height, left : left + width] = picture
    with new_file(output, force=True) as temporary, temporary.open("wb") as file:
        Image.fromarray(sheet).save(file, format=kind, **({"quality": 88} if kind == "JPEG" else {}))
