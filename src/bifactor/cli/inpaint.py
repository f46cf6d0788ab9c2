"""`bifactor inpaint`: fill in the holes of a picture."""

from pathlib import Path
from typing import Any

import click

from bifactor.applications import pictures
from bifactor.applications.pictures.files import FORMATS
from bifactor.cli.monitor import TerminalWatch
from bifactor.cli.options import INPUT, Within, force_option, json_option, seed_option
from bifactor.cli.output import notes as noted
from bifactor.cli.output import print_result
from bifactor.errors import InputError

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
    if keep is not None and truth is not None:
        raise InputError("With --keep the picture itself is the truth. Leave out --truth.")
    filled = pictures.inpaint(
        picture,
        mask=mask,
        transparent=transparent,
        hole=hole,
        keep=keep,
        truth=truth,
        random_state=seed,
        output=output,
        doubt=doubt,
        force=force,
        watch=TerminalWatch(),
    )
    print_result(filled.card, _summary(filled.card, bool(filled.scores)))


def _require_one(**said: bool) -> None:
    if sum(said.values()) != 1:
        names = ", ".join(f"--{name}" for name in said)
        raise InputError(
            f"{sum(said.values())} of {names} were given. Pass exactly one, which says where the holes are."
        )


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
