"""Pictures in files, as arrays of numbers."""

import io
import re
import struct
import sys
import warnings
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from bifactor.arrays import Array
from bifactor.data.text import reading, require_file
from bifactor.errors import BifactorError, FileError, InputError

DEEP_MODES = re.compile(r"(RGB|RGBA|RGBX);16[BLN]")
"""Pillow's names for colours of 16 bits, by the order of bytes: big-endian, little-endian, native."""

DEEP_GREY = "LA;16B"
"""Pillow's name for grey of 16 bits with transparency."""

BITS, PLANES = 258, 284
"""Tags of TIFF files: the bits of each colour; and the layout, 2 if red, green and blue are in separate planes."""


@dataclass(frozen=True)
class LowBytes:
    """How to make Pillow read the low bytes.

    Attributes
    ----------
    tiles : list
        Replace those of the picture. Pillow takes the high byte of each pair; with the opposite byte order it takes
        the low byte. Grey pixels with transparency are read as four bytes, as if they were colours.
    grey : bool
    """

    tiles: list[Any]
    grey: bool

    def joined(self, high: Any, low: Any, key: Any = None) -> tuple[Array, Array | None]:
        """Pixels and their opacity, from pictures read both ways; the colour `key` is transparent."""
        first, second = (np.asarray(image).astype(np.uint16) for image in (high, low))
        if self.grey:
            values = 256 * second[:, :, ::2] + second[:, :, 1::2]
            return values[:, :, :1], values[:, :, 1]
        values = 256 * first + second
        if key is not None:
            return values, np.where(np.all(values == key, axis=2), 0, 65535).astype(np.uint16)
        return values[:, :, :3], values[:, :, 3] if values.shape[2] == 4 else None


def low_bytes(image: Any) -> LowBytes | None:
    """For a picture that is open but not loaded; None if it has no low bytes, or they cannot be read."""
    kinds = {_kind(tile) for tile in image.tile}
    if len(kinds) != 1 or getattr(image, "tag_v2", {}).get(PLANES) == 2:
        return None
    kind = kinds.pop()
    if kind == DEEP_GREY and image.mode == "RGBA":
        return LowBytes([_renamed(tile, "RGBA") for tile in image.tile], grey=True)
    if not DEEP_MODES.fullmatch(kind):
        return None
    high_first = kind.endswith("B") or (kind.endswith("N") and sys.byteorder == "big")
    return LowBytes([_renamed(tile, kind[:-1] + ("L" if high_first else "B")) for tile in image.tile], grey=False)


def loses_bits(image: Any) -> bool:
    """Whether a picture that is open but not loaded has 16 bits per colour, of which only 8 can be read."""
    deep = image.mode in ("L", "LA", "RGB", "RGBA") and any(";16" in _kind(tile) for tile in image.tile)
    return deep and low_bytes(image) is None


def is_misread(image: Any) -> bool:
    """Whether Pillow mistakes two bytes of a colour for two pixels, as it does with uncompressed planes."""
    tags = getattr(image, "tag_v2", {})
    return tags.get(PLANES) == 2 and 16 in tags.get(BITS, ()) and any(len(_kind(tile)) == 1 for tile in image.tile)


def _kind(tile: Any) -> str:
    """Pillow's name for the bytes of a tile."""
    arguments = tile[3]
    return arguments if isinstance(arguments, str) else str(arguments[0]) if arguments else ""


def _renamed(tile: Any, kind: str) -> Any:
    codec, extents, offset, arguments = tile
    make = getattr(type(tile), "_make", tuple)  # tiles are named tuples from Pillow 11 on
    return make((codec, extents, offset, kind if isinstance(arguments, str) else (kind, *arguments[1:])))


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


def random_mask(shape: tuple[int, ...], share: float, seed: int) -> Array:
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


# Writes arrays as pictures, within the limits of each format.

DEEP_FORMATS, CLEAR_FORMATS = ("PNG", "TIFF"), ("PNG", "TIFF", "WEBP")
"""Formats with 16 bits per colour; and those with transparency."""

LONGEST = {"JPEG": 65_500, "WEBP": 16_383}
"""Most pixels of a side."""

OPTIONS: dict[str, dict[str, Any]] = {"JPEG": {"quality": 95}, "WEBP": {"lossless": True, "exact": True}}
"""Options of Pillow's writers: lossless, including transparent colours, except for JPEG."""


