"""A loss, data and weights: f as a function of the measurements alone."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bifactor import kernels
from bifactor.arrays import Array, digest, floating, is_complex
from bifactor.describe import describe
from bifactor.errors import InputError
from bifactor.kernels import losses_numba, losses_reference
from bifactor.losses.base import Loss
from bifactor.validation import require_finite

Moving = tuple[Array, Array, Array]
"""(z, z₁, z₂): measurements that move as z(a) = z + a·z₁ + a²·z₂. An empty z₂ means zeros."""


@dataclass(frozen=True, eq=False)
class DataFit:
    """f(z) = Σᵢ wᵢ ℓ(zᵢ; yᵢ). The only place where a compiled form of a loss is looked up.

    Parameters
    ----------
    loss : Loss
    y : array
        One number per measurement, in the order that whoever holds this takes them.
    weights : array, optional
        w, real and in the precision of y; None means ones.
    """

    loss: Loss
    y: Array
    weights: Array | None = None

    @classmethod
    def of(cls, loss: Loss, y: Array, weights: Array | float | None = None) -> "DataFit":
        """From what a user passes, copied and validated; only their shapes wait for an operator to compare with."""
        if not isinstance(loss, Loss):
            raise InputError(f"loss is {loss!r}, not a Loss. Pass an instance such as losses.Squared().")
        if np.ma.is_masked(y):
            raise InputError("y has masked values. Leave them out of y and of the operator, or use Entries.from_dense.")
        y = floating(y, "y")
        require_finite(y, "y", "Leave missing measurements out of both y and the operator.")
        loss.targets.check(y, type(loss).__name__)
        _check_range(y, "y", np.finfo(y.dtype))
        # A copy: what the caller does to y later is not what was checked.
        return cls(loss, np.array(y)).reweighted(weights)

    def reweighted(self, weights: Array | float | None) -> "DataFit":
        """The same data with other weights; 0 leaves a measurement out."""
        return replace(self, weights=None if weights is None else _weights(weights, np.finfo(self.y.dtype)))

    def flat(self, shape: tuple[int, int]) -> "DataFit":
        """Where y or the weights are matrices of this shape, the same row by row."""
        y, w = (a.reshape(-1) if a is not None and a.shape == shape else a for a in (self.y, self.weights))
        return replace(self, y=y, weights=w)

    def sized(self, size: int, what: str) -> "DataFit":
        """With y and weights one number per measurement; `InputError` where y has other than `size` of them."""
        y, w = self.y, self.weights
        if y.shape != (size,):
            raise InputError(
                f"y has shape {y.shape}, but {what}. Pass one y for each of the {size} measurements, in the same order."
            )
        if w is not None and w.ndim and w.shape != y.shape:
            raise InputError(f"weights has shape {w.shape}, y has {y.size} values. Pass one weight per measurement.")
        return self if w is None or w.ndim else replace(self, weights=np.full(y.shape, w, w.dtype))

    def take(self, chosen: Any) -> "DataFit":
        """Some of the measurements, or all in another order; None means all as they are."""
        if chosen is None:
            return self
        return replace(self, y=self.y[chosen], weights=None if self.weights is None else self.weights[chosen])

    @property
    def quadratic(self) -> bool:
        return self.loss.quadratic

    @property
    def total(self) -> float:
        """Σ wᵢ, the number of measurements where they have no weights."""
        return float(self.y.size if self.weights is None else np.sum(self.weights, dtype=np.float64))

    @property
    def seen(self) -> int:
        """The number of measurements that count."""
        return int(self.y.size if self.weights is None else np.count_nonzero(self.weights))

    @property
    def least(self) -> float | None:
        """A number that f never goes below, where one is known."""
        return None if self.loss.least is None else self.loss.least * self.total

    @property
    def fingerprint(self) -> str:
        weights = np.empty(0) if self.weights is None else self.weights
        return f"{describe(self.loss)} {self.y.dtype} {digest(self.y, weights)}"

    def losses(self, z: Array) -> Array:
        """ℓ of each measurement, without its weight."""
        return self.loss.value(z, self.y)

    def value(self, z: Array) -> float:
        """f."""
        losses = self.losses(z)
        return float(np.sum(losses if self.weights is None else self.weights * losses, dtype=np.float64))

    def evaluate(self, z: Array) -> tuple[float, Array]:
        """f and its slopes ∂f/∂z."""
        compiled = self.compiled(z.dtype)
        if compiled is not None:
            return losses_numba.evaluate(*compiled[:2], z, *compiled[2:])
        slope = self.loss.gradient(z, self.y)
        return self.value(z), slope if self.weights is None else self.weights * slope

    def curvature(self, z: Array) -> Array:
        """∂²f/∂z², one number per measurement."""
        curvature = self.loss.curvature(z, self.y)
        return curvature if self.weights is None else self.weights * curvature

    def quartic(self, curve: Moving) -> Array | None:
        """Five numbers c with f(z(a)) = Σₖ cₖ aᵏ where ℓ is quadratic, else None."""
        if not self.quadratic:
            return None
        compiled = self.compiled(curve[0].dtype)
        if compiled is not None:
            return losses_numba.quartic(*curve, *compiled[2:])
        return losses_reference.quartic(*curve, *self.arrays())

    def along(self, curve: Moving, a: float) -> tuple[float, float, float]:
        """φ(a) = f(z(a)), φ′(a) and φ″(a)."""
        compiled = self.compiled(curve[0].dtype)
        if compiled is not None:
            return losses_numba.line(*compiled[:2], *curve, *compiled[2:], a)
        parts = self.loss.value, self.loss.gradient, self.loss.curvature
        return losses_reference.line(*parts, *curve, *self.arrays(), a)

    def advance(self, curve: Moving, a: float) -> tuple[float, Array, Array]:
        """f and its slopes at z(a), and z(a)."""
        compiled = self.compiled(curve[0].dtype)
        if compiled is not None:
            return losses_numba.advance(*compiled[:2], *curve, *compiled[2:], a)
        return losses_reference.advance(self.loss.value, self.loss.gradient, *curve, *self.arrays(), a)

    def compiled(self, dtype: Any) -> tuple[Any, Any, Array, Array] | None:
        """(pointwise loss, its parameter, y, weights or an empty array), as compiled loops want them for this dtype.

        None where there is no compiled form.
        """
        if self.loss.pointwise is None or is_complex(self.y) or not kernels.has_compiled(dtype):
            return None
        y, w = (np.ascontiguousarray(a, dtype=dtype) for a in self.arrays())
        return self.loss.pointwise, self.loss.parameter(dtype), y, w

    def arrays(self) -> tuple[Array, Array]:
        """y, and the weights or an empty array."""
        return self.y, self.y[:0].real if self.weights is None else self.weights


def _weights(weights: Array | float, precision: Any) -> Array:
    w = floating(weights, "weights")
    if is_complex(w) or not np.all(np.isfinite(w)) or np.any(w < 0) or not np.any(w > 0):
        raise InputError("weights must be finite real numbers ≥ 0, not all zero. Check how they were made.")
    _check_range(w, "weights", precision)
    return np.array(w, dtype=precision.dtype)


def _check_range(a: Array, name: str, precision: Any) -> None:
    """Refuse data so large or small that their squares leave the range of numbers."""
    top = float(np.max(np.abs(a), initial=0.0))
    low, high = 1e3 * float(precision.tiny) ** 0.5, 1e-3 * float(precision.max) ** 0.5
    if top > 0 and not low <= top <= high:
        raise InputError(
            f"The largest of {name} is {top:.3g}, and squares of it cannot be told from 0 or ∞ in {precision.dtype}. "
            f"Rescale {name} to around 1."
        )
