"""`bifactor inpaint`: fill in the holes of a picture."""

import time
from pathlib import Path
from typing import Any

import click
import numpy as np

from bifactor.applications.pictures.baselines import best_blur, nearest
from bifactor.applications.pictures.completion import fill_picture, validate_picture
from bifactor.applications.pictures.files import (
    FORMATS,
    PEAKS,
    Picture,
    brightness,
    colour_of,
    format_of,
    losses,
    psnr,
    random_mask,
    read_picture,
    require_room,
    write_picture,
)
from bifactor.arrays import Array
from bifactor.cli import monitor
from bifactor.cli.options import INPUT, Within, force_option, json_option, seed_option
from bifactor.cli.output import notes as noted
from bifactor.cli.output import print_result
from bifactor.errors import InputError
from bifactor.kernels.threading import blas_at_most
from bifactor.running.files import new_file, require_free

MANY = 0.25
"""The share of grey pixels above which a mask looks like a photograph."""


def known_pixels(
    picture: Picture, path: Path, mask: Path | None, hole: str | None, keep: float | None, seed: int
) -> tuple[Array, list[str]]:
    """A height × width array, True where pixels are known, and notes; transparency counts if nothing else is given."""
    shape = picture.pixels.shape[:2]
    notes: list[str] = []
    if keep is not None:
        known = random_mask(shape, keep, seed)
    elif mask is not None:
        known, notes = _light(mask, picture, path)
    elif hole is not None:
        known = _other_colour(picture.pixels, hole, path)
    elif picture.alpha is not None:
        known = picture.alpha > 0
    else:
        raise InputError(f"{path} has no transparency that would mark its holes. Pass a mask.")
    numbers = ~np.isnan(picture.pixels).any(axis=2)
    if np.any(known & ~numbers):
        notes.append("Pixels that are NaN were filled in, too.")
    known &= numbers
    if not known.any():
        raise InputError(f"Every pixel of {path} is a hole. At least one must be known.")
    if picture.alpha is not None and not np.any(known & (picture.alpha > 0)):
        raise InputError(f"Every pixel of {path} is a hole or transparent. At least one must be known and visible.")
    if known.all():
        said = "No pixel is hidden" if hole is None else f"No pixel has the colour {hole}"
        notes.append(f"{said}, so there was nothing to fill in.")
    return known, notes


def _light(mask: Path, picture: Picture, path: Path) -> tuple[Array, list[str]]:
    """The pixels where a mask is light, and notes."""
    shades, notes = _shades(mask)
    (height, width), (rows, columns) = shades.shape, picture.pixels.shape[:2]
    if (height, width) != (rows, columns):
        turned = " One of them is rotated." if (height, width) == (columns, rows) else ""
        raise InputError(
            f"{mask} has {width}×{height} pixels, {path} has {columns}×{rows}.{turned} Pass a mask of the same size."
        )
    known = shades >= 0.5
    if not known.any():
        raise InputError(f"{mask} hides every pixel. White marks known pixels; invert the mask.")
    grey = _grey_share(shades)
    if grey > MANY:
        own = brightness(picture.pixels)
        if own.max() > 0 and _grey_share(own / own.max()) == 0:
            raise InputError(f"{path} is black and white, and {mask} is not. Pass the picture first, then its mask.")
        notes.append(f"{grey:.0%} of {mask} is neither black nor white; pixels nearer to white count as known.")
    if known.mean() < 0.5:
        notes.append(f"{mask} hides {1 - known.mean():.0%} of the pixels; white marks known pixels.")
    return known, notes


def _shades(mask: Path) -> tuple[Array, list[str]]:
    """The brightness of a mask on a white background, from 0 to 1, and notes."""
    image = read_picture(mask)
    light = brightness(image.pixels).astype(np.float32)
    highest = float(np.nanmax(light, initial=0))
    # Masks written by programs often have 1 for white.
    white = PEAKS.get(image.pixels.dtype.name, highest) if highest > 1 else 1
    shades = np.nan_to_num(light / np.float32(white))
    if image.alpha is not None:
        opaque = image.alpha / np.float32(PEAKS[image.alpha.dtype.name])
        shades = shades * opaque + (1 - opaque)
    return shades, [f"{mask}: {note}" for note in image.notes if "frames" in note]


def _grey_share(shades: Array) -> float:
    """The share of shades that are far from black and from white."""
    return float(np.mean((shades > 0.125) & (shades < 0.875)))


