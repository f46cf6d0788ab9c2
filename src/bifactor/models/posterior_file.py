"""The posterior of a fit in a file, with or without its covariances."""

from pathlib import Path
from typing import Any

import numpy as np

from bifactor.arrays import Array
from bifactor.errors import FileError
from bifactor.factors import Factors
from bifactor.running import files
from bifactor.solvers.parts.gaussians import Gaussians
from bifactor.solvers.parts.moments import Places
from bifactor.solvers.parts.posterior import Posterior

SIDES = ("row", "column")

NUMBERS = ("variance", "degrees", "row_strength", "column_strength")


def write(path: Path, posterior: Posterior, dtype: Any, whole: bool) -> None:
    """In the precision of the factors; their means are in a file of their own. Only a `whole` one has covariances."""
    arrays: dict[str, Array] = {}
    for name, part in zip(SIDES, (posterior.rows, posterior.cols), strict=True):
        arrays |= {f"{name}_prior": part.prior, f"{name}_precision": part.precision}
        if whole and part.covariance is not None:
            arrays[f"{name}_covariance"] = part.covariance.astype(dtype)
    numbers = zip(NUMBERS, (posterior.variance, posterior.degrees, *posterior.strengths), strict=True)
    files.write(path, "posterior", arrays, {name: repr(float(one)) for name, one in numbers if one is not None})


def read(path: Path, x: Factors) -> Posterior:
    """Around the factors of a fit, which are its means."""
    arrays, told = files.read(path, "posterior")
    try:
        sides = [_side(arrays, name, x, which) for which, name in enumerate(SIDES)]
        variance, degrees, *strengths = (_positive(told, name) for name in NUMBERS)
        if variance is None:
            raise ValueError("it has no variance of the noise")
    except ValueError as error:
        raise FileError(f"{path} is damaged: {error}. Fit again.") from None
    return Posterior(sides[0], sides[1], variance, degrees, (strengths[0], strengths[1]))


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
    return Gaussians(means, covariance, places, prior, precision)


def _array(arrays: dict[str, Array], name: str, shape: tuple[int, ...]) -> Array:
    found = arrays.get(name)
    if found is None or found.shape != shape or found.dtype.kind != "f" or not np.all(np.isfinite(found)):
        raise ValueError(f"{name} is not {'×'.join(map(str, shape))} finite numbers")
    return found.astype(np.float64)


def _positive(told: dict[str, str], name: str) -> float | None:
    if name not in told:
        return None
    number = float(told[name])
    if not 0 < number < np.inf:
        raise ValueError(f"{name} is {told[name][:40]}, not a number above 0")
    return number
