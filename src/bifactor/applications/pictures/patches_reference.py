"""Groups of similar patches of a picture, each completed by the covariance of its group.

A group is a patch and those nearest to it in brightness. The unknown pixels u of each patch are estimated from its
known ones o as the conditional mean of a Gaussian, x_u = μ_u + C_uo(C_oo + ρI)⁻¹(y_o − μ_o), with variance
diag(C_uu − C_uo(C_oo + ρI)⁻¹C_ou). That is the ridge problem min ‖y_o − μ_o − A_o b‖² + ρ‖b‖² with AAᵀ = C, x = μ + Ab:
the fold-in of a row with few entries, in its dense form. μ and C are moments of the group without the patch itself,
which would otherwise explain itself, and C is shrunk towards a prior.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from bifactor.arrays import Array


class PatchModel(NamedTuple):
    """The settings with which patches are compared and completed; lengths are in pixels."""

    patch: int
    window: int
    """The distance from a patch within which similar ones are searched."""
    similar: int
    """The number of patches in a group."""
    solved: int
    """The number of nearest ones of these that are completed."""
    variance: float
    """The variance that no model can explain, such as noise: the part of ρ that is the same everywhere."""
    floor: float
    """A number added to variances of groups and pixels, so that none counts as exact."""
    nugget: float
    """The rest of ρ, as a share of the variance of the group."""
    strength: float
    """The weight of the prior of C, in patches."""
    correlation: Array
    """The correlation of that prior, patch² × patch²."""
    all_told: bool = False
    """Whether known pixels are estimated as well, because they have noise."""
    excess: float = 0.0
    """The variance of the remaining noise of known pixels: the part of the diagonal of C that is not signal."""


class PartialPicture(NamedTuple):
    """A picture that is being completed."""

    guide: Array
    """H × W: the brightness, by which patches are compared, and whose covariance is C."""
    planes: Array
    """C × H × W: the picture so far. All planes share C."""
    data: Array
    """C × H × W: the measured values of known pixels. The planes themselves, unless known pixels have noise."""
    known: Array
    """H × W, bool."""


class Band(NamedTuple):
    """Rows of a picture, and for each pixel sums over its patches; no group reads these rows again."""

    top: int
    values: Array
    """The sums of weight·value, C × rows × W."""
    weights: Array
    doubts: Array
    """The sums of weight·variance."""


def aggregate(
    picture: PartialPicture, references: Array, model: PatchModel, progress: Callable[[float], None] | None = None
) -> Iterator[Band]:
    """Estimates of pixels by groups, in bands of rows from top to bottom. Rows without estimates may be left out.

    Parameters
    ----------
    picture : Picture
        The picture. Rows may be changed after their band was returned.
    references : k × 2
        Corners of the patches for which groups are made.
    progress : callable, optional
        A function that is called with the share of the work that is done.
    """
    shape = picture.guide.shape
    band = Band(0, np.zeros_like(picture.planes), np.zeros(shape, np.float32), np.zeros(shape, np.float32))
    for done, corner in enumerate(references.tolist(), 1):
        _add_group(picture, corner, model, band)
        if progress is not None:
            progress(done / len(references))
    yield band


def _add_group(picture: PartialPicture, corner: list[int], model: PatchModel, band: Band) -> None:
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


def _nearest(guide: Array, corner: list[int], model: PatchModel) -> list[tuple[int, int]]:
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
