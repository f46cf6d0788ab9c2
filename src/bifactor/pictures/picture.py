"""Conversion of pictures with holes, of any dtype, to planes of shades and back."""

from collections.abc import Iterator
from os import PathLike
from typing import Any

import numpy as np

from bifactor.arrays import Array
from bifactor.errors import InputError
from bifactor.pictures.channels import Layer, complete_layers
from bifactor.pictures.completion import Progress
from bifactor.pictures.groups import brightness
from bifactor.pictures.noise import noise_level
from bifactor.validation import is_at_least_zero

SHADES = 255.0
"""The range of values for which the constants of the method were chosen."""

TINY, HUGE, WHOLE = 1e-305, 1e305, 2**62
"""The smallest and largest numbers that are accepted, and the largest integer."""

TALL = 256
"""The number of rows that are converted at a time."""


def checked(picture: Any, known: Any = None) -> tuple[Array, Array]:
    """A picture as height × width × channels, and the mask of known values; NaN and masked values are holes.

    Parameters
    ----------
    picture : array, H × W or H × W × channels
        The picture.
    known : array of bool, H × W or the shape of the picture, optional
        The mask of known values.
    """
    if isinstance(picture, (str, PathLike)):
        raise InputError(f"The picture is a file name, {str(picture)!r}. Pass pixels: np.asarray(Image.open(name)).")
    values = np.ma.getdata(picture) if np.ma.isMaskedArray(picture) else np.asarray(picture)
    if values.dtype.kind not in "buif":
        raise InputError(f"The picture has dtype {values.dtype}. Pass integers or floating-point numbers.")
    if values.ndim not in (2, 3) or values.size == 0:
        raise InputError(f"The picture has shape {values.shape}. Pass height × width, or height × width × channels.")
    told = np.ones(values.shape, bool)
    if np.ma.isMaskedArray(picture):
        told &= ~np.ma.getmaskarray(picture)
    if values.dtype.kind == "f":
        told &= ~np.isnan(values)
    if known is not None:
        told &= _mask(known, values.shape)
    planes = values.reshape(*values.shape[:2], -1)
    told = told.reshape(planes.shape)
    if not told.any():
        raise InputError("No pixel is known, so nothing can be completed. Pass known=True where pixels are known.")
    for k in range(planes.shape[2]):
        if not told[:, :, k].any():
            raise InputError(f"No pixel of channel {k} is known. Leave it out, or pass at least one.")
    _require_moderate(planes, told)
    return planes, told


def filled(
    picture: Array, known: Array, denoise: bool | float = False, progress: Progress | None = None
) -> tuple[Array, Array]:
    """A checked picture with its holes filled in, and the standard deviation of each guess.

    Parameters
    ----------
    denoise : bool or float
        Whether to remove noise from known pixels, or its standard deviation in the units of the picture.
    """
    if not isinstance(denoise, bool | np.bool_) and not (is_at_least_zero(denoise) and denoise < np.inf):
        raise InputError(f"denoise={denoise!r} is not a standard deviation. Pass True, False or a number such as 5.")
    groups = _alike(known)
    units = [_range(picture, known, group) for group in groups]
    layers = [_layer(picture, known, group, *unit, denoise) for group, unit in zip(groups, units, strict=True)]
    complete_layers(layers, progress)
    whole, doubt = picture.copy(), np.zeros(picture.shape, np.result_type(picture.dtype, np.float32))
    while layers:
        layer, group, (low, unit) = layers.pop(), groups.pop(), units.pop()
        if layer.done:
            continue
        for k, channel in enumerate(group):
            told = picture[:, :, channel][layer.known]
            ends = float(told.min()), float(told.max())
            for rows in _strips(layer.known):
                here = np.ones_like(layer.known[rows]) if layer.noise > 0 else ~layer.known[rows]
                values = unit * (layer.planes[k, rows][here].astype(np.float64) + low / unit)
                values = np.clip(values, *ends)
                whole[rows, :, channel][here] = values if picture.dtype.kind == "f" else np.rint(values)
                # Planes mostly vary together, so the variance of their sum over √C is C times that of each.
                spread = np.sqrt(layer.variance[rows][here].astype(np.float64) / len(group))
                doubt[rows, :, channel][here] = unit * spread
    return whole, doubt


