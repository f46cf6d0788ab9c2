"""`bifactor inpaint`: a picture with holes, filled in."""

import time
from pathlib import Path
from typing import Any

import click
import numpy as np

from bifactor.arrays import Array
from bifactor.cli import watch
from bifactor.cli.look import notes as noted
from bifactor.cli.look import tell
from bifactor.cli.options import INPUT, Within, force_option, json_option, seed_option
from bifactor.errors import InputError
from bifactor.kernels.blas_threads import blas_at_most
from bifactor.pictures.blur import best_blur
from bifactor.pictures.picture import checked, filled
from bifactor.running.places import new_file, require_free
from bifactor.tables.pictures import FORMATS, colour_of, kept, opened, psnr, read_alpha, read_pixels

EXAMPLES = """\b
Examples:
  bifactor inpaint photo.jpg --mask mask.png -o whole.png
  bifactor inpaint photo.png --transparent -o whole.png
  bifactor inpaint scan.png --hole '#ff00ff' -o whole.png --doubt doubt.png
  bifactor inpaint photo.jpg --keep 0.35 -o recovered.png
"""


@click.command(epilog=EXAMPLES)
@click.argument("picture", type=INPUT)
@click.option("--mask", type=INPUT, help="Picture of the same size: white is known, black is to be filled in.")
@click.option("--transparent", is_flag=True, help="Instead: fill in what is transparent.")
@click.option("--hole", metavar="COLOUR", help="Instead: fill in what has this colour, as '#ff00ff' or magenta.")
@click.option("--keep", type=Within(0, 1, min_open=True), help="Instead: keep this share of the pixels, at random.")
@click.option("--truth", type=INPUT, help="The whole picture, to compare with; with --keep it is the picture itself.")
@click.option("-o", "--output", type=INPUT, required=True, help=f"Picture to write: {', '.join(FORMATS)}.")
@click.option("--doubt", type=INPUT, help="Picture to write of where guesses are rough: white is 32 shades or more.")
@seed_option
@force_option
@json_option
def inpaint(
    picture: Path,
    mask: Path | None,
    transparent: bool,
    hole: str | None,
    keep: float | None,
    truth: Path | None,
    output: Path,
    doubt: Path | None,
    seed: int,
    force: bool,
) -> None:
    """Fill in the holes of PICTURE, grey or in colour, by what similar patches of it have in common.

    Pixels that are known stay as they are. Where the whole picture is known, the peak signal-to-noise ratio is told,
    and beside it that of the best blur.
    """
    _require_one(mask=mask is not None, transparent=transparent, hole=hole is not None, keep=keep is not None)
    if keep is not None and truth is not None:
        raise InputError("With --keep the picture itself is the truth. Leave out --truth.")
    for path in (output, doubt):
        if path is not None:
            _kind(path)
            require_free(path, force)
    pixels, notes = read_pixels(picture)
    if keep is not None:
        known = kept(pixels.shape[:2], keep, seed)
    elif mask is not None:
        known = _known(mask, pixels.shape[:2], picture)
    elif hole is not None:
        known = _other_colour(pixels, hole, picture)
    else:
        known = read_alpha(picture) > 0
        notes = [note for note in notes if "Transparency" not in note]
    if not known.any():
        raise InputError(f"Every pixel of {picture} is a hole. At least one must be known.")
    whole = pixels if keep is not None else None if truth is None else _whole(truth, pixels.shape)
    if known.all():
        notes.append("No pixel is hidden, so there was nothing to fill in.")
    started = time.perf_counter()
    with watch.rounds("filling in") as show, blas_at_most(1):
        full, spread = filled(*checked(pixels, known), show)
    seconds = time.perf_counter() - started
    _write(full, output, force)
    if doubt is not None:
        _write(np.clip(8 * spread[:, :, :1], 0, 255).astype(np.uint8), doubt, force)
    height, width, channels = pixels.shape
    answer: dict[str, Any] = {"output": str(output), "width": width, "height": height, "channels": channels}
    answer |= {"known": float(known.mean()), "seconds": seconds, "doubt": None if doubt is None else str(doubt)}
    answer |= _compared(full, pixels, known, whole) | {"notes": notes}
    tell(answer, _summary(answer, whole is not None))


def _require_one(**said: bool) -> None:
    if sum(said.values()) != 1:
        names = ", ".join(f"--{name}" for name in said)
        raise InputError(f"Say in one way where the holes are: pass exactly one of {names}.")


def _kind(path: Path) -> str:
    kind = FORMATS.get(path.suffix.lower())
    if kind is None:
        raise InputError(f"{path} should end in one of {', '.join(FORMATS)}.")
    return kind


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


def _other_colour(pixels: Array, hole: str, picture: Path) -> Array:
    """Where a picture has not the colour of its holes."""
    colour = colour_of(hole)
    wanted = colour if pixels.shape[2] == 3 else colour[:1]
    if pixels.shape[2] == 1 and len(set(colour)) > 1:
        raise InputError(f"{picture} is grey and has no colour {hole}. Pass a shade of grey, as '#ffffff'.")
    return np.any(pixels != np.array(wanted, np.uint8), axis=2)


def _whole(truth: Path, shape: tuple[int, ...]) -> Array:
    whole, _ = read_pixels(truth)
    if whole.shape != shape:
        raise InputError(
            f"{truth} is {whole.shape[1]}×{whole.shape[0]} with {whole.shape[2]} channels, the picture is "
            f"{shape[1]}×{shape[0]} with {shape[2]}. Pass the same picture, whole."
        )
    return whole


def _write(full: Array, output: Path, force: bool) -> None:
    from PIL import Image

    kind = _kind(output)
    with new_file(output, force) as temporary, temporary.open("wb") as file:
        quality = {"quality": 95} if kind in ("JPEG", "WEBP") else {}
        Image.fromarray(full[:, :, 0] if full.shape[2] == 1 else full).save(file, format=kind, **quality)


def _compared(full: Array, pixels: Array, known: Array, whole: Array | None) -> dict[str, float | None]:
    """PSNR of all pixels and of hidden ones, ours and those of the best blur."""
    if whole is None or known.all():
        return dict.fromkeys(("psnr", "psnr_hidden", "psnr_hidden_blur"))
    blur = best_blur(pixels, known, whole)
    return {
        "psnr": _ratio(full, whole),
        "psnr_hidden": _ratio(full[~known], whole[~known]),
        "psnr_hidden_blur": _ratio(blur[~known], whole[~known]),
    }


def _ratio(one: Array, whole: Array) -> float | None:
    """The PSNR in dB; None where the two are the same."""
    return None if np.array_equal(one, whole) else psnr(one / np.float32(255), whole / np.float32(255))


def _summary(answer: dict[str, Any], compared: bool) -> list[tuple[str, str]]:
    kind = "grey" if answer["channels"] == 1 else "colour"
    known = f"{answer['known']:.1%} known"
    lines = [("picture", f"{answer['width']}×{answer['height']} pixels in {kind}, {known}")]
    if compared and answer["known"] < 1:
        names = ("psnr_hidden", "psnr_hidden_blur", "psnr")
        hidden, blur, whole = ("∞" if answer[name] is None else f"{answer[name]:.2f} dB" for name in names)
        lines.append(("PSNR", f"{hidden} at the hidden pixels, where the best blur has {blur}; {whole} at all"))
    lines.append(("time", f"{answer['seconds']:.1f} s"))
    written = [("written", answer["output"])]
    if answer["doubt"] is not None:
        written.append(("", answer["doubt"]))
    return [*lines, *noted(answer["notes"]), *written]
