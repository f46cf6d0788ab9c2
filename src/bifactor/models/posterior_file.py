"""The posterior of a fit in a file, with or without its covariances."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from bifactor.arrays import Array
from bifactor.errors import FileError
from bifactor.factors import Factors
from bifactor.running import files
from bifactor.solvers.variational.features import Weights, parts_of
from bifactor.solvers.variational.moments import Places
from bifactor.solvers.variational.posterior import Gaussians, Posterior
from bifactor.tables.numbers import number_of

SIDES = ("row", "column")

KINDS = ("features", "pattern")
"""Kinds of weights; files of earlier versions have none."""

MOST = 1 << 28
"""Largest number of numbers in the covariances of one side that are computed for a file if they were not stored."""

NUMBERS = ("variance", "degrees", "row_strength", "column_strength", "weight")
"""Numbers besides the arrays; files of earlier versions have no weight, which is then 1."""


def write(path: Path, posterior: Posterior, dtype: Any, whole: bool) -> None:
    """Write a posterior in the precision of the factors, whose means are in another file; covariances if `whole`."""
    arrays: dict[str, Array] = {}
    for name, part in zip(SIDES, (posterior.rows, posterior.cols), strict=True):
        arrays |= {f"{name}_prior": part.prior, f"{name}_precision": part.precision}
        covariance = _covariance(part) if whole else None
        if covariance is not None:
            arrays[f"{name}_covariance"] = covariance.astype(dtype)
        if part.cold is not None:
            arrays[f"{name}_cold"] = part.cold
        for kind, weights in zip(KINDS, part.weights, strict=True):
            if weights is not None:
                arrays |= {f"{name}_{kind}_{key}": one for key, one in _packed(weights, whole).items()}
    values = posterior.variance, posterior.degrees, *posterior.strengths, posterior.weight
    numbers = zip(NUMBERS, values, strict=True)
    told = {name: repr(float(one)) for name, one in numbers if one is not None}
    sides = zip(SIDES, (posterior.rows, posterior.cols), strict=True)
    told |= {f"{name}_blind": "1" for name, part in sides if part.blind}
    files.write(path, "posterior", arrays, told)


def _covariance(part: Gaussians) -> Array | None:
    """Covariances; those of rows in blocks are computed again, unless there are too many."""
    if part.covariance is None and part.again is not None and len(part) * part.places.rank**2 <= MOST:
        return part.take(np.arange(len(part))).covariance
    return part.covariance


def read(path: Path, x: Factors) -> Posterior:
    """Read a posterior; the factors of the fit are its means."""
    arrays, told = files.read(path, "posterior")
    try:
        sides = [_side(arrays, name, x, which) for which, name in enumerate(SIDES)]
        sides = [replace(side, blind=f"{name}_blind" in told) for name, side in zip(SIDES, sides, strict=True)]
        variance, degrees, first, second, weight = (_positive(told, name) for name in NUMBERS)
        if variance is None:
            raise ValueError("it has no variance of the noise")
    except ValueError as error:
        raise FileError(f"{path} is damaged: {error}. Fit again.") from None
    return Posterior(sides[0], sides[1], variance, degrees, (first, second), weight or 1.0)


def _side(arrays: dict[str, Array], name: str, x: Factors, which: int) -> Gaussians:
    means = np.asarray((x.left, x.right)[which], np.float64)
    places = Places.of(x, which, shared=False)
    prior = _array(arrays, f"{name}_prior", (places.rank,))
    precision = _array(arrays, f"{name}_precision", (len(means),))
    if not (np.all(prior > 0) and np.all(precision > 0)):
        raise ValueError(f"some precisions of {name}s are not positive")
    covariance = None
    if f"{name}_covariance" in arrays:
        covariance = _array(arrays, f"{name}_covariance", (len(means), places.rank * (places.rank + 1) // 2))
        if np.any(covariance[:, places.diagonal] < 0):
            raise ValueError(f"some variances of {name}s are negative")
    first, second = (_weights(arrays, f"{name}_{kind}", places) for kind in KINDS)
    cold = _array(arrays, f"{name}_cold", (places.rank,)) if f"{name}_cold" in arrays else None
    return Gaussians(means, covariance, places, prior, precision, (first, second), cold)


def _packed(weights: Weights, whole: bool) -> dict[str, Array]:
    """Arrays by the names of fields; K only in a `whole` posterior."""
    names = ("mean", "columns", "average", "scatter")
    lines = {f"lines_{k}": K for k, K in enumerate(weights.lines if whole else ())}
    return {name: getattr(weights, name) for name in names} | lines


def _weights(arrays: dict[str, Array], name: str, places: Places) -> Weights | None:
    if f"{name}_mean" not in arrays:
        return None
    d, k = places.rank, arrays[f"{name}_mean"].shape[0] if arrays[f"{name}_mean"].ndim else 0
    lines = []
    for part in range(len(parts_of(places.effects, d)) if f"{name}_lines_0" in arrays else 0):
        whole = arrays.get(f"{name}_lines_{part}", np.empty(0)).ndim == 2
        lines.append(_array(arrays, f"{name}_lines_{part}", (k, k) if whole else (k,)))
    mean, average = _array(arrays, f"{name}_mean", (k, d)), _array(arrays, f"{name}_average", (k,))
    columns, scatter = (_array(arrays, f"{name}_{field}", (d, d)) for field in ("columns", "scatter"))
    return Weights(mean, tuple(lines), columns, places.effects, average, scatter)


def _array(arrays: dict[str, Array], name: str, shape: tuple[int, ...]) -> Array:
    found = arrays.get(name)
    if found is None or found.shape != shape or found.dtype.kind != "f" or not np.all(np.isfinite(found)):
        raise ValueError(f"{name} is not {'×'.join(map(str, shape))} finite numbers")
    return found.astype(np.float64)


def _positive(told: dict[str, Any], name: str) -> float | None:
    if name not in told:
        return None
    number = number_of(told[name]) if isinstance(told[name], str) else None
    if number is None or not 0 < number < np.inf:
        raise ValueError(f"{name} is {str(told[name])[:40]!r}, not a number above 0")
    return number