def _other_colour(pixels: Array, hole: str, path: Path) -> Array:
    """The pixels that do not have the colour of holes, which may be a number for grey pictures."""
    if pixels.shape[2] == 1:
        number = _number(hole)
        if number is not None:
            with np.errstate(over="ignore"):  # the number may be out of the range of pixels
                return np.asarray(~np.isnan(pixels) if np.isnan(number) else pixels != number)[:, :, 0]
    if pixels.dtype.name not in PEAKS:
        raise InputError(f"{path} has pixels of {pixels.dtype} and no colour {hole}. Pass a number such as 0 or nan.")
    colour = colour_of(hole)
    if pixels.shape[2] == 1 and len(set(colour)) > 1:
        raise InputError(f"{path} is grey and has no colour {hole}. Pass a grey such as '#ffffff', or a number.")
    wanted = np.array(colour[: pixels.shape[2]]) * (PEAKS[pixels.dtype.name] // 255)
    return np.any(pixels != wanted, axis=2)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


EXAMPLES = """\b
Examples:
  bifactor inpaint photo.jpg --mask mask.png -o whole.png
  bifactor inpaint photo.png --transparent -o whole.png
  bifactor inpaint scan.png --hole '#ff00ff' -o whole.png --doubt doubt.png
  bifactor inpaint photo.jpg --keep 0.35 -o recovered.png
"""


SPOKEN = {"uint16": "16 bits", "int32": "32 bits", "float32": "floating-point numbers"}
"""Kinds of pixels other than bytes, in words."""


@click.command(epilog=EXAMPLES)
@click.argument("picture", type=INPUT)
@click.option("--mask", type=INPUT, help="Picture of the same size: white is known, black is filled in.")
@click.option("--transparent", is_flag=True, help="Fill in fully transparent pixels; the output is opaque.")
@click.option(
    "--hole", metavar="COLOUR", help="Fill in pixels of this colour: '#ff00ff' or red; for grey also a number or nan."
)
@click.option("--keep", type=Within(0, 1, min_open=True), help="Keep this share of the pixels, at random.")
@click.option("--truth", type=INPUT, help="The whole picture, to compare with; with --keep it is the picture itself.")
@click.option("-o", "--output", type=INPUT, required=True, help=f"Picture to write: {', '.join(FORMATS)}.")
@click.option("--doubt", type=INPUT, help="Picture to write of the standard deviations; white is 1/8 of the range.")
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
    """Fill in the holes of PICTURE, grey or in colour, from patches that look alike.

    Pass exactly one of --mask, --transparent, --hole and --keep. Known pixels and transparency stay as they are, bit
    for bit. Colours may have 8 or 16 bits; tif also holds grey of 32 bits and floating-point numbers. png and tif keep
    all of this; webp and bmp have 8 bits, bmp and jpg no transparency, and jpg changes pixels slightly: a note says
    what was lost.

    If the whole picture is known, the peak signal-to-noise ratio (PSNR) is shown, beside that of the best blur.
    """
    _require_one(mask=mask is not None, transparent=transparent, hole=hole is not None, keep=keep is not None)
    _require_places(output, doubt, force)
    if keep is not None and truth is not None:
        raise InputError("With --keep the picture itself is the truth. Leave out --truth.")
    image = read_picture(picture)
    pixels, alpha = image.pixels, None if transparent else image.alpha
    require_room(output, pixels.shape, pixels.dtype)
    if doubt is not None:
        require_room(doubt, pixels.shape, np.uint8)
    known, notes = known_pixels(image, picture, mask, hole, keep, seed)
    whole = pixels if keep is not None else None if truth is None else _whole(truth, pixels)
    full, spread, seconds = _completed(pixels, alpha, known)
    _write(output, force, full, alpha, image.profile)
    black, white = _ends(pixels[known] if whole is None else whole)
    if doubt is not None:
        _write(doubt, force, np.clip(8 * 255 / (white - black) * spread[:, :, :1], 0, 255).astype(np.uint8))
    height, width, channels = pixels.shape
    answer: dict[str, Any] = {"output": str(output), "width": width, "height": height, "channels": channels}
    answer |= {"kind": pixels.dtype.name, "known": float(known.mean()), "seconds": seconds}
    answer["seconds_compared"] = 0.0
    answer |= {"doubt": None if doubt is None else str(doubt)}
    scores: dict[str, float | None] = {}
    if whole is not None:
        started = time.perf_counter()
        ours, given, true = (_scaled(each, black, white) for each in (full, pixels, whole))
        scores = _compared(ours, given, true, known, np.isfinite(true).all(axis=2) & _seen(pixels, alpha))
        answer["seconds_compared"] = time.perf_counter() - started
    answer |= dict.fromkeys(("psnr", "psnr_hidden", "psnr_hidden_blur")) | scores
    answer |= {"notes": image.notes + losses(format_of(output), pixels, alpha) + notes}
    print_result(answer, _summary(answer, bool(scores)))


def _require_one(**said: bool) -> None:
    if sum(said.values()) != 1:
        names = ", ".join(f"--{name}" for name in said)
        raise InputError(
            f"{sum(said.values())} of {names} were given. Pass exactly one, which says where the holes are."
        )


def _require_places(output: Path, doubt: Path | None, force: bool) -> None:
    """Raise `InputError` unless both files can be written."""
    for path in (output, doubt):
        if path is not None:
            format_of(path)
            require_free(path, force)
    if doubt is not None and doubt.resolve() == output.resolve():
        raise InputError(f"-o and --doubt are both {output}. Choose two names.")


def _whole(truth: Path, pixels: Array) -> Array:
    whole, shape = read_picture(truth).pixels, pixels.shape
    if whole.shape != shape or whole.dtype != pixels.dtype:
        raise InputError(
            f"{truth} is {whole.shape[1]}×{whole.shape[0]} with {whole.shape[2]} channels of {whole.dtype}, the "
            f"picture is {shape[1]}×{shape[0]} with {shape[2]} of {pixels.dtype}. Pass the same picture without holes."
        )
    return whole


def _ends(pixels: Array) -> tuple[float, float]:
    """The values of black and white; the lowest and highest values of pixels that have no such scale."""
    peak = PEAKS.get(pixels.dtype.name)
    if peak is not None:
        return 0.0, float(peak)
    finite = pixels[np.isfinite(pixels)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
    return low, high if high > low else low + 1


def _write(path: Path, force: bool, pixels: Array, alpha: Array | None = None, profile: bytes | None = None) -> None:
    with new_file(path, force) as temporary, temporary.open("wb") as file:
        write_picture(file, format_of(path), pixels, alpha, profile)


def _completed(pixels: Array, alpha: Array | None, known: Array) -> tuple[Array, Array, float]:
    """The picture without holes, a standard deviation for each pixel, and the time in seconds."""
    seen = _seen(pixels, alpha)
    given, mask = validate_picture(pixels, known)
    if not seen.all():
        # The colour of fully transparent pixels is arbitrary and must not spread into holes beside them.
        given = np.where(seen[:, :, None], given, nearest(given, known & seen))
    started = time.perf_counter()
    with monitor.share("filling in") as show, blas_at_most(1):
        full, spread = fill_picture(given, mask, progress=show)
    full[known] = pixels[known]
    return full, spread, time.perf_counter() - started


def _seen(pixels: Array, alpha: Array | None) -> Array:
    """Where a picture is not fully transparent."""
    return np.ones(pixels.shape[:2], bool) if alpha is None else alpha > 0


def _compared(full: Array, pixels: Array, whole: Array, known: Array, compared: Array) -> dict[str, float | None]:
    """PSNR at all pixels and at hidden ones, and that of the best blur; None where nothing differs."""
    hidden = compared & ~known
    if not hidden.any():
        return {}
    blur = best_blur(pixels, known, np.where(compared[:, :, None], whole, np.float32(0)))
    pairs = {"psnr": (full, compared), "psnr_hidden": (full, hidden), "psnr_hidden_blur": (blur, hidden)}
    return {
        name: None if np.array_equal(one[places], whole[places]) else psnr(one[places], whole[places])
        for name, (one, places) in pairs.items()
    }


def _scaled(pixels: Array, black: float, white: float) -> Array:
    """From 0 for black to 1 for white."""
    return ((pixels - black) / (white - black)).astype(np.float32)


def _summary(answer: dict[str, Any], compared: bool) -> list[tuple[str, str]]:
    kind = "grey" if answer["channels"] == 1 else "colour"
    if answer["kind"] != "uint8":
        kind += f" of {SPOKEN[answer['kind']]}"
    known = f"{answer['known']:.1%} known"
    lines = [("picture", f"{answer['width']}×{answer['height']} pixels in {kind}, {known}")]
    if compared:
        names = ("psnr_hidden", "psnr_hidden_blur", "psnr")
        hidden, blur, whole = ("∞" if answer[name] is None else f"{answer[name]:.2f} dB" for name in names)
        lines.append(("PSNR", f"{hidden} at the hidden pixels (best blur: {blur}), {whole} at all pixels"))
    beside = f", and {answer['seconds_compared']:.1f} s to compare it with blurs" if compared else ""
    lines.append(("time", f"{answer['seconds']:.1f} s{beside}"))
    written = [("written", answer["output"])]
    if answer["doubt"] is not None:
        written.append(("", answer["doubt"]))
    return [*lines, *noted(answer["notes"]), *written]
