"""Pictures side by side in one file, pixel for pixel."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from benchmarks.harness.rows import library

MARGIN, LETTERS = 8, 12
HIDDEN = (255, 0, 255)
"""A colour that few pictures have, in place of unknown pixels."""

Tile = tuple[str, np.ndarray]
"""The caption of a picture, and its bytes."""


def marked(picture: np.ndarray, known: np.ndarray) -> np.ndarray:
    return np.where(known[:, :, None], in_colour(picture), np.uint8(HIDDEN))


def in_colour(picture: np.ndarray) -> np.ndarray:
    return picture if picture.ndim == 3 else np.repeat(picture[:, :, None], 3, axis=2)


def write_sheet(path: Path, strips: Iterable[list[Tile]]) -> None:
    """One strip of pictures below the other."""
    Image, Draw = library("PIL.Image"), library("PIL.ImageDraw")
    font = library("PIL.ImageFont").load_default(LETTERS)
    strips = list(strips)
    widest = max(sum(tile.shape[1] + MARGIN for _, tile in strip) for strip in strips)
    heights = [max(tile.shape[0] for _, tile in strip) + LETTERS + 2 * MARGIN for strip in strips]
    sheet = Image.new("RGB", (widest + MARGIN, sum(heights)), "white")
    draw, top = Draw.Draw(sheet), 0
    for strip, height in zip(strips, heights, strict=True):
        left = MARGIN
        for words, tile in strip:
            draw.text((left, top + MARGIN // 2), words, font=font, fill="black")
            sheet.paste(Image.fromarray(in_colour(tile)), (left, top + LETTERS + MARGIN))
            left += tile.shape[1] + MARGIN
        top += height
    sheet.save(path)
