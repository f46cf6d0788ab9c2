"""Channels of a picture with different holes, which are completed with the help of each other."""

from dataclasses import dataclass, field

import numpy as np

from bifactor.arrays import Array
from bifactor.pictures.blur import blurred
from bifactor.pictures.completion import Progress, complete

SWEEPS = 2
"""The number of sweeps over layers with different holes: the first begins with the layer with the most known pixels."""

OTHERS = 8
"""The largest number of other layers that are used for a layer."""

TINY = 1e-3
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
            weight = 1 / (float(np.vdot(rest, rest)) + TINY * mine.size)
            sums[k] += np.float32(weight * slope) * base
            weights[k] += weight
    return np.asarray(sums / weights.astype(np.float32)[:, None, None])
