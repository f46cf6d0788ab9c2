"""Pictures as arrays of numbers."""

import io
import struct
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from bifactor.arrays import Array
from bifactor.errors import BifactorError, FileError, InputError
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

GREY, COLOUR = ("1", "L", "LA", "La"), ("P", "PA", "RGB", "RGBA", "RGBa", "RGBX", "CMYK", "YCbCr", "LAB", "HSV")
"""Pillow's names for pictures of 8 bits."""

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


@contextmanager
def opened(path: Path) -> Iterator[Any]:
    """A picture of Pillow's, all of it read, upright; what goes wrong is said in one sentence."""
    with _file(path) as image:
        from PIL import ImageOps

        image.load()
        upright = ImageOps.exif_transpose(image)
    yield upright


def read_pixels(path: Path) -> tuple[Array, list[str]]:
    """Height × width × 1 or 3 numbers from 0 to 255, and what there is to say about them."""
    with opened(path) as image:
        if image.mode not in (*GREY, *COLOUR):
            raise InputError(f"{path} has pixels of kind {image.mode}. Convert it to 8 bits per colour first.")
        notes = []
        if image.mode in ("LA", "La", "RGBA", "RGBa", "PA") or "transparency" in image.info:
            notes.append("Transparency is not kept.")
        values = np.asarray(image.convert("L" if image.mode in GREY else "RGB"))
    return values.reshape(*values.shape[:2], -1), notes


def read_alpha(path: Path) -> Array:
    """How opaque each pixel is, from 0 to 255."""
    with opened(path) as image:
        if image.mode not in ("LA", "La", "RGBA", "RGBa", "PA") and "transparency" not in image.info:
            raise InputError(f"{path} has no transparency, which would say where its holes are. Pass a mask.")
        return np.asarray(image.convert("RGBA"))[:, :, 3]


def colour_of(name: str) -> tuple[int, int, int]:
    """Red, green and blue of a colour as CSS names it."""
    pillow_or_advice()
    from PIL import ImageColor

    try:
        red, green, blue = ImageColor.getrgb(name)[:3]
    except ValueError:
        raise InputError(f"{name!r} is no colour. Pass one as '#ff00ff', or a name as magenta.") from None
    return red, green, blue


def read_grey(path: Path) -> Array:
    """The brightness of a picture, height × width numbers from 0 to 1."""
    values, _ = read_pixels(path)
    planes = [values[:, :, k] for k in range(values.shape[2])]
    # Plane by plane, which is ten times faster than a product of bytes with a vector.
    return planes[0] / 255 if len(planes) == 1 else sum(w * plane for w, plane in zip(LUMA, planes, strict=True)) / 255


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
        raise FileError(f"{path} is no picture, or is damaged or cut short. Pass png, jpeg or the like.") from None
