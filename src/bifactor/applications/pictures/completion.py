"""Completion of pictures: from a smooth start, or a completed coarser picture, by rounds over groups of patches."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

import numpy as np

from bifactor.applications.pictures.baselines import WIDTHS, blurred, fill, smooth
from bifactor.applications.pictures.patches import (
    brightness,
    enlarged,
    halved,
    improve,
    level_count,
    missing_share,
    model_of,
    noise_level,
    roughness,
)
from bifactor.arrays import Array
from bifactor.errors import InputError
from bifactor.validation import is_at_least_zero

SIDE, CROPS, DRAWS = 112, 10, (2, 4)
"""The side in pixels of the parts of a large picture on which weights are fitted, and the number of parts. A small
picture is one part, which is used two to four times, the smaller the more often, with different pixels held out."""

CAUTION = 0.5
"""The number of standard errors by which weights are reduced."""

HELD = 0.15
"""The largest share of known pixels that is held out."""

LEAST = 1e-3
"""The squared difference of shades below which guesses count as equal."""

BLOCK, FEW = 32, 4
"""The side in pixels of the squares whose errors count as independent, and the smallest number of squares."""

Completion = Callable[[Array, Array], Array]
"""A function that fills in planes in place, given the mask of known pixels, and returns the variance of each guess."""

PRIOR = 4.0
"""The weight in pixels of the variance of all known pixels, where few pixels were held out."""

LEAST_VARIANCE = 1e-6
"""The smallest variance of a guess in squared shades."""


@dataclass(frozen=True)
class Blend:
    """Weights of a thin plate and of a blur of some width; the rest is the weight of the guesses themselves."""

    plate: float = 0.0
    blur: float = 0.0
    width: float = 1.0
    error: float = 0.0
    """The sum of the squared errors of the mixture at the pixels that were held out."""
    variance: float = 0.0
    """The sum of the variances of these guesses."""

    def widened(self, variance: Array, planes: Array, known: Array, reach: float) -> Array:
        """Variances of guesses, times the factor by which those of held-out pixels were too small or too large.

        With few known pixels the variance of a guess without a model counts as well. `reach` is the width of the range
        of values: with one known pixel, nothing else says how far others may be.
        """
        count, values = np.count_nonzero(known), planes[:, known].astype(np.float64)
        squares = np.sum((values - values.mean(axis=1, keepdims=True)) ** 2)
        alone = (squares * (1 + 1 / count) + len(planes) * reach**2 / 12 / count) / (count - 1 + 1 / count)
        variance = np.maximum(variance, np.float32(LEAST_VARIANCE))
        mean = float(np.mean(variance, where=~known, dtype=np.float64)) if not known.all() else 0.0
        factor = (self.error + PRIOR * alone) / (self.variance + PRIOR * mean)
        return np.asarray(variance * np.float32(factor))

    def apply(self, planes: Array, known: Array) -> None:
        """Mix them into the unknown pixels."""
        for plane in planes:
            mixed = (1 - self.plate - self.blur) * plane
            if self.plate > 0:
                bent = plane[None].copy()
                fill(bent, known)
                mixed += np.float32(self.plate) * bent[0]
            if self.blur > 0:
                mixed += np.float32(self.blur) * blurred(plane, known, self.width)
            np.copyto(plane, mixed, where=~known)


def best_blend(planes: Array, known: Array, complete: Completion) -> Blend:
    """The best weights for this picture and these holes."""
    rng = np.random.default_rng(0)
    blocks = [
        block for part in _parts(known, rng) for block in _held_back(planes[:, *part], known[part], complete, rng)
    ]
    if not blocks:
        return Blend()
    grams, products, squares, variances = (np.stack(side) for side in zip(*blocks, strict=True))
    plate, mean, blur = _mixture(grams, products) if len(blocks) >= FEW else (0.0, 0.0, 1)
    weights = np.zeros(len(products[0]))
    weights[0], weights[blur] = plate, mean
    error = squares.sum() - 2 * products.sum(axis=0) @ weights + weights @ grams.sum(axis=0) @ weights
    return Blend(plate, mean, WIDTHS[blur - 1], float(error), float(variances.sum()))


def _mixture(grams: Array, products: Array) -> tuple[float, float, int]:
    """The weights of the plate and of the best blur, and the place of this blur among the guesses."""
    # Square roots keep a few squares with high contrast from dominating.
    scales = 1 / np.sqrt(np.maximum(np.trace(grams, axis1=1, axis2=2), LEAST))
    grams, products = scales[:, None, None] * grams, scales[:, None] * products
    gram, product = grams.sum(axis=0), products.sum(axis=0)
    # ‖r − d‖² = ‖r‖² − 2⟨r, d⟩ + ‖d‖² for each guess alone; the plate is the first.
    blur = 1 + int(np.argmin(np.diag(gram)[1:] - 2 * product[1:]))
    grams, products = grams[:, [[0], [blur]], [0, blur]], products[:, [0, blur]]
    weights = _weights(grams.sum(axis=0), products.sum(axis=0))
    count, without = len(grams), zip(grams.sum(axis=0) - grams, products.sum(axis=0) - products, strict=True)
    left_out = np.stack([_weights(*pair) for pair in without])
    errors = np.sqrt((count - 1) * np.var(left_out, axis=0))  # by the jackknife
    plate, mean = np.maximum(weights - CAUTION * errors, 0)
    return float(plate), float(mean), blur


def trial_pixels(known: Array) -> int:
    """The number of pixels that are completed to fit the weights."""
    return _draws(known) * known.size or CROPS * SIDE**2


def _draws(known: Array) -> int:
    """How often a small picture is used; 0 for a large one."""
    often = CROPS * SIDE**2 // known.size
    return min(often, DRAWS[1]) if often >= DRAWS[0] else 0


def _parts(known: Array, rng: np.random.Generator) -> Iterator[tuple[slice, slice]]:
    """All of a small picture, or squares around some of the holes of a large one."""
    if draws := _draws(known):
        yield from [(slice(None), slice(None))] * draws
        return
    tried = (rng.integers(size, size=100 * CROPS) for size in known.shape)
    places = [(i, j) for i, j in zip(*tried, strict=True) if not known[i, j]]
    for place in places[:CROPS]:
        first = [max(0, min(at - SIDE // 2, size - SIDE)) for at, size in zip(place, known.shape, strict=True)]
        yield slice(first[0], first[0] + SIDE), slice(first[1], first[1] + SIDE)


def _held_back(
    planes: Array, known: Array, complete: Completion, rng: np.random.Generator
) -> Iterator[tuple[Array, Array, float, float]]:
    """For each square of a part, inner products of the changes by simpler guesses, with each other and the error.

    Then the sum of squared errors, and that of the variances of the guesses.
    """
    held = known & ~np.roll(known, [int(rng.integers(size)) for size in known.shape], (0, 1))
    if held.sum() > HELD * known.sum():
        held &= rng.random(held.shape) < HELD * known.sum() / held.sum()
    left = known & ~held
    if not held.any() or not left.any():
        return
    ours = np.where(left, planes, np.float32(0))
    simple = np.stack([smooth(ours, left), *(np.stack([blurred(p, left, w) for p in ours]) for w in WIDTHS)])
    variances = np.maximum(complete(ours, left)[held], LEAST_VARIANCE)
    added = (simple - ours)[:, :, held].astype(np.float64)
    missing = (planes - ours)[:, held].astype(np.float64)
    rows, cols = np.nonzero(held)
    squares = (rows // BLOCK) * known.shape[1] + cols // BLOCK
    for square in np.unique(squares):
        here = squares == square
        mine, rest = added[:, :, here].reshape(len(simple), -1), missing[:, here].ravel()
        yield mine @ mine.T, mine @ rest, float(rest @ rest), float(np.sum(variances[here], dtype=np.float64))


def _weights(gram: Array, product: Array) -> Array:
    """argmin over w ≥ 0 of ½wᵀGw − pᵀw, for two unknowns; scaled to a sum of at most 1."""
    alone = np.maximum(product, 0) / np.maximum(np.diag(gram), np.finfo(float).tiny)
    first = int(np.argmax(alone * product))
    found = np.where(np.arange(2) == first, alone, 0)
    if gram[0, 0] * gram[1, 1] - gram[0, 1] ** 2 > 1e-9 * gram[0, 0] * gram[1, 1]:
        both = np.linalg.solve(gram, product)
        found = both if np.all(both >= 0) else found
    return found / max(1, found.sum())


STEPS = (7, 6, 5)
"""The distance between groups in each round, in pixels; coarser pictures use the first in all rounds."""

OVER, OVER_COARSE = (1.4, 1.1, 1.0), (2.0, 1.5, 1.0)
"""The over-relaxation of each round, from a smooth start and from a coarser picture."""

COARSE = 2.0
"""The factor of the noise for coarser pictures, whose model is less accurate."""

Progress = Callable[[float], None]
"""A function that is called with the share of the work that is done."""


def complete(
    planes: Array, known: Array, noise: float = 0.0, progress: Progress | None = None, reach: float = 0.0
) -> Array:
    """Fill in the picture in place, and return the variance of each guess; shades are from 0 to 255.

    Parameters
    ----------
    planes : C × H × W, float32, contiguous
        The picture. Unknown pixels are ignored.
    known : H × W, bool, contiguous
        The mask of known pixels, the same for all planes.
    noise : float
        The standard deviation of the noise of known pixels. Above 0, these are replaced, too.
    progress : callable, optional
        See `Progress`.
    reach : float
        The width of the range of values, for the variance if hardly any pixel is known.
    """
    rough = roughness(brightness(planes), known)
    trials = trial_pixels(known) / known.size
    of_all = None if progress is None else _later(progress, trials / (1 + trials))
    blend = best_blend(planes, known, lambda part, told: _complete(part, told, level_count(told), rough, noise))
    doubt = _complete(planes, known, level_count(known), rough, noise, progress=of_all)
    blend.apply(planes, known)
    return doubt if noise > 0 else blend.widened(doubt, planes, known, reach)


def _complete(
    planes: Array,
    known: Array,
    levels: int,
    rough: float,
    noise: float = 0.0,
    coarse: bool = False,
    progress: Progress | None = None,
) -> Array:
    data = planes.copy() if noise > 0 else planes
    _begin(planes, known, levels, rough)
    share, variance = missing_share(known), max(COARSE * rough if coarse else rough, noise) ** 2
    model = model_of(known.shape, variance, _nugget(share), 6 if share < 0.35 else 10, noise)
    for number, over in enumerate(OVER_COARSE if levels else OVER):
        tell = None if progress is None or coarse else _round(progress, number)
        doubt = improve(planes, data, known, model, STEPS[0 if coarse else number], over, tell)
        model = model._replace(excess=0.0)  # after one round the guesses have little noise
    return doubt


def _later(progress: Progress, before: float) -> Progress:
    return lambda share: progress(before + (1 - before) * share)


def _round(progress: Progress, number: int) -> Progress:
    """The progress of one of the rounds, which take longer with smaller steps."""
    work = [step**-2 for step in STEPS]
    return lambda share: progress((sum(work[:number]) + share * work[number]) / sum(work))


def _begin(planes: Array, known: Array, levels: int, rough: float) -> None:
    """A first guess, plane by plane if there is a coarser picture, because the differences from it take memory."""
    if levels == 0:
        return fill(planes, known)
    small, some = halved(planes, known)
    _complete(small, some, levels - 1, rough, coarse=True)
    for plane, cells in zip(planes, small, strict=True):
        guess = enlarged(cells[None], known.shape)
        rest = plane[None] - guess
        fill(rest, known)
        np.add(guess[0], rest[0], out=plane, where=~known)
    return None


def _nugget(share: float) -> float:
    """The part of a group's variance that patches do not share: larger if fewer pixels are known."""
    return min(0.25, (0.01 if share > 0.85 else 0.005) * share / (1 - share)) if share < 1 else 0.25


