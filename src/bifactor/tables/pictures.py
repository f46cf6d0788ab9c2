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
"""Endings of file names, and what Pillow calls such files."""

PHOTOGRAPH, DENSEST = 1 << 25, 10_000
"""Pixels of a photograph; and of a larger one for each byte of its file."""

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
"""What Pillow raises of files that are damaged."""

GREY, COLOUR = ("1", "L", "LA"), ("P", "PA", "RGB", "RGBA", "RGBX", "CMYK", "YCbCr", "HSV")
"""Pillow's names for pictures of 8 bits."""

CLEAR, OTHER = ("LA", "PA", "RGBA"), ("CMYK", "YCbCr", "HSV")
"""Those of them with transparency; and with colours that are converted to red, green and blue."""

PEAKS = {"uint8": 255, "uint16": 65535}
"""White, where numbers have one."""

SIGNS = 339
"""The tag of a TIFF file that is 1 where numbers have no sign, which Pillow does not heed."""

LUMA = np.array([0.299, 0.587, 0.114])
"""Of red, green and blue in brightness, ITU-R BT.601."""

LEAST = 1e-30
"""A mean squared difference below which pictures count as equal."""


def pillow_or_advice() -> Any:
    """Pillow's `Image`."""
    try:
        from PIL import Image
    except ImportError:
        raise BifactorError("Pictures need Pillow. Install it with: pip install 'bifactor[plot]'") from None
    return Image


def pictures_in(folder: Path) -> list[Path]:
    """Files that are pictures by their names, in the order of these."""
    with reading(folder):
        return sorted(path for path in folder.iterdir() if path.suffix.lower() in FORMATS and path.is_file())


def require_picture(path: Path) -> None:
    """Raise `FileError` unless `path` begins like a picture; that it also ends like one is seen when it is read."""
    with _file(path):
        pass


@dataclass(frozen=True)
class Picture:
    """A picture as it is in a file, upright.

    Attributes
    ----------
    pixels : height × width × 1 or 3
        uint8 or uint16; int32 or float32 in grey.
    alpha : height × width, of the same kind, or None
        How opaque each pixel is, where the file says so.
    profile : bytes, optional
        What the colours mean, as the ICC describes it.
    notes : list of str
        What there is to say about how it was read.
    """

    pixels: Array
    alpha: Array | None
    profile: bytes | None
    notes: list[str]


def read_picture(path: Path) -> Picture:
    """All that a file says of a picture, with all of its bits; of several frames the first."""
    with _file(path) as image:
        kind, low, notes, misread = image.format, low_bytes(image), _remarks(image), is_misread(image)
        unsigned = image.mode == "I" and getattr(image, "tag_v2", {}).get(SIGNS) == (1,)
        upright = _upright(image)
    if misread:
        raise FileError(f"{path} has 16 bits per colour in separate planes. Save it with colours side by side.")
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
        raise InputError(f"{path} has numbers above 2147483647. Make them smaller first.")
    # That of other colours does not describe the red, green and blue that they are converted to.
    profile = None if upright.mode in OTHER else info.get("icc_profile")
    return Picture(pixels, alpha, profile or None, notes)


def colour_of(name: str) -> tuple[int, int, int]:
    """Red, green and blue of a colour as CSS names it."""
    pillow_or_advice()
    from PIL import ImageColor

    try:
        red, green, blue = ImageColor.getrgb(name)[:3]
    except ValueError:
        raise InputError(f"{name!r} is not a colour. Pass one as '#ff00ff', or a name as magenta.") from None
    return red, green, blue


def read_grey(path: Path) -> Array:
    """The brightness of a picture, height × width numbers from 0 to 1."""
    values = read_picture(path).pixels
    if values.dtype.name not in PEAKS:
        raise InputError(f"{path} has pixels of {values.dtype}, without a white. Convert it to 8 or 16 bits first.")
    return brightness(values) / PEAKS[values.dtype.name]


def brightness(pixels: Array) -> Array:
    """Of grey or coloured pixels, in their units."""
    planes = [pixels[:, :, k] for k in range(pixels.shape[2])]
    # Plane by plane, which is ten times faster than a product of bytes with a vector.
    return planes[0] if len(planes) == 1 else sum(w * plane for w, plane in zip(LUMA, planes, strict=True))


def shrunk(picture: Array, factor: int) -> Array:
    """Means over squares of `factor` × `factor` pixels; what is left over on the right and below is cut off."""
    height, width = (side // factor for side in picture.shape)
    squares = picture[: height * factor, : width * factor].reshape(height, factor, width, factor)
    return squares.mean(axis=(1, 3))


def kept(shape: tuple[int, ...], share: float, seed: int) -> Array:
    """Which pixels are kept where all but a share of them, at random, are hidden; at least one is."""
    size = int(np.prod(shape))
    known = np.zeros(size, bool)
    known[np.random.default_rng(seed).choice(size, max(round(share * size), 1), replace=False)] = True
    return known.reshape(shape)


def psnr(picture: Array, truth: Array) -> float:
    """Peak signal-to-noise ratio in dB of pictures with values in [0, 1]; 300 where they are equal."""
    return float(-10 * np.log10(max(np.mean((picture - truth) ** 2), LEAST)))


def _upright(image: Any) -> Any:
    from PIL import ImageOps

    image.load()
    # TIFF files are turned as they are loaded, and Pillow 10 would turn them twice.
    return image.copy() if image.format == "TIFF" else ImageOps.exif_transpose(image)


def _remarks(image: Any) -> list[str]:
    """What is lost of a picture as it is read."""
    notes = []
    frames = getattr(image, "n_frames", 1)
    if frames > 1 and image.format != "MPO":  # as cameras write them: one photograph, and previews
        notes.append(f"Of {frames} frames or pages only the first is read.")
    if loses_bits(image):
        notes.append("It has 16 bits per colour, and was read with 8.")
    if image.mode == "1":
        notes.append("It has 1 bit per pixel, and is written in shades of grey.")
    if image.mode in OTHER:
        notes.append(f"Its colours are {image.mode}, and are written as RGB.")
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
            # From memory no more can be asked for than there is, whatever a chunk says of its length.
            with Image.open(io.BytesIO(path.read_bytes())) as image:
                pixels = image.size[0] * image.size[1]
                if pixels > max(PHOTOGRAPH, DENSEST * path.stat().st_size):
                    raise Image.DecompressionBombError
                yield image
    except Image.DecompressionBombError:
        raise FileError(f"{path} has more pixels than can be a photograph. Make it smaller.") from None
    except DAMAGE as error:
        if isinstance(error, FileError) and "permissions" in str(error):
            raise
        raise FileError(
            f"{path} is not a picture that can be read, or is damaged or cut short. Pass png or jpeg."
        ) from None
