"""`bifactor inpaint`: a picture with holes, filled in."""

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import numpy as np

from bifactor.arrays import Array
from bifactor.cli import watch
from bifactor.cli.look import DONE, code_of, tell
from bifactor.cli.look import notes as noted
from bifactor.cli.options import INPUT, Auto, Within, force_option, json_option, seed_option
from bifactor.errors import InputError
from bifactor.models.fitting import Settings, fit_model
from bifactor.models.model import Model
from bifactor.models.settings import settings
from bifactor.running.places import new_file, require_free
from bifactor.running.result import Status
from bifactor.tables import Observations
from bifactor.tables.pictures import FORMATS, LUMA, kept, opened, psnr, read_pixels

EXAMPLES = """\b
Examples:
  bifactor inpaint photo.jpg --mask mask.png -o whole.png
  bifactor inpaint photo.jpg --keep 0.35 -o recovered.png
  bifactor inpaint large.jpg --mask mask.png --alpha 1 -o whole.png
"""


@click.command(epilog=EXAMPLES)
@click.argument("picture", type=INPUT)
@click.option("--mask", type=INPUT, help="Picture of the same size: white is known, black is to be filled in.")
@click.option("--keep", type=Within(0, 1, min_open=True), help="Instead: keep this share of the pixels, at random.")
@click.option("--truth", type=INPUT, help="With --mask: the whole picture, to compare with.")
@click.option("-o", "--output", type=INPUT, required=True, help=f"Picture to write: {', '.join(FORMATS)}.")
@click.option(
    "--rank", type=Auto(int), default=40, show_default=True, help="Of each channel, or auto, which takes longer."
)
@click.option(
    "--alpha",
    type=Auto(float),
    default="auto",
    show_default=True,
    help="Ridge of each channel; a number saves its choice.",
)
@seed_option
@force_option
@json_option
def inpaint(
    picture: Path,
    mask: Path | None,
    keep: float | None,
    truth: Path | None,
    output: Path,
    rank: Any,
    alpha: Any,
    seed: int,
    force: bool,
) -> None:
    """Fill in the holes of PICTURE, grey or in colour.

    Pixels that are known stay as they are. Colours are completed one by one, with a ridge that was chosen on their
    brightness. Where the whole picture is known, as with --keep, the peak signal-to-noise ratio is told.
    """
    chosen = _settings(rank, alpha, seed)
    _require_options(mask, keep, truth)
    kind = FORMATS.get(output.suffix.lower())
    if kind is None:
        raise InputError(f"{output} should end in one of {', '.join(FORMATS)}.")
    require_free(output, force)
    pixels, notes = read_pixels(picture)
    whole: Array | None = pixels
    if keep is not None:
        known = kept(pixels.shape[:2], keep, seed)
    else:
        assert mask is not None
        known = _known(mask, pixels.shape[:2], picture)
        whole = None if truth is None else _whole(truth, pixels.shape)
    started = time.perf_counter()
    full, model = _completed(pixels, known, chosen, notes)
    _write(full, output, kind, force)
    height, width, channels = pixels.shape
    answer: dict[str, Any] = {"output": str(output), "width": width, "height": height, "channels": channels}
    answer |= {"known": float(known.mean()), "seconds": time.perf_counter() - started}
    answer |= {"rank": None if model is None else int(model.U.shape[1]) - model.fixed_columns}
    answer |= {"alpha": None if model is None else model.ridge}
    answer |= {"psnr": _ratio(full, whole), "psnr_hidden": _ratio(full, whole, ~known)}
    answer |= {"notes": notes}
    code = DONE if model is None else code_of(model.result.status)
    tell(answer, _summary(answer, whole is not None), code)


def _settings(rank: Any, alpha: Any, seed: int) -> Settings:
    return settings(
        loss="squared",
        n_components=rank,
        alpha=alpha,
        offsets=True,
        solver=None,
        max_iter=500,
        tol=1e-4,
        random_state=seed,
        verbose=0,
    )


def _require_options(mask: Path | None, keep: float | None, truth: Path | None) -> None:
    if (mask is None) == (keep is None):
        raise InputError("Pass either --mask, a picture of what is known, or --keep, the share of pixels to keep.")
    if keep is not None and truth is not None:
        raise InputError("--truth goes with --mask. With --keep the picture itself is the truth.")


