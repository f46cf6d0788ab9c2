"""The base class of losses: an elementwise ℓ(z; y), convex in z."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from bifactor.arrays import Array, to_numpy
from bifactor.errors import InputError
from bifactor.validation import pluralize


@dataclass(frozen=True)
class Targets:
    """The values that y may take."""

    description: str
    contains: Callable[[Array], Array]
    advice: str
    complex: bool = False

    def check(self, y: Array, loss: str) -> None:
        """Raise `InputError` unless every y is allowed."""
        y = to_numpy(y)
        if y.dtype.kind == "c" and not self.complex:
            raise InputError(f"{loss} needs real y, got {y.dtype}. Use a loss for complex data, such as Squared.")
        bad = ~self.contains(y)
        if bad.any():
            more = int(bad.sum()) - 1
            others = f" (and {pluralize(more, 'more such value')})" if more else ""
            raise InputError(f"{loss} needs each y to be {self.description}, got {y[bad][0]:g}{others}. {self.advice}")


NUMBERS = Targets(
    "a finite number", np.isfinite, "Drop missing measurements from y and from the operator.", complex=True
)
SIGNS = Targets("-1 or +1", lambda y: np.abs(y) == 1, "Map 0/1 labels with 2*y - 1.")
COUNTS = Targets("a finite number ≥ 0", lambda y: y >= 0, "Counts cannot be negative.")


class Loss(ABC):
    """ℓ(z; y) for arrays z and y of the same shape; every method is elementwise.

    `smoothness` is the largest ℓ″ over all z and y, or None where there is no such bound.
    `pointwise` optionally names the same function for one measurement, `(z, y, parameter) -> (ℓ, ℓ′, ℓ″)`, written
    for numba (see `bifactor.kernels.pointwise`): fused kernels and passes along a curve then use it.
    """

    targets: ClassVar[Targets] = NUMBERS
    """The values of y that the loss accepts."""
    quadratic: ClassVar[bool] = False
    """Whether ℓ is ½|z − y|², so that a search along a curve can be exact."""
    least: ClassVar[float | None] = None
    """inf ℓ over all z, if it is the same number for every y."""
    pointwise: ClassVar[Callable[..., Any] | None] = None
    scales: ClassVar[bool] = False
    """Whether `refit` fits the scale of z, which must then be fixed in another way."""
    located: ClassVar[bool] = False
    """Whether the fitted parameters include the intercept of z, as thresholds do: models then always fit them."""

    left_open: bool = False
    """Whether parameters were left to the data, and `with_data_parameters` has not taken them from these yet."""

    @property
    @abstractmethod
    def smoothness(self) -> float | None:
        """sup ℓ″, or None."""

    def with_data_parameters(self, y: Array) -> "Loss":
        """The same loss with the parameters that were left to the data, such as the levels of a scale, taken from y."""
        return self

    def typical_curvature(self, y: Array) -> float:
        """The ℓ″ to expect for data like y: the smoothness if it is finite, otherwise the mean of ℓ″ at z = 0.

        It sets the size of first steps. Override it for a loss whose curvature at z = 0 is far from that at the fit.
        """
        if self.smoothness is not None:
            return self.smoothness
        return float(np.mean(self.curvature(np.zeros_like(to_numpy(y)), to_numpy(y))))

    def saturated(self, y: Array) -> Array:
        """inf ℓ over all z, for each y: the zero point of a deviance. 0 where it is not known."""
        return np.full_like(y, self.least or 0.0)

    def parameter(self, dtype: Any) -> Any:
        """The number passed to `pointwise`, 0 if the loss has none; a tuple of numbers is passed as an array."""
        return 0.0

    @abstractmethod
    def value(self, z: Array, y: Array) -> Array:
        """ℓ(z; y)."""

    @abstractmethod
    def gradient(self, z: Array, y: Array) -> Array:
        """∂ℓ/∂z."""

    @abstractmethod
    def curvature(self, z: Array, y: Array) -> Array:
        """∂²ℓ/∂z²."""

    fitted: tuple[float, ...] = ()
    """The parameters that `refit` fits."""

    def refit(self, z: Array, y: Array, weights: Array | None) -> "Loss":
        """The same loss with the parameters that fit these measurements best; itself if it has none to fit."""
        return self

    def with_fitted(self, fitted: tuple[float, ...]) -> "Loss":
        """The same loss with these parameters."""
        return self

    @abstractmethod
    def mean(self, z: Array) -> Array:
        """The inverse link: the prediction E[y | z] or, for labels, P(y = +1)."""
