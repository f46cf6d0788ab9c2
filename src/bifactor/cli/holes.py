"""The holes of a picture, by a mask, a colour, transparency, or at random."""

from pathlib import Path

import numpy as np

from bifactor.arrays import Array
from bifactor.errors import InputError
from bifactor.tables.pictures import PEAKS, Picture, brightness, colour_of, kept, read_picture

MANY = 0.25
"""The share of grey pixels above which a mask looks like a photograph."""


def known_pixels(
    picture: Picture, path: Path, mask: Path | None, hole: str | None, keep: float | None, seed: int
) -> tuple[Array, list[str]]:
    """A height × width array, True where pixels are known, and notes; transparency counts if nothing else is given."""
    shape = picture.pixels.shape[:2]
    notes: list[str] = []
    if keep is not None:
        known = kept(shape, keep, seed)
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
