"""A round over all groups of similar patches."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bifactor import kernels
from bifactor.arrays import Array
from bifactor.kernels.patches_reference import Model

PATCH, WINDOW, SIMILAR = 8, 10, 64
"""Pixels along a patch, pixels around it that similar ones are looked for in, and patches of a group."""

FLOOR = 0.25
"""Of the noise's variance: below it, differences between patches mean nothing."""

REACH, STRENGTH = 8.0, 10.0
"""Of the prior: pixels over which the correlation falls to 1/e, and patches that it counts for."""


@dataclass(frozen=True)
class Scene:
    """A picture that is being completed: values in shades from 0 to 255, and where they are known."""

    planes: Array
    """C × H × W, float32, with guesses where nothing is known."""
    known: Array
    """H × W, the same for all planes."""

    @property
    def brightness(self) -> Array:
        """The plane that patches are compared by. All planes have its covariance, up to a factor that cancels."""
        return np.ascontiguousarray(self.planes.sum(axis=0) / np.float32(len(self.planes) ** 0.5))


def model_of(shape: tuple[int, int], variance: float, nugget: float, solved: int) -> Model:
    """Patches that fit into the picture."""
    patch = min(PATCH, *shape)
    at = np.arange(patch * patch)
    rows, cols = at // patch, at % patch
    apart = np.hypot(rows[:, None] - rows, cols[:, None] - cols)
    correlation = np.exp(-apart / REACH).astype(np.float32)
    return Model(patch, WINDOW, SIMILAR, solved, variance, FLOOR * variance, nugget, STRENGTH, correlation)


def references(known: Array, patch: int, step: int) -> Array:
    """Corners on a grid, the last ones at the border, whose patches have something unknown."""
    rows, cols = (_along(size, patch, step) for size in known.shape)
    sums = np.zeros((known.shape[0] + 1, known.shape[1] + 1), np.int64)
    np.cumsum(np.cumsum(~known, axis=0), axis=1, out=sums[1:, 1:])
    i, j = (side.ravel() for side in np.meshgrid(rows, cols, indexing="ij"))
    holes = sums[i + patch, j + patch] - sums[i, j + patch] - sums[i + patch, j] + sums[i, j]
    return np.stack([i[holes > 0], j[holes > 0]], axis=1)


def improved(
    scene: Scene, model: Model, step: int, relaxation: float, progress: Callable[[float], None] | None = None
) -> tuple[Scene, Array]:
    """The scene with better guesses, and the variance of each."""
    corners = references(scene.known, model.patch, step)
    find = kernels.find("patches", np.float32, len(corners) * model.similar, model.patch**4)
    values, weights, doubts = find.aggregate(scene.brightness, scene.planes, scene.known, corners, model, progress)
    told = ~scene.known & (weights > 0)
    planes = scene.planes.copy()
    weights = np.maximum(weights, np.float32(1e-30))
    for plane, sums in zip(planes, values, strict=True):
        plane[told] += np.float32(relaxation) * (sums[told] / weights[told] - plane[told])
    return Scene(planes, scene.known), np.where(told, doubts / weights, 0)


def _along(size: int, patch: int, step: int) -> Array:
    return np.unique(np.append(np.arange(0, size - patch + 1, step), size - patch))
