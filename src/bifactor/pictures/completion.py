"""Completion of pictures: from a smooth start, or a completed coarser picture, by rounds over groups of patches."""

from collections.abc import Callable

import numpy as np

from bifactor.arrays import Array
from bifactor.pictures.blend import best_blend, trial_pixels
from bifactor.pictures.groups import brightness, improve, model_of
from bifactor.pictures.levels import enlarged, halved, level_count, missing_share
from bifactor.pictures.noise import roughness
from bifactor.pictures.smooth import fill

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