def format_of(path: Path) -> str:
    """Pillow's name for the format of a file, by its extension."""
    kind = FORMATS.get(path.suffix.lower())
    if kind is None:
        raise InputError(f"{path} does not have the extension of a picture. Choose one of {', '.join(FORMATS)}.")
    return kind


def require_room(path: Path, shape: tuple[int, ...], dtype: Any) -> None:
    """Raise `InputError` unless a file of that name can hold such pixels."""
    kind, longest = format_of(path), max(shape[:2])
    if np.dtype(dtype).name not in PEAKS and kind != "TIFF":
        raise InputError(f"{path} cannot hold pixels of {dtype}. Choose a name that ends in .tif.")
    if longest > LONGEST.get(kind, longest):
        raise InputError(f"{path} cannot hold {longest} pixels in a row or column. Choose a name that ends in .png.")


def losses(kind: str, pixels: Array, alpha: Array | None = None) -> list[str]:
    """Remarks on what a format loses of a picture."""
    notes = []
    if kind == "JPEG":
        notes.append("JPEG changes pixels slightly, also known ones; png, tif and webp keep them.")
    if pixels.dtype == np.uint16 and kind not in DEEP_FORMATS:
        notes.append(f"{kind} has 8 bits per colour, so 16 bits were rounded; png and tif keep them.")
    if alpha is not None and kind not in CLEAR_FORMATS and np.any(alpha < PEAKS[alpha.dtype.name]):
        notes.append(f"{kind} has no transparency, so it was lost; png, tif and webp keep it.")
    return notes


def write_picture(
    file: BinaryIO, kind: str, pixels: Array, alpha: Array | None = None, profile: bytes | None = None
) -> None:
    """Write height × width × 1 or 3 pixels, with their opacity and colour profile if the format has these."""
    Image = pillow_or_advice()
    values = pixels if alpha is None or kind not in CLEAR_FORMATS else np.dstack([pixels, alpha])
    if values.dtype == np.uint16 and kind in DEEP_FORMATS:
        # Pillow writes 16 bits only in grey.
        file.write((_png if kind == "PNG" else _tiff)(values, profile))
        return
    if values.dtype == np.uint16:
        values = np.rint(values / np.float32(257)).astype(np.uint8)
    options = OPTIONS.get(kind, {}) | ({} if profile is None or kind == "BMP" else {"icc_profile": profile})
    Image.fromarray(values[:, :, 0] if values.shape[2] == 1 else values).save(file, format=kind, **options)


def _png(values: Array, profile: bytes | None) -> bytes:
    """A PNG file of 16 bits per channel, each row as its difference from the one above."""
    height, width, channels = values.shape
    rows = values.astype(">u2").view(np.uint8).reshape(height, -1)
    added = np.diff(rows, axis=0, prepend=np.uint8(0))
    lines = np.hstack([np.full((height, 1), 2, np.uint8), added])
    colour = {1: 0, 2: 4, 3: 2, 4: 6}[channels]
    chunks = [(b"IHDR", struct.pack(">IIBBBBB", width, height, 16, colour, 0, 0, 0))]
    if profile is not None:
        chunks.append((b"iCCP", b"ICC profile\0\0" + zlib.compress(profile)))
    chunks += [(b"IDAT", zlib.compress(lines.tobytes())), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))
        for name, content in chunks
    )


def _tiff(values: Array, profile: bytes | None) -> bytes:
    """A TIFF file of 16 bits per channel, in one uncompressed strip."""
    from PIL.TiffImagePlugin import ImageFileDirectory_v2

    if values.shape[2] == 2:  # few programs read grey with transparency
        values = values[:, :, [0, 0, 0, 1]]
    height, width, channels = values.shape
    content = values.astype("<u2").tobytes()
    tags = ImageFileDirectory_v2()
    tags[256], tags[257], tags[258], tags[259] = width, height, (16,) * channels, 1
    tags[262] = 1 if channels == 1 else 2  # black is zero; red, green and blue
    tags[273], tags[277], tags[278], tags[279] = 0, channels, height, len(content)
    if channels == 4:
        tags[338] = 2  # transparency, not premultiplied
    if profile is not None:
        tags[34675] = profile
    file = io.BytesIO()
    tags.save(file)
    return file.getvalue() + content
