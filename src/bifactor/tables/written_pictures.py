"""Writes arrays as pictures, within the limits of each format."""

import io
import struct
import zlib
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from bifactor.arrays import Array
from bifactor.errors import InputError
from bifactor.tables.pictures import FORMATS, PEAKS, pillow_or_advice

DEEP, CLEAR = ("PNG", "TIFF"), ("PNG", "TIFF", "WEBP")
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
    if pixels.dtype == np.uint16 and kind not in DEEP:
        notes.append(f"{kind} has 8 bits per colour, so 16 bits were rounded; png and tif keep them.")
    if alpha is not None and kind not in CLEAR and np.any(alpha < PEAKS[alpha.dtype.name]):
        notes.append(f"{kind} has no transparency, so it was lost; png, tif and webp keep it.")
    return notes


def write_picture(
    file: BinaryIO, kind: str, pixels: Array, alpha: Array | None = None, profile: bytes | None = None
) -> None:
    """Write height × width × 1 or 3 pixels, with their opacity and colour profile if the format has these."""
    Image = pillow_or_advice()
    values = pixels if alpha is None or kind not in CLEAR else np.dstack([pixels, alpha])
    if values.dtype == np.uint16 and kind in DEEP:
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
