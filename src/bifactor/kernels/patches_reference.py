"""Groups of similar patches of a picture, each completed by the covariance of its group.

A group is a patch and those nearest to it by brightness. Of each patch the unknown pixels u are told from its known
ones o as the conditional mean of a Gaussian, x_u = μ_u + C_uo(C_oo + ρI)⁻¹(y_o − μ_o), with variance
diag(C_uu − C_uo(C_oo + ρI)⁻¹C_ou). That is the ridge problem min ‖y_o − μ_o − A_o b‖² + ρ‖b‖² with AAᵀ = C, x = μ + Ab:
the fold-in of a row with few entries, in its dense form. μ and C are moments of the group without the patch itself,
which would else explain itself, and C is drawn to a prior.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from bifactor.arrays import Array


class Model(NamedTuple):
    """How patches are compared and completed; lengths in pixels."""

    patch: int
    window: int
    """How far from a patch similar ones are looked for."""
    similar: int
    """Patches of a group."""
    solved: int
    """Of these, the nearest ones that are completed."""
    variance: float
    """Of what no model can explain, such as noise: the part of ρ that is the same everywhere."""
    floor: float
    """Added to variances, of a group and of a pixel, so that none counts as exact."""
    nugget: float
    """ρ beyond it, in shares of the group's own variance."""
    strength: float
    """Patches that the prior of C counts for."""
    correlation: Array
    """That prior's, patch² × patch²."""
    all_told: bool = False
    """Whether known pixels are told as well: they have noise."""
    excess: float = 0.0
    """The variance of noise that guesses of known pixels still have: the part of C's diagonal that is not signal."""


class Picture(NamedTuple):
    """A picture that is being completed."""

    guide: Array
    """H × W: brightness, by which patches are compared, and of which C is the covariance."""
    planes: Array
    """C × H × W: the picture so far. All planes share C."""
    data: Array
    """C × H × W: what was measured where pixels are known. The planes themselves, unless known pixels have noise."""
    known: Array
    """H × W, bool."""


class Band(NamedTuple):
    """Rows of a picture, and for each pixel sums over the patches it is in; no group reads these rows any more."""

    top: int
    values: Array
    """Of weight·value, C × rows × W."""
    weights: Array
    doubts: Array
    """Of weight·variance."""


def aggregate(
    picture: Picture, references: Array, model: Model, progress: Callable[[float], None] | None = None
) -> Iterator[Band]:
    """What groups tell of a picture, in bands of rows from top to bottom. Rows that no group tells of may be left out.

    Parameters
    ----------
    picture : Picture
        Rows may be changed once they have been told.
    references : k × 2
        Corners of the patches that groups are made for.
    progress : callable, optional
        Told which share of the work is done.
    """
    shape = picture.guide.shape
    band = Band(0, np.zeros_like(picture.planes), np.zeros(shape, np.float32), np.zeros(shape, np.float32))
    for done, corner in enumerate(references.tolist(), 1):
        _add_group(picture, corner, model, band)
        if progress is not None:
            progress(done / len(references))
    yield band


def _add_group(picture: Picture, corner: list[int], model: Model, band: Band) -> None:
    p, (guide, planes, data, known) = model.patch, picture
    corners = _nearest(guide, corner, model)
    k = len(corners)
    columns = np.stack([guide[i : i + p, j : j + p].ravel() for i, j in corners]).astype(np.float64)
    columns -= columns.mean(axis=0)
    size = np.mean(columns**2) + model.floor
    C = (columns.T @ columns + model.strength * size * model.correlation) / (k + model.strength)
    guesses, measured = (
        np.stack([part[:, i : i + p, j : j + p].reshape(len(planes), -1) for i, j in corners]).astype(np.float64)
        for part in (planes, data)
    )
    total = guesses.sum(axis=0)
    without = k / ((k - 1) * (k + model.strength)) if k > 1 else 0.0
    for t, (i, j) in enumerate(corners[: model.solved]):
        o = known[i : i + p, j : j + p].ravel()
        u = np.ones_like(o) if model.all_told else ~o
        if not u.any():
            continue
        noisy = C - without * np.outer(columns[t], columns[t])
        others = (total - guesses[t]) / max(k - 1, 1)
        signal = noisy - model.excess * np.diag(o.astype(float))
        ridge = (model.variance + model.nugget * size) * np.eye(int(o.sum()))
        W = np.linalg.solve(signal[np.ix_(o, o)] + ridge, signal[np.ix_(o, u)])
        x = others[:, u] + (measured[t][:, o] - others[:, o]) @ W
        v = np.maximum(np.diag(signal)[u] - np.sum(signal[np.ix_(o, u)] * W, axis=0), 0)
        rows, cols = i + np.flatnonzero(u) // p, j + np.flatnonzero(u) % p
        weight = 1 / (v + model.floor)
        for part, added in zip(band[1:], (weight * x, weight, weight * v), strict=True):
            part[..., rows, cols] += added


def _nearest(guide: Array, corner: list[int], model: Model) -> list[tuple[int, int]]:
    """Corners of the nearest patches, the patch itself first."""
    p, (r, c) = model.patch, corner
    patch = guide[r : r + p, c : c + p]
    rows, cols = (
        range(max(0, at - model.window), min(size - p, at + model.window) + 1)
        for at, size in zip(corner, guide.shape, strict=True)
    )
    found = [(i, j) for i in rows for j in cols]
    far = [float(np.sum((guide[i : i + p, j : j + p] - patch) ** 2, dtype=np.float64)) for i, j in found]
    return [found[t] for t in np.argsort(far, kind="stable")[: model.similar]]