# Channels of a picture with different holes, which are completed with the help of each other.

SWEEPS = 2
"""The number of sweeps over layers with different holes: the first begins with the layer with the most known pixels."""

OTHERS = 8
"""The largest number of other layers that are used for a layer."""

LEAST_SQUARED_ERROR = 1e-3
"""The squared error in shades that counts as zero."""

WIDTH = 2.0
"""The width in pixels of the blur; differences from it count as detail."""


@dataclass(eq=False)
class Layer:
    """Channels with the same holes."""

    planes: Array
    """C × H × W, float32, in shades."""
    known: Array
    """H × W, bool."""
    noise: float = 0.0
    """The standard deviation of the noise of known pixels that is to be removed."""
    reach: float = 0.0
    """The width of the range of values, in shades."""
    variance: Array = field(default_factory=lambda: np.zeros(0, np.float32))
    """The variance of each guess, H × W, after completion."""

    @property
    def done(self) -> bool:
        """Whether there is nothing to complete."""
        return self.noise == 0 and bool(self.known.all())


def complete_layers(layers: list[Layer], progress: Progress | None = None) -> None:
    """Fill in all layers in place.

    Channels of one picture have most of their details in common. So only the part of a layer that multiples of the
    others do not explain is completed.
    """
    unfinished = sorted((layer for layer in layers if not layer.done), key=lambda layer: -np.count_nonzero(layer.known))
    told = [layer for layer in layers if layer.done]
    sweeps = SWEEPS if len(unfinished) > 1 else 1
    turns = [layer for _ in range(sweeps) for layer in unfinished]
    for number, layer in enumerate(turns):
        tell = None if progress is None else _shifted(progress, number, len(turns))
        others = [other for other in told if other is not layer]
        if others:
            _complete_beside(layer, _nearest(layers, layer, others), tell)
        else:
            layer.variance = complete(layer.planes, layer.known, layer.noise, tell, layer.reach)
        if layer not in told:
            told.append(layer)


