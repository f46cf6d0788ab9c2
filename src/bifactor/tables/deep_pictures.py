"""Colours of 16 bits: Pillow reads the high 8, so the low 8 are read in a second pass."""

import re
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np

from bifactor.arrays import Array

DEEP = re.compile(r"(RGB|RGBA|RGBX);16[BLN]")
"""Pillow's names for colours of 16 bits, by the order of bytes: big-endian, little-endian, native."""

GREY = "LA;16B"
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
    if kind == GREY and image.mode == "RGBA":
        return LowBytes([_renamed(tile, "RGBA") for tile in image.tile], grey=True)
    if not DEEP.fullmatch(kind):
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
