"""Small pictures as text, and back."""

import base64
import io

import numpy as np

from bifactor.applications.pictures.files import pillow_or_advice
from bifactor.arrays import Array

WIDTH = 400
"""Pixels, at most."""


def encoded(picture: Array, known: Array | None = None) -> str:
    """A PNG in base 64 of numbers from 0 to 1, made smaller; pixels that are not `known` are transparent."""
    Image = pillow_or_advice()
    grey = np.rint(255 * np.clip(picture, 0, 1)).astype(np.uint8)
    size = _smaller(picture.shape)
    if known is None:
        image = Image.fromarray(grey).resize(size, Image.Resampling.LANCZOS)
    else:  # single pixels, as a mean would fill the holes
        image = Image.fromarray(np.dstack([grey, np.where(known, 255, 0).astype(np.uint8)]))
        image = image.resize(size, Image.Resampling.NEAREST)
    file = io.BytesIO()
    image.save(file, format="PNG", optimize=True)
    return base64.b64encode(file.getvalue()).decode()


def decoded(text: str) -> Array:
    """Numbers from 0 to 1, NaN where the picture is transparent."""
    with pillow_or_advice().open(io.BytesIO(base64.b64decode(text))) as image:
        values = np.asarray(image) / 255
    return values if values.ndim == 2 else np.where(values[:, :, 1] > 0, values[:, :, 0], np.nan)


def _smaller(shape: tuple[int, ...]) -> tuple[int, int]:
    height, width = shape
    scale = min(WIDTH / width, 1.0)
    return max(round(scale * width), 1), max(round(scale * height), 1)