def _shifted(progress: Progress, number: int, turns: int) -> Progress:
    return lambda share: progress((number + share) / turns)


def _nearest(layers: list[Layer], layer: Layer, others: list[Layer]) -> list[Layer]:
    """The neighbouring layers; in a spectrum, these are the most similar."""
    at = layers.index(layer)
    return sorted(others, key=lambda other: abs(layers.index(other) - at))[:OTHERS]


def _complete_beside(layer: Layer, others: list[Layer], progress: Progress | None) -> None:
    """Complete the part that the others do not explain."""
    explained = _explained(layer, others)
    layer.planes -= explained
    layer.variance = complete(layer.planes, layer.known, layer.noise, progress, layer.reach)
    layer.planes += explained


def _explained(layer: Layer, others: list[Layer]) -> Array:
    """For each plane, the part that the others explain: a mean of multiples of these, weighted by their accuracy."""
    known = layer.known
    details = [(plane - blurred(plane, known, WIDTH))[known] for plane in layer.planes]
    sums, weights = np.zeros_like(layer.planes), np.zeros(len(details))
    for other in others:
        base = other.planes.mean(axis=0)
        its = (base - blurred(base, known, WIDTH))[known]
        size = float(np.vdot(its, its))
        for k, mine in enumerate(details):
            slope = float(np.vdot(mine, its)) / size if size > 0 else 0.0
            rest = mine - np.float32(slope) * its
            weight = 1 / (float(np.vdot(rest, rest)) + LEAST_SQUARED_ERROR * mine.size)
            sums[k] += np.float32(weight * slope) * base
            weights[k] += weight
    return np.asarray(sums / weights.astype(np.float32)[:, None, None])


# Conversion of pictures with holes, of any dtype, to planes of shades and back.

SHADES = 255.0
"""The range of values for which the constants of the method were chosen."""

TINY, HUGE, WHOLE = 1e-305, 1e305, 2**62
"""The smallest and largest numbers that are accepted, and the largest integer."""

TALL = 256
"""The number of rows that are converted at a time."""


def validate_picture(picture: Any, known: Any = None) -> tuple[Array, Array]:
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


def fill_picture(
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
