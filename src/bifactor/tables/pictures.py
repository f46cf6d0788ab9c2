"""Pictures as arrays of numbers."""

import io
import struct
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bifactor.arrays import Array
from bifactor.errors import BifactorError, FileError, InputError
from bifactor.tables.deep_pictures import is_misread, loses_bits, low_bytes
from bifactor.tables.source import reading, require_file

FORMATS = {
    ".png": "PNG",
    ".jpg": "JPEG",
    ".jpeg": "JPEG",
    ".webp": "WEBP",
    ".bmp": "BMP",
    ".tif": "TIFF",
    ".tiff": "TIFF",
}
"""Extensions of file names, and Pillow's names for these formats."""

PHOTOGRAPH, DENSEST = 1 << 25, 10_000
"""Most pixels of a picture; a larger one may have this many for each byte of its file."""

DAMAGE = (
    FileError,
    SyntaxError,
    ValueError,
    TypeError,
    LookupError,
    ArithmeticError,
    AttributeError,
    RuntimeError,
    EOFError,
    struct.error,
)
"""Exceptions that Pillow raises for damaged files."""

GREY, COLOUR = ("1", "L", "LA"), ("P", "PA", "RGB", "RGBA", "RGBX", "CMYK", "YCbCr", "HSV")
"""Pillow's names for pictures of 8 bits."""

CLEAR, OTHER = ("LA", "PA", "RGBA"), ("CMYK", "YCbCr", "HSV")
"""Those with transparency; and those whose colours are converted to red, green and blue."""

PEAKS = {"uint8": 255, "uint16": 65535}
"""The value of white, for types of pixels that have one."""

SIGNS = 339
"""The tag of a TIFF file that is 1 if numbers are unsigned, which Pillow ignores."""

LUMA = np.array([0.299, 0.587, 0.114])
"""Weights of red, green and blue in the brightness, ITU-R BT.601."""

LEAST = 1e-30
"""A mean squared difference below which pictures count as equal."""


def pillow_or_advice() -> Any:
    """Pillow's `Image`; raise with advice if Pillow is not installed."""
    try:
        from PIL import Image
    except ImportError:
        raise BifactorError("Pictures need Pillow. Install it with: pip install 'bifactor[plot]'") from None
    return Image


def pictures_in(folder: Path) -> list[Path]:
    """Files with the extension of a picture, sorted by name."""
    with reading(folder):
        return sorted(path for path in folder.iterdir() if path.suffix.lower() in FORMATS and path.is_file())


def require_picture(path: Path) -> None:
    """Raise `FileError` unless `path` begins like a picture; whether it is complete shows only when it is read."""
    with _file(path):
        pass


@dataclass(frozen=True)
class Picture:
    """A picture from a file, in upright orientation.

    Attributes
    ----------
    pixels : height × width × 1 or 3
        uint8 or uint16; int32 or float32 in grey.
    alpha : height × width, of the same kind, or None
        The opacity of each pixel, if the file has it.
    profile : bytes, optional
        The ICC profile of the colours.
    notes : list of str
        Remarks on how it was read.
    """

    pixels: Array
    alpha: Array | None
    profile: bytes | None
    notes: list[str]


def read_picture(path: Path) -> Picture:
    """Read a picture with all of its bits; the first one if the file has several frames."""
    with _file(path) as image:
        kind, low, notes, misread = image.format, low_bytes(image), _remarks(image), is_misread(image)
        unsigned = image.mode == "I" and getattr(image, "tag_v2", {}).get(SIGNS) == (1,)
        upright = _upright(image)
    if misread:
        raise FileError(f"{path} has 16 bits per colour in separate planes. Save it with interleaved colours.")
    info = upright.info
    if low is not None:
        with _file(path) as image:
            image.tile = low.tiles
            pixels, alpha = low.joined(upright, _upright(image), info.get("transparency"))
    elif upright.mode in (*GREY, *COLOUR):
        pixels, alpha = _bytes(upright)
    else:
        pixels, alpha = _numbers(upright, kind, path)
    if unsigned and pixels.min() < 0:
        raise InputError(f"{path} has numbers above 2147483647. Scale them down first.")
    # The profile of other colours does not describe the red, green and blue that they are converted to.
    profile = None if upright.mode in OTHER else info.get("icc_profile")
    return Picture(pixels, alpha, profile or None, notes)


def colour_of(name: str) -> tuple[int, int, int]:
    """Red, green and blue of a colour in CSS notation."""
    pillow_or_advice()
    from PIL import ImageColor

    try:
        red, green, blue = ImageColor.getrgb(name)[:3]
    except ValueError:
        raise InputError(f"{name!r} is not a colour. Pass one such as '#ff00ff' or magenta.") from None
    return red, green, blue