def _require_moderate(planes: Array, told: Array) -> None:
    """Raise `InputError` if known numbers are too large or too small for double precision."""
    whole, short = planes.dtype.kind != "f", planes.dtype.itemsize < 8
    if whole and short:
        return
    values = planes[told]
    if not np.all(np.isfinite(values)):
        raise InputError("Some known pixels are infinite. Mark them as unknown.")
    if short:
        return
    # Integers as Python numbers: the lowest NumPy integer has no absolute value.
    size = max(abs(end.item() if whole else end) for end in (values.min(), values.max()))
    least, most = (0, WHOLE) if whole else (TINY, HUGE)
    if size > most:
        raise InputError(f"Known pixels reach {size:.3g}, more than {most:.3g}. Divide the picture.")
    if 0 < size < least:
        raise InputError(f"The largest known pixel is {size:.3g}, less than {least:.3g}. Multiply the picture.")


def _layer(picture: Array, known: Array, group: list[int], low: float, unit: float, denoise: bool | float) -> Layer:
    mask = np.ascontiguousarray(known[:, :, group[0]])
    planes = np.zeros((len(group), *mask.shape), np.float32)
    for plane, channel in zip(planes, group, strict=True):
        for rows in _strips(mask):
            here = mask[rows]
            plane[rows][here] = picture[rows, :, channel][here].astype(np.float64) / unit - low / unit
    noise = (
        noise_level(brightness(planes), mask)
        if isinstance(denoise, bool | np.bool_) and denoise
        else float(denoise) / unit
    )
    return Layer(planes, mask, noise, _reach(picture.dtype, int(np.count_nonzero(mask))) / unit)


def _reach(dtype: Any, count: int) -> float:
    """The width of the range of a type; floating-point numbers have none, and one of them says nothing of others."""
    if dtype.kind == "f":
        return np.inf if count == 1 else 0.0
    return 1.0 if dtype.kind == "b" else float(np.iinfo(dtype).max) - float(np.iinfo(dtype).min)


def _strips(mask: Array) -> Iterator[slice]:
    """Some rows at a time, because numbers in double precision take much memory."""
    return (slice(top, top + TALL) for top in range(0, len(mask), TALL))


def _mask(known: Any, shape: tuple[int, ...]) -> Array:
    mask = np.asarray(known)
    if mask.dtype.kind != "b" and not (mask.dtype.kind in "ui" and np.isin(mask, (0, 1)).all()):
        raise InputError(f"known has dtype {mask.dtype}. Pass booleans, True where pixels are known, as mask > 0.")
    if mask.shape == (*shape[:2], 1) or mask.shape == shape[:2]:
        mask = mask.reshape(shape[:2])
        return np.broadcast_to(mask if len(shape) == 2 else mask[:, :, None], shape) != 0
    if len(shape) == 3 and mask.shape == shape[1:]:
        raise InputError(
            f"The picture has shape {shape}, but known has {mask.shape}. Pass np.moveaxis(X, 0, -1): channels last."
        )
    if mask.shape != shape:
        raise InputError(f"known has shape {mask.shape}, but the picture has {shape}. Pass equal heights and widths.")
    return mask != 0


def _alike(known: Array) -> list[list[int]]:
    """Channels with the same holes."""
    groups: list[list[int]] = []
    for k in range(known.shape[2]):
        for group in groups:
            if np.array_equal(known[:, :, group[0]], known[:, :, k]):
                group.append(k)
                break
        else:
            groups.append([k])
    return groups


def _range(picture: Array, known: Array, group: list[int]) -> tuple[float, float]:
    """The value of shade 0, and the size of one shade, from the range of known values, so that units do not matter."""
    ends = [(float(told.min()), float(told.max())) for told in (picture[:, :, k][known[:, :, k]] for k in group)]
    low, high = min(low for low, _ in ends), max(high for _, high in ends)
    width = high / 2 - low / 2  # this is finite
    return low, 2 * (width / SHADES) if width > 0 else 1.0
