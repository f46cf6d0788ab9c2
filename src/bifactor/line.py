"""f along a curve of measurements: z(a) = z + a·z₁ + a²·z₂ for every a, so a trial step costs O(p) and no operator."""

from abc import ABC, abstractmethod

import numpy as np

from bifactor import kernels
from bifactor.arrays import Array
from bifactor.kernels import losses_numba, losses_reference
from bifactor.losses import Loss

Reach = tuple[float, float]

ANYWHERE: Reach = (0.0, np.inf)


class Line(ABC):
    """φ(a) = f(z + a·z₁ + a²·z₂)."""

    reach: Reach
    """The shortest and the longest step for which z(a) is right up to rounding."""

    @property
    @abstractmethod
    def quartic(self) -> Array | None:
        """Five numbers c with φ(a) = Σₖ cₖ aᵏ where f is quadratic, else None."""

    @abstractmethod
    def at(self, a: float) -> tuple[float, float, float | None]:
        """φ(a), φ′(a) and φ″(a); None where the second derivative is not known."""

    @abstractmethod
    def to(self, a: float) -> tuple[float, Array, Array]:
        """(f, its slopes, z) at z(a)."""


class LossLine(Line):
    """φ(a) = Σ wᵢ ℓ(zᵢ(a); yᵢ); no weights mean ones."""

    def __init__(
        self, loss: Loss, y: Array, weights: Array | None, z: Array, z1: Array, z2: Array, reach: Reach = ANYWHERE
    ):
        self.loss, self.curve, self.reach = loss, (z, z1, z2), reach
        w = y[:0].real if weights is None else weights
        self.data = y, w
        self.pointwise = None
        if kernels.has_compiled(z.dtype) and loss.pointwise is not None:
            self.pointwise = loss.pointwise, loss.parameter(z.dtype)
            self.data = np.ascontiguousarray(y, dtype=z.dtype), np.ascontiguousarray(w, dtype=z.dtype)

    @property
    def quartic(self) -> Array | None:
        if not self.loss.quadratic:
            return None
        kernel = losses_reference if self.pointwise is None else losses_numba
        return kernel.quartic(*self.curve, *self.data)

    def at(self, a: float) -> tuple[float, float, float | None]:
        if self.pointwise is not None:
            return losses_numba.line(*self.pointwise, *self.curve, *self.data, a)
        parts = self.loss.value, self.loss.gradient, self.loss.curvature
        return losses_reference.line(*parts, *self.curve, *self.data, a)

    def to(self, a: float) -> tuple[float, Array, Array]:
        if self.pointwise is not None:
            return losses_numba.advance(*self.pointwise, *self.curve, *self.data, a)
        return losses_reference.advance(self.loss.value, self.loss.gradient, *self.curve, *self.data, a)
