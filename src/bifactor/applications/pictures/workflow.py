"""Pictures from file to file: find the holes, fill them in, and compare with the whole picture if that is known."""

import os
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from bifactor.applications.pictures.baselines import best_blur, nearest
from bifactor.applications.pictures.completion import fill_picture, validate_picture
from bifactor.applications.pictures.files import (
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
from bifactor.applications.watch import SILENT, Watch
from bifactor.arrays import Array
from bifactor.errors import InputError
from bifactor.kernels.threading import blas_at_most
from bifactor.running.files import new_file, require_free
from bifactor.validation import is_at_least_zero, is_count

MANY = 0.25
"""The share of grey pixels above which a mask looks like a photograph."""

PSNR = ("psnr", "psnr_hidden", "psnr_hidden_blur")

Pathlike = str | os.PathLike[str]


@dataclass(frozen=True, eq=False)
class Inpainted:
    """A picture whose holes are filled in.

    Attributes
    ----------
    pixels : array
        The picture, of the shape and type of the one that was given.
    uncertainty : array
        The standard deviation of each filled pixel; 0 for known ones.
    known : array of bool, height × width
        The mask of known pixels.
    scores : dict
        If the whole picture is known, PSNR at all pixels and at hidden ones, and that of the best blur at these; None
        where nothing differs.
    card : dict
        Sizes, scores, times and notes.
    """

    pixels: Array
    uncertainty: Array
    known: Array
    scores: dict[str, float | None]
    card: dict[str, Any]
    ends: tuple[float, float]
    """The values of black and white."""
    alpha: Array | None = None
    profile: bytes | None = None

    @property
    def notes(self) -> list[str]:
        """What was lost on the way, or unusual."""
        found: list[str] = self.card["notes"]
        return found

    def save(self, path: Pathlike, *, force: bool = False) -> None:
        """Write the picture to a new file, whose extension says its format."""
        _write(Path(path), force, _planes(self.pixels), self.alpha, self.profile)

    def save_uncertainty(self, path: Pathlike, *, force: bool = False) -> None:
        """Write a grey picture of the standard deviations; white is 1/8 of the range."""
        black, white = self.ends
        shades = 8 * 255 / (white - black) * _planes(self.uncertainty)[:, :, :1]
        _write(Path(path), force, np.clip(shades, 0, 255).astype(np.uint8))


def inpaint(
    picture: Any,
    *,
    mask: Any = None,
    transparent: bool = False,
    hole: str | None = None,
    keep: float | None = None,
    truth: Any = None,
    random_state: int = 0,
    output: Pathlike | None = None,
    doubt: Pathlike | None = None,
    force: bool = False,
    watch: Watch = SILENT,
) -> Inpainted:
    """Fill in the holes of a picture, as `bifactor inpaint` does.

    At most one of `mask`, `transparent`, `hole` and `keep` says where the holes are; without them, pixels that are
    transparent or NaN are filled in. All other pixels stay as they are, bit for bit.

    Parameters
    ----------
    picture : path or array, height × width or height × width × 1 or 3
        The picture.
    mask : path or array of bool, optional
        A picture of the same size, white where pixels are known, or an array that is True there.
    transparent : bool
        Fill in fully transparent pixels; the result is opaque.
    hole : str, optional
        Fill in pixels of this colour, such as "#ff00ff"; for grey also a number or "nan".
    keep : float, optional
        Keep this share of the pixels, at random, and compare the result with the picture.
    truth : path or array, optional
        The whole picture, to compare with.
    random_state : int
        Seed of the pixels that are kept.
    output, doubt : path, optional
        Files to write, as by `Inpainted.save` and `Inpainted.save_uncertainty` with `force`.
    watch : Watch
        What follows the work.

    Returns
    -------
    Inpainted
    """
    said = {"mask": mask is not None, "transparent": transparent, "hole": hole is not None, "keep": keep is not None}
    _require_settings([name for name, given in said.items() if given], keep, truth, random_state)
    paths = [None if path is None else Path(path) for path in (output, doubt)]
    _require_places(paths, force)
    image, name = _open_picture(picture, "the picture")
    pixels, holes = image.pixels, np.isnan(image.pixels).any(axis=2)
    if not any(said.values()):
        transparent, mask = image.alpha is not None, ~holes if image.alpha is None and holes.any() else None
    alpha = None if transparent else image.alpha
    for path, kind in zip(paths, (pixels.dtype, np.dtype(np.uint8)), strict=True):
        if path is not None:
            require_room(path, pixels.shape, kind)
    known, notes = known_pixels(image, name, mask, hole, keep, random_state)
    whole = pixels if keep is not None else None if truth is None else _whole(truth, pixels)
    full, spread, seconds = _complete_picture(pixels, alpha, known, watch)
    ends = _ends(pixels[known] if whole is None else whole)
    shape = pixels.shape if isinstance(picture, (str, os.PathLike)) else np.shape(picture)
    filled = Inpainted(full.reshape(shape), spread.reshape(shape), known, {}, {}, ends, alpha, image.profile)
    for path, save in zip(paths, (filled.save, filled.save_uncertainty), strict=True):
        if path is not None:
            save(path, force=force)
    started = time.perf_counter()
    scores = {} if whole is None else _score_picture(full, pixels, whole, known, _seen(pixels, alpha), ends)
    compared = 0.0 if whole is None else time.perf_counter() - started
    lost = [] if paths[0] is None else losses(format_of(paths[0]), pixels, alpha)
    card = _sizes(pixels) | {"known": float(known.mean()), "seconds": seconds, "seconds_compared": compared}
    written: list[str | None] = [None if path is None else str(path) for path in (output, doubt)]
    card = {"output": written[0], **card, "doubt": written[1], **dict.fromkeys(PSNR), **scores}
    return replace(filled, scores=scores, card=card | {"notes": image.notes + lost + notes})


def _sizes(pixels: Array) -> dict[str, Any]:
    height, width, channels = pixels.shape
    return {"width": width, "height": height, "channels": channels, "kind": pixels.dtype.name}


def _require_settings(holes: list[str], keep: Any, truth: Any, random_state: Any) -> None:
    if len(holes) > 1:
        raise InputError(f"{' and '.join(holes)} exclude each other. Pass the one that says where the holes are.")
    if keep is not None and not (is_at_least_zero(keep) and 0 < keep <= 1):
        raise InputError(f"keep={keep!r} is not above 0 and at most 1. Pass the share of pixels to keep, such as 0.3.")
    if keep is not None and truth is not None:
        raise InputError("With keep, the picture itself is the truth. Leave out truth.")
    if not is_count(random_state, 0):
        raise InputError(f"random_state={random_state!r} is not an integer ≥ 0. Pass one, such as 0.")


def _require_places(paths: list[Path | None], force: bool) -> None:
    """Raise `InputError` unless both files can be written."""
    for path in paths:
        if path is not None:
            format_of(path)
            require_free(path, force)
    output, doubt = paths
    if output is not None and doubt is not None and doubt.resolve() == output.resolve():
        raise InputError(f"output (-o) and doubt (--doubt) are both {output}. Choose two names.")


def _open_picture(picture: Any, name: str) -> tuple[Picture, str]:
    """A picture from a file, or from an array, and what messages call it."""
    if isinstance(picture, (str, os.PathLike)):
        return read_picture(Path(picture)), str(picture)
    pixels = np.asarray(picture)
    if pixels.dtype.kind not in "uif" or pixels.size == 0 or pixels.shape[2:] not in ((), (1,), (3,)):
        raise InputError(
            f"{name} has dtype {pixels.dtype} and shape {pixels.shape}. Pass height × width numbers, or height × width "
            "× 3. ImageCompletion takes any number of channels."
        )
    return Picture(_planes(pixels), None, None, []), name


def _planes(pixels: Array) -> Array:
    return pixels.reshape(*pixels.shape[:2], -1)


def _write(path: Path, force: bool, pixels: Array, alpha: Array | None = None, profile: bytes | None = None) -> None:
    with new_file(path, force) as temporary, temporary.open("wb") as file:
        write_picture(file, format_of(path), pixels, alpha, profile)


# Which pixels are known.


def known_pixels(
    picture: Picture, path: str, mask: Any, hole: str | None, keep: float | None, seed: int
) -> tuple[Array, list[str]]:
    """A height × width array, True where pixels are known, and notes; transparency counts if nothing else is given."""
    shape = picture.pixels.shape[:2]
    notes: list[str] = []
    if keep is not None:
        known = random_mask(shape, keep, seed)
    elif isinstance(mask, (str, os.PathLike)):
        known, notes = _light(Path(mask), picture, path)
    elif mask is not None:
        known = _mask_array(mask, shape)
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


def _light(mask: Path, picture: Picture, path: str) -> tuple[Array, list[str]]:
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


def _mask_array(mask: Any, shape: tuple[int, ...]) -> Array:
    """The known pixels that an array marks."""
    known = np.array(mask)
    if known.dtype != bool or known.shape != shape:
        raise InputError(
            f"mask has dtype {known.dtype} and shape {known.shape}. Pass booleans of shape {shape}, True where pixels "
            "are known."
        )
    return known


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


def _other_colour(pixels: Array, hole: str, path: str) -> Array:
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


# The work.


def _whole(truth: Any, pixels: Array) -> Array:
    image, name = _open_picture(truth, "truth")
    whole, shape = image.pixels, pixels.shape
    if whole.shape != shape or whole.dtype != pixels.dtype:
        raise InputError(
            f"{name} is {whole.shape[1]}×{whole.shape[0]} with {whole.shape[2]} channels of {whole.dtype}, the "
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


def _complete_picture(pixels: Array, alpha: Array | None, known: Array, watch: Watch) -> tuple[Array, Array, float]:
    """The picture without holes, a standard deviation for each pixel, and the time in seconds."""
    seen = _seen(pixels, alpha)
    given, mask = validate_picture(pixels, known)
    if not seen.all():
        # The colour of fully transparent pixels is arbitrary and must not spread into holes beside them.
        given = np.where(seen[:, :, None], given, nearest(given, known & seen))
    started = time.perf_counter()
    with watch.share("filling in") as show, blas_at_most(1):
        full, spread = fill_picture(given, mask, progress=show)
    full[known] = pixels[known]
    return full, spread, time.perf_counter() - started


def _seen(pixels: Array, alpha: Array | None) -> Array:
    """Where a picture is not fully transparent."""
    return np.ones(pixels.shape[:2], bool) if alpha is None else alpha > 0


def _score_picture(
    full: Array, pixels: Array, whole: Array, known: Array, seen: Array, ends: tuple[float, float]
) -> dict[str, float | None]:
    """PSNR at all pixels and at hidden ones, and that of the best blur; None where nothing differs."""
    full, pixels, whole = (_scale(each, *ends) for each in (full, pixels, whole))
    compared = np.isfinite(whole).all(axis=2) & seen
    hidden = compared & ~known
    if not hidden.any():
        return {}
    blur = best_blur(pixels, known, np.where(compared[:, :, None], whole, np.float32(0)))
    pairs = {"psnr": (full, compared), "psnr_hidden": (full, hidden), "psnr_hidden_blur": (blur, hidden)}
    return {
        name: None if np.array_equal(one[places], whole[places]) else psnr(one[places], whole[places])
        for name, (one, places) in pairs.items()
    }


def _scale(pixels: Array, black: float, white: float) -> Array:
    """From 0 for black to 1 for white."""
    return ((pixels - black) / (white - black)).astype(np.float32)
