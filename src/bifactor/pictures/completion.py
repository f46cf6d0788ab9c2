"""Pictures completed: a smooth start, or a coarser picture completed first, and then rounds over groups of patches."""

from collections.abc import Callable
from functools import partial

import numpy as np

from bifactor.arrays import Array
from bifactor.pictures.groups import Scene, improved, model_of
from bifactor.pictures.levels import enlarged, halved, level_count, missing_share
from bifactor.pictures.noise import noise_level
from bifactor.pictures.smooth import smooth

STEPS = (7, 6, 5)
"""Pixels between groups in each round; the last one of a coarser picture is as coarse as the others."""

OVER, OVER_COARSE = (1.4, 1.1, 1.0), (2.0, 1.5, 1.0)
"""How far a round goes, in multiples of what it says: from a smooth start, and from a coarser picture."""

COARSE = 2.0
"""How much larger the noise of coarser pictures is taken to be, as their model is rougher."""

Progress = Callable[[float, int], None]
"""Told how many rounds are done, and how many there are."""


def completed(planes: Array, known: Array, progress: Progress | None = None) -> tuple[Array, Array]:
    """The picture without holes, and the variance of each guess; shades are from 0 to 255.

    Parameters
    ----------
    planes : C × H × W, float32
        What is not known is not looked at.
    known : H × W, bool
        The same for all planes.
    """
    noise = noise_level(Scene(planes, known).brightness, known)
    return _completed(planes, known, noise, level_count(known), False, progress or (lambda done, total: None))


def _completed(
    planes: Array, known: Array, noise: float, levels: int, coarse: bool, progress: Progress
) -> tuple[Array, Array]:
    scene = Scene(_start(planes, known, noise, levels, progress), known)
    share = missing_share(known)
    variance = (COARSE * noise if coarse else noise) ** 2
    model = model_of(known.shape, variance, _nugget(share), 6 if share < 0.35 else 10)
    doubt = np.zeros(known.shape, np.float32)
    for number, over in enumerate(OVER_COARSE if levels else OVER):
        step = STEPS[0] if coarse else STEPS[number]
        tell = partial(_tell, progress, coarse, number)
        scene, doubt = improved(scene, model, step, over, tell)
    return scene.planes, doubt


def _tell(progress: Progress, coarse: bool, number: int, share: float) -> None:
    """Smaller pictures take little time and are not told of."""
    if not coarse:
        progress(number + share, len(STEPS))


def _start(planes: Array, known: Array, noise: float, levels: int, progress: Progress) -> Array:
    if levels == 0:
        return smooth(planes, known)
    small, _ = _completed(*halved(planes, known), noise, levels - 1, True, progress)
    guess = enlarged(small, known.shape)
    return guess + smooth(np.where(known, planes - guess, np.float32(0)), known)


def _nugget(share: float) -> float:
    """The part of a group's variance that no patch can tell of another: more where fewer pixels are known."""
    return min(0.25, (0.01 if share > 0.85 else 0.005) * share / (1 - share)) if share < 1 else 0.25