def read_grey(path: Path) -> Array:
    """The brightness of a picture, height × width numbers from 0 to 1."""
    values = read_picture(path).pixels
    if values.dtype.name not in PEAKS:
        raise InputError(f"{path} has {values.dtype} pixels, which have no white. Convert it to 8 or 16 bits first.")
    return brightness(values) / PEAKS[values.dtype.name]


def brightness(pixels: Array) -> Array:
    """The brightness of grey or coloured pixels, in their units."""
    planes = [pixels[:, :, k] for k in range(pixels.shape[2])]
    # Plane by plane is ten times faster than a product of bytes with a vector.
    return planes[0] if len(planes) == 1 else sum(w * plane for w, plane in zip(LUMA, planes, strict=True))


def shrunk(picture: Array, factor: int) -> Array:
    """Means over squares of `factor` × `factor` pixels; remaining pixels at the right and the bottom are dropped."""
    height, width = (side // factor for side in picture.shape)
    squares = picture[: height * factor, : width * factor].reshape(height, factor, width, factor)
    return squares.mean(axis=(1, 3))


def kept(shape: tuple[int, ...], share: float, seed: int) -> Array:
    """A random mask that is True for a share of the pixels, and for at least one."""
    size = int(np.prod(shape))
    known = np.zeros(size, bool)
    known[np.random.default_rng(seed).choice(size, max(round(share * size), 1), replace=False)] = True
    return known.reshape(shape)


def psnr(picture: Array, truth: Array) -> float:
    """Peak signal-to-noise ratio in dB of pictures with values in [0, 1]; 300 if they are equal."""
    return float(-10 * np.log10(max(np.mean((picture - truth) ** 2), LEAST)))


def _upright(image: Any) -> Any:
    from PIL import ImageOps

    image.load()
    # TIFF files are rotated when they are loaded, and Pillow 10 would rotate them twice.
    return image.copy() if image.format == "TIFF" else ImageOps.exif_transpose(image)


def _remarks(image: Any) -> list[str]:
    """Remarks on what is lost when a picture is read."""
    notes = []
    frames = getattr(image, "n_frames", 1)
    if frames > 1 and image.format != "MPO":  # cameras write MPO: one photograph, and previews
        notes.append(f"Only the first of {frames} frames or pages is read.")
    if loses_bits(image):
        notes.append("The picture has 16 bits per colour, of which 8 were read.")
    if image.mode == "1":
        notes.append("The picture has 1 bit per pixel; it is written in shades of grey.")
    if image.mode in OTHER:
        notes.append(f"The colours are {image.mode}; they are written as RGB.")
    return notes


def _bytes(image: Any) -> tuple[Array, Array | None]:
    """Pixels of 8 bits, and their transparency."""
    clear = image.mode in CLEAR or "transparency" in image.info
    values = np.asarray(image.convert(("L" if image.mode in GREY else "RGB") + "A" * clear))
    values = values.reshape(*values.shape[:2], -1)
    return (values[:, :, :-1], values[:, :, -1]) if clear else (values, None)


def _numbers(image: Any, kind: str, path: Path) -> tuple[Array, Array | None]:
    """Grey pixels of more than 8 bits, and their transparency."""
    if image.mode.startswith("I;16") or (image.mode == "I" and kind in ("PNG", "PPM")):
        values = np.asarray(image).astype(np.uint16)
        key = image.info.get("transparency")
        return values[:, :, None], None if key is None else np.where(values == key, 0, 65535).astype(np.uint16)
    if image.mode not in ("I", "F"):
        raise InputError(f"{path} has pixels of kind {image.mode}. Convert it to 8 or 16 bits per colour first.")
    return np.asarray(image)[:, :, None], None


@contextmanager
def _file(path: Path) -> Iterator[Any]:
    Image = pillow_or_advice()
    require_file(path)
    try:
        with reading(path), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # Reading from memory bounds the length that a damaged chunk can ask for.
            with Image.open(io.BytesIO(path.read_bytes())) as image:
                pixels = image.size[0] * image.size[1]
                if pixels > max(PHOTOGRAPH, DENSEST * path.stat().st_size):
                    raise Image.DecompressionBombError
                yield image
    except Image.DecompressionBombError:
        raise FileError(f"{path} has too many pixels for the size of its file. Make the picture smaller.") from None
    except DAMAGE as error:
        if isinstance(error, FileError) and "permissions" in str(error):
            raise
        raise FileError(f"{path} is not a supported picture, or it is damaged. Pass a png or jpeg file.") from None
