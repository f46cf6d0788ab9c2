"""Losses of numbers: least squares, and Huber's loss, which outliers cannot dominate."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from bifactor.arrays import Array, namespace, to_numpy, weighted_median
from bifactor.errors import InputError
from bifactor.kernels import pointwise
from bifactor.losses.base import NUMBERS, Loss
from bifactor.validation import MIN_SETTING, settle_positive


@dataclass(frozen=True)
class Squared(Loss):
    """ℓ(z; y) = ½|z − y|², for real or complex measurements. L = 1."""

    targets = NUMBERS
    least = 0.0
    quadratic = True
    pointwise = staticmethod(pointwise.squared)

    @property
    def smoothness(self) -> float:
        return 1.0

    def value(self, z: Array, y: Array) -> Array:
        return 0.5 * namespace(z, y).abs(z - y) ** 2

    def gradient(self, z: Array, y: Array) -> Array:
        return z - y

    def curvature(self, z: Array, y: Array) -> Array:
        xp = namespace(z, y)
        return xp.ones_like(xp.abs(z - y))

    def mean(self, z: Array) -> Array:
        return z


# Least squares that outliers cannot dominate.

EFFICIENT, NORMAL = 1.345, 1.4826
"""δ in standard deviations, and the standard deviation of normal noise in terms of its MAD (Huber and Ronchetti)."""


@dataclass(frozen=True)
class Huber(Loss):
    """ℓ(z; y) = ½|d|² for |d| ≤ δ, δ|d| − ½δ² beyond, with d = z − y. L = 1.

    Parameters
    ----------
    delta : number, optional
        δ, in the units of z. By default 1.345·1.4826·MAD of y: 95 % efficient if the noise is normal and y is nothing
        else. `solvers.Refitted` fits it to the residuals, and estimators do so if it is not passed.

    References
    ----------
    P. J. Huber, Robust estimation of a location parameter, Ann. Math. Statist. 35 (1964).
    """

    delta: float | None = None
    targets = NUMBERS
    least = 0.0
    pointwise = staticmethod(pointwise.huber)

    def __post_init__(self) -> None:
        if self.delta is not None:
            settle_positive(self, "delta", "Choose one in the units of z.")

    @property
    def left_open(self) -> bool:  # type: ignore[override]
        return self.delta is None

    @property
    def smoothness(self) -> float:
        return 1.0

    def with_data_parameters(self, y: Array) -> "Huber":
        """δ from the spread of y about its median, unless it was given; from all of y if more than half are equal."""
        if self.delta is not None:
            return self
        y = to_numpy(y)
        away = np.abs(y - (0.0 if np.iscomplexobj(y) else np.median(y))).astype(np.float64)
        spread = float(np.median(away)) or float(np.mean(away)) / NORMAL
        return Huber(EFFICIENT * NORMAL * spread if EFFICIENT * NORMAL * spread > MIN_SETTING else 1.0)

    def parameter(self, dtype: Any) -> float:
        return self._known

    @property
    def fitted(self) -> tuple[float, ...]:  # type: ignore[override]
        return () if self.delta is None else (self.delta,)

    @property
    def _known(self) -> float:
        if self.delta is None:
            raise InputError(
                "Huber() does not know its δ. Pass it, or call `with_data_parameters` with the data first."
            )
        return self.delta

    def with_fitted(self, fitted: tuple[float, ...]) -> "Huber":
        return Huber(*fitted)

    def refit(self, z: Array, y: Array, weights: Array | None) -> "Huber":
        """δ = 1.345·1.4826·MAD of the residuals: 95 % efficient where the noise is normal.

        If more than half of the residuals are equal, the MAD is 0 and δ is kept.
        """
        residual = np.abs(z - y) if np.iscomplexobj(z) or np.iscomplexobj(y) else z - y
        centre = 0.0 if np.iscomplexobj(z) else weighted_median(residual, weights)
        spread = weighted_median(np.abs(residual - centre), weights)
        return Huber(EFFICIENT * NORMAL * spread) if EFFICIENT * NORMAL * spread > MIN_SETTING else self

    def value(self, z: Array, y: Array) -> Array:
        xp = namespace(z, y)
        d = xp.abs(z - y)
        near = xp.where(d < self._known, d, self._known)
        return near * (d - 0.5 * near)

    def gradient(self, z: Array, y: Array) -> Array:
        xp = namespace(z, y)
        d, delta = z - y, self._known
        size = xp.abs(d)
        return d * xp.where(size > delta, delta / xp.where(size > delta, size, 1.0), 1.0)

    def curvature(self, z: Array, y: Array) -> Array:
        xp = namespace(z, y)
        d = xp.abs(z - y)
        return xp.where(d <= self._known, xp.ones_like(d), xp.zeros_like(d))

    def mean(self, z: Array) -> Array:
        return z
