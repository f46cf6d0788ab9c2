"""Groups of similar patches of a picture, each completed by the covariance of its group.

A group is a patch and those nearest to it by brightness. Of each patch the unknown pixels u are told from its known
ones o as the conditional mean of a Gaussian, x_u = μ_u + C_uo(C_oo + ρI)⁻¹(y_o − μ_o), with variance
diag(C_uu − C_uo(C_oo + ρI)⁻¹C_ou). That is the ridge problem min ‖y_o − μ_o − A_o b‖² + ρ‖b‖² with AAᵀ = C, x = μ + Ab:
the fold-in of a row with few entries, in its dense form. μ and C are moments of the group without the patch itself,
which would else explain itself, and C is drawn to a prior.
"""

from collections.abc import Callable
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


def aggregate(
    guide: Array,
    planes: Array,
    known: Array,
    references: Array,
    model: Model,
    progress: Callable[[float], None] | None = None,
) -> tuple[Array, Array, Array]:
    """For each pixel sums over the patches it is in: of weight·value, weight, and weight·variance.

    Parameters
    ----------
    guide : H × W
        Brightness, by which patches are compared, and of which C is the covariance.
    planes : C × H × W
        The picture, with guesses where it is not known. All planes share C.
    known : H × W, bool
    references : k × 2
        Corners of the patches that groups are made for.
    progress : callable, optional
        Told which share of the work is done.
    """
    values, weights, doubts = np.zeros_like(planes), np.zeros_like(guide), np.zeros_like(guide)
    for done, corner in enumerate(references.tolist(), 1):
        _add_group(guide, planes, known, corner, model, (values, weights, doubts))
        if progress is not None:
            progress(done / len(references))
    return values, weights, doubts


def _add_group(
    guide: Array, planes: Array, known: Array, corner: list[int], model: Model, sums: tuple[Array, Array, Array]
) -> None:
    p = model.patch
    corners = _nearest(guide, corner, model)
    k = len(corners)
    columns = np.stack([guide[i : i + p, j : j + p].ravel() for i, j in corners]).astype(np.float64)
    mean = columns.mean(axis=0)
    columns -= mean
    size = np.mean(columns**2) + model.floor
    C = (columns.T @ columns + model.strength * size * model.correlation) / (k + model.strength)
    cut = [planes[:, i : i + p, j : j + p].reshape(len(planes), -1) for i, j in corners]
    colours = np.stack(cut).astype(np.float64)
    total = colours.sum(axis=0)
    without = k / ((k - 1) * (k + model.strength)) if k > 1 else 0.0
    for t, (i, j) in enumerate(corners[: model.solved]):
        o = known[i : i + p, j : j + p].ravel()
        if o.all():
            continue
        C_t = C - without * np.outer(columns[t], columns[t])
        others = (total - colours[t]) / max(k - 1, 1)
        ridge = (model.variance + model.nugget * size) * np.eye(int(o.sum()))
        W = np.linalg.solve(C_t[np.ix_(o, o)] + ridge, C_t[np.ix_(o, ~o)])
        x = others[:, ~o] + (colours[t][:, o] - others[:, o]) @ W
        v = np.maximum(np.diag(C_t)[~o] - np.sum(C_t[np.ix_(o, ~o)] * W, axis=0), 0)
        rows, cols = i + np.flatnonzero(~o) // p, j + np.flatnonzero(~o) % p
        weight = 1 / (v + model.floor)
        for part, added in zip(sums, (weight * x, weight, weight * v), strict=True):
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
