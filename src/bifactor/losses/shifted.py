"""A loss with an intercept."""

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from bifactor.arrays import Array
from bifactor.errors import InputError
from bifactor.kernels.pointwise import SHIFTED
from bifactor.losses.base import Loss
from bifactor.validation import require_instance


@dataclass(frozen=True)
class Shifted(Loss):
    """ℓ(z; y) = ℓ₀(z + shift; y): a fixed intercept, which no penalty on the factors sees.

    Parameters
    ----------
    loss : Loss
        The loss ℓ₀. Passes over the measurements are compiled if it is one of the library's own, otherwise in NumPy.
    shift : float
        The intercept, in the units of z.
    """

    loss: Loss
    shift: float

    def __post_init__(self) -> None:
        require_instance(self.loss, Loss, "loss")
        if isinstance(self.shift, bool) or not isinstance(self.shift, Real) or not np.isfinite(self.shift):
            raise InputError(f"shift={self.shift!r} is not a finite number. Pass one in the units of z.")
        object.__setattr__(self, "shift", float(self.shift))
        object.__setattr__(self, "targets", self.loss.targets)
        object.__setattr__(self, "least", self.loss.least)
        object.__setattr__(self, "pointwise", SHIFTED.get(self.loss.pointwise))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.loss, self.shift)  # targets hold functions that cannot be pickled

    @property
    def left_open(self) -> bool:  # type: ignore[override]
        return self.loss.left_open

    @property
    def fitted(self) -> tuple[float, ...]:  # type: ignore[override]
        return self.loss.fitted

    def with_fitted(self, fitted: tuple[float, ...]) -> "Shifted":
        return Shifted(self.loss.with_fitted(fitted), self.shift)

    def refit(self, z: Array, y: Array, weights: Array | None) -> "Shifted":
        return Shifted(self.loss.refit(z + self.shift, y, weights), self.shift)

    @property
    def scales(self) -> bool:  # type: ignore[override]
        return self.loss.scales and self.shift == 0  # a known shift has the units of z

    @property
    def smoothness(self) -> float | None:
        return self.loss.smoothness

    def suited(self, y: Array) -> "Shifted":
        return Shifted(self.loss.suited(y), self.shift)

    def typical_curvature(self, y: Array) -> float:
        return self.loss.typical_curvature(y)

    def lowest(self, y: Array) -> Array:
        return self.loss.lowest(y)

    def parameter(self, dtype: Any) -> tuple[float, ...]:
        return self.shift, *np.atleast_1d(self.loss.parameter(dtype)).tolist()

    def value(self, z: Array, y: Array) -> Array:
        return self.loss.value(z + self.shift, y)

    def gradient(self, z: Array, y: Array) -> Array:
        return self.loss.gradient(z + self.shift, y)

    def curvature(self, z: Array, y: Array) -> Array:
        return self.loss.curvature(z + self.shift, y)

    def mean(self, z: Array) -> Array:
        return self.loss.mean(z + self.shift)
