"""Channels of a picture with holes of their own, which tell of each other."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from bifactor.arrays import Array
from bifactor.pictures.blur import blurred
from bifactor.pictures.completion import Progress, complete

SWEEPS = 2
"""Over layers with different holes: the first begins with the one that is known best, which knows nothing of others."""

WIDTH = 2.0
"""Pixels, of the blur beyond which values count as detail."""


@dataclass(eq=False)
class Layer:
    """Channels with the same holes."""

    planes: Array
    """C × H × W, float32, in shades."""
    known: Array
    """H × W, bool."""
    noise: float = 0.0
    """Standard deviation of the noise of known pixels that is to be removed."""
    variance: Array = field(default_factory=lambda: np.zeros(0, np.float32))
    """Of each guess, H × W, once it is told."""

    @property
    def done(self) -> bool:
        """Whether there is nothing to tell."""
        return self.noise == 0 and bool(self.known.all())


def complete_layers(layers: list[Layer], progress: Progress | None = None) -> None:
    """Fills in all layers, in their place.

    Channels of one picture have most of their details in common. So of a layer only what the mean of the others does
    not explain is completed: the planes less a multiple of it, the one that leaves the least detail.
    """
    open_ones = sorted((layer for layer in layers if not layer.done), key=lambda layer: -np.count_nonzero(layer.known))
    told = [layer for layer in layers if layer.done]
    sweeps = SWEEPS if len(open_ones) > 1 else 1
    turns = [layer for _ in range(sweeps) for layer in open_ones]
    for number, layer in enumerate(turns):
        tell = None if progress is None else _shifted(progress, number, len(turns))
        others = [other for other in told if other is not layer]
        if others:
            _complete_beside(layer, _mean(others), tell)
        else:
            layer.variance = complete(layer.planes, layer.known, layer.noise, tell)
        if layer not in told:
            told.append(layer)


def _shifted(progress: Progress, number: int, turns: int) -> Progress:
    return lambda share: progress((number + share) / turns)


def _mean(layers: list[Layer]) -> Array:
    total = sum(layer.planes.sum(axis=0) for layer in layers)
    return np.asarray(total / np.float32(sum(len(layer.planes) for layer in layers)))


def _complete_beside(layer: Layer, base: Array, progress: Progress | None) -> None:
    slopes = np.array(list(_slopes(layer, base)), np.float32)[:, None, None]
    planes = layer.planes
    planes -= slopes * base
    layer.variance = complete(planes, layer.known, layer.noise, progress)
    planes += slopes * base


def _slopes(layer: Layer, base: Array) -> Iterator[float]:
    """Of each plane, the multiple of the base that has most of its details."""
    known = layer.known
    detail = (base - blurred(base, known, WIDTH))[known]
    size = float(np.vdot(detail, detail))
    for plane in layer.planes:
        mine = (plane - blurred(plane, known, WIDTH))[known]
        yield float(np.vdot(mine, detail)) / size if size > 0 else 0.0