def _known(mask: Path, shape: tuple[int, ...], picture: Path) -> Array:
    with opened(mask) as image:
        light = np.asarray(image.convert("L"))
    if light.shape != shape:
        raise InputError(
            f"{mask} has {light.shape[1]}×{light.shape[0]} pixels, {picture} has {shape[1]}×{shape[0]}. "
            "Pass a mask of the same size."
        )
    known = light >= 128
    if not known.any():
        raise InputError(f"{mask} hides every pixel. White is what is known; is it the other way round?")
    return known


def _whole(truth: Path, shape: tuple[int, ...]) -> Array:
    whole, _ = read_pixels(truth)
    if whole.shape != shape:
        raise InputError(
            f"{truth} is {whole.shape[1]}×{whole.shape[0]} with {whole.shape[2]} channels, the picture is "
            f"{shape[1]}×{shape[0]} with {shape[2]}. Pass the same picture, whole."
        )
    return whole


def _completed(pixels: Array, known: Array, chosen: Settings, notes: list[str]) -> tuple[Array, Model | None]:
    """The picture without holes, and the last fit."""
    if known.all():
        notes.append("No pixel is hidden, so there was nothing to fill in.")
        return pixels, None
    full = pixels.copy()
    model = _fit(pixels @ LUMA if pixels.shape[2] == 3 else pixels[:, :, 0], known, chosen, "choosing the ridge")
    if model.path is not None and model.path.interrupted:
        notes.append("Ctrl-C ended the choice of the ridge early; the best so far was taken.")
    full[~known] = _shades(model, known)[:, None]
    same = replace(chosen, alpha=model.ridge, n_components=int(model.U.shape[1]) - model.fixed_columns)
    for k in range(pixels.shape[2] if pixels.shape[2] > 1 else 0):
        if model.result.status is Status.INTERRUPTED:
            break
        model = _fit(pixels[:, :, k], known, same, "filling in")
        full[~known, k] = _shades(model, known)
    if model.result.status is Status.INTERRUPTED:
        notes.append("Interrupted: what was best so far was written.")
    return full, model


def _fit(plane: Array, known: Array, chosen: Settings, before: str) -> Model:
    rows, cols = np.nonzero(known)
    data = Observations(rows, cols, (plane[known] / 255).astype(np.float32), known.shape)
    with watch.fitting("filling in", before) as show:
        return fit_model(data, replace(chosen, callback=show.iterations(chosen.max_iter), stage=show.stage))


def _shades(model: Model, known: Array) -> Array:
    """What is not known, as bytes."""
    found = model.U @ model.V.T + np.float32(model.intercept)
    return np.clip(np.rint(255 * found[~known]), 0, 255).astype(np.uint8)


def _write(full: Array, output: Path, kind: str, force: bool) -> None:
    from PIL import Image

    with new_file(output, force) as temporary, temporary.open("wb") as file:
        quality = {"quality": 95} if kind in ("JPEG", "WEBP") else {}
        Image.fromarray(full[:, :, 0] if full.shape[2] == 1 else full).save(file, format=kind, **quality)


def _ratio(full: Array, whole: Array | None, where: Array | None = None) -> float | None:
    """The PSNR in dB; None where the two are the same, or nothing is known."""
    if whole is None:
        return None
    a, b = (part if where is None else part[where] for part in (full, whole))
    return None if np.array_equal(a, b) else psnr(a / 255, b / 255)


def _summary(answer: dict[str, Any], compared: bool) -> list[tuple[str, str]]:
    kind = "grey" if answer["channels"] == 1 else "colour"
    known = f"{answer['known']:.1%} known"
    lines = [("picture", f"{answer['width']}×{answer['height']} pixels in {kind}, {known}")]
    if answer["alpha"] is not None:
        lines.append(("fit", f"rank {answer['rank']}, ridge {answer['alpha']:.3g}, {answer['seconds']:.1f} s"))
    if compared:
        whole, hidden = ("∞" if answer[name] is None else f"{answer[name]:.2f} dB" for name in ("psnr", "psnr_hidden"))
        lines.append(("PSNR", f"{whole}, of the hidden pixels {hidden}"))
    return [*lines, *noted(answer["notes"]), ("written", answer["output"])]
