"""Pictures completed: a smooth start, or a coarser picture completed first, and then rounds over groups of patches."""

from collections.abc import Callable

import numpy as np

from bifactor.arrays import Array
from bifactor.pictures.blend import best_blend, trial_pixels
from bifactor.pictures.groups import brightness, improve, model_of
from bifactor.pictures.levels import enlarged, halved, level_count, missing_share
from bifactor.pictures.noise import roughness
from bifactor.pictures.smooth import fill

STEPS = (7, 6, 5)
"""Pixels between groups in each round; the last one of a coarser picture is as coarse as the others."""

OVER, OVER_COARSE = (1.4, 1.1, 1.0), (2.0, 1.5, 1.0)
"""How far a round goes, in multiples of what it says: from a smooth start, and from a coarser picture."""

COARSE = 2.0
"""How much larger the noise of coarser pictures is taken to be, as their model is rougher."""

Progress = Callable[[float], None]
"""Called with the share of the work that is done."""


def complete(planes: Array, known: Array, noise: float = 0.0, progress: Progress | None = None) -> Array:
    """Fills in the picture, in its place, and returns the variance of each guess; shades are from 0 to 255.

    Parameters
    ----------
    planes : C × H × W, float32, contiguous
        What is not known is not looked at.
    known : H × W, bool, contiguous
        The same for all planes.
    noise : float
        Standard deviation of the noise of known pixels. Above 0 they are told as well.
    """
    rough = roughness(brightness(planes), known)
    trials = trial_pixels(known) / known.size
    of_all = None if progress is None else _later(progress, trials / (1 + trials))
    blend = best_blend(planes, known, lambda part, told: _complete(part, told, level_count(told), rough, noise))
    doubt = _complete(planes, known, level_count(known), rough, noise, progress=of_all)
    blend.apply(planes, known)
    return doubt


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
        model = model._replace(excess=0.0)  # after one round there is little noise in the guesses
    return doubt


def _later(progress: Progress, before: float) -> Progress:
    return lambda share: progress(before + (1 - before) * share)


def _round(progress: Progress, number: int) -> Progress:
    """Of one of the rounds, which take the longer the nearer groups are."""
    work = [step**-2 for step in STEPS]
    return lambda share: progress((sum(work[:number]) + share * work[number]) / sum(work))


def _begin(planes: Array, known: Array, levels: int, rough: float) -> None:
    """A first guess, plane by plane where a coarser picture helps: their differences from it take memory."""
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
    """The part of a group's variance that no patch can tell of another: more where fewer pixels are known."""
    return min(0.25, (0.01 if share > 0.85 else 0.005) * share / (1 - share)) if share < 1 else 0.25
