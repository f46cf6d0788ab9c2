"""A loss, data and weights: f as a function of the measurements alone."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

import numpy as np

from bifactor import kernels
from bifactor.arrays import (
    HOST_ARRAY,
    Array,
    copied,
    digest,
    dtype_of,
    floating,
    is_array,
    is_complex,
    is_foreign,
    namespace,
    on_host,
    same_library,
    to_device_of,
    to_numpy,
    total,
    where,
    zeros,
)
from bifactor.describe import describe
from bifactor.errors import InputError, SmoothnessError
from bifactor.losses.base import Loss
from bifactor.losses.composite import Grouped, records
from bifactor.losses.named import loss_of
from bifactor.validation import require_finite


def smoothness_of(loss: Loss) -> float:
    if loss.smoothness is None:
        raise SmoothnessError(
            f"{type(loss).__name__} has no global smoothness constant L, but one is needed here. "
            "Use a solver that does not need L, such as PCG; with BFGD, use steps.Backtracking() or "
            "steps.Constant(eta), or pass the step rule an L that is valid for your data."
        )
    return loss.smoothness


def flat(a: Array) -> Array:
    return namespace(a).reshape(a, (-1,))


def take_numbers(a: Any, chosen: Any) -> Any:
    """Some of the numbers, or all of them in another order."""
    if a is None or isinstance(chosen, slice):
        return a if a is None else a[chosen]
    return on_host(np.take, a, chosen) if np.asarray(chosen).dtype != np.bool_ else on_host(np.compress, chosen, a)


def host_only(a: Array, what: str) -> Array:
    if is_foreign(a):
        raise InputError(f"{what} needs a NumPy array, but y is in {where(a)}. Convert y first.")
    return a


def checked_weights(weights: Array | float, precision: Any) -> Array:
    w = to_numpy(floating(weights, "weights"))
    if is_complex(w) or not np.all(np.isfinite(w)) or np.any(w < 0) or not np.any(w > 0):
        raise InputError("weights must be finite real numbers ≥ 0, not all zero. Check how they were computed.")
    check_range(w, "weights", precision)
    return np.array(w, dtype=precision.dtype)


def check_range(a: Array, name: str, precision: Any) -> None:
    """Reject data so large or so small that their squares overflow or underflow."""
    top = float(np.max(np.abs(to_numpy(a)), initial=0.0))
    low, high = 1e3 * float(precision.tiny) ** 0.5, 1e-3 * float(precision.max) ** 0.5
    if top > 0 and not low <= top <= high:
        raise InputError(
            f"The largest magnitude in {name} is {top:.3g}, whose square overflows or underflows in {precision.dtype}. "
            f"Rescale {name} to around 1."
        )


Moving = tuple[Array, Array, Array]
"""(z, z₁, z₂): measurements that move as z(a) = z + a·z₁ + a²·z₂. An empty z₂ means zeros."""


@dataclass(frozen=True, eq=False)
class DataFit:
    """f(z) = Σᵢ wᵢ ℓ(zᵢ; yᵢ).

    Parameters
    ----------
    loss : Loss
        The loss ℓ; a `Grouped` if there are several losses.
    y : array
        One number per measurement, in the order of the object that holds this one; with several losses, one record
        of a number and its group.
    weights : array, optional
        The weights w, real and in the precision of y; None means ones.
    """

    loss: Loss
    y: Array
    weights: Array | None = None

    @classmethod
    def of(
        cls,
        loss: Loss | str | Sequence[Loss | str],
        y: Array,
        weights: Array | float | None = None,
        group: Array | None = None,
    ) -> "DataFit":
        """Make one from a user's arguments, copied and validated; shapes are checked later, against the operator."""
        losses = tuple(loss_of(one) for one in (loss if isinstance(loss, (tuple, list)) else (loss,)))
        if not is_foreign(y) and np.ma.is_masked(y):
            raise InputError("y has masked values. Leave them out of y and the operator, or use Entries.from_dense.")
        y = floating(y, "y")
        require_finite(y, "y", "Leave missing measurements out of both y and the operator.")
        check_range(y, "y", np.finfo(dtype_of(y)))
        if group is not None:
            losses, numbered = records(losses, host_only(y, "group"), group)
            if losses[0].fitted or any(one != losses[0] for one in losses):  # each group fits its own parameters
                return cls(Grouped(losses), numbered).reweighted(weights)
        if all(one == losses[0] for one in losses):
            losses = losses[:1]
        if len(losses) != 1:
            return cls(Grouped(losses), copied(y)).reweighted(weights)  # `Stacked` distributes the losses
        suited = losses[0].with_data_parameters(y)
        suited.targets.check(y, type(suited).__name__)
        # A copy, because the caller may change y after it was checked.
        return cls(suited, copied(y)).reweighted(weights)

    @property
    def values(self) -> Array:
        """y as numbers."""
        return self.y if self.group is None else self.y["y"]

    @property
    def group(self) -> Array | None:
        """The group of each measurement, where there are several losses."""
        return None if getattr(self.y.dtype, "names", None) is None else self.y["group"]

    @property
    def each_loss(self) -> tuple[Loss, ...]:
        """The loss, or one loss for each group."""
        return self.loss.losses if isinstance(self.loss, Grouped) else (self.loss,)

    @property
    def dtype(self) -> Any:
        """The NumPy dtype of the numbers in y."""
        return dtype_of(self.values)

    def shared_out(self, sizes: Sequence[int]) -> list["DataFit"]:
        """Consecutive parts of the given sizes; several losses without groups are taken as one for each part."""
        losses, parts, start = self.each_loss, [], 0
        each = self.group is None and len(losses) > 1
        if each and len(losses) != len(sizes):
            raise InputError(
                f"There are {len(losses)} losses but {len(sizes)} operators. Pass one loss per operator, or pass group."
            )
        for k, size in enumerate(sizes):
            part = self.take(slice(start, start + size))
            if each:
                suited = losses[k].with_data_parameters(part.y)
                suited.targets.check(part.y, type(suited).__name__)
                part = replace(part, loss=suited)
            parts.append(part)
            start += size
        return parts

    def reweighted(self, weights: Array | float | None) -> "DataFit":
        """The same data with other weights; 0 leaves a measurement out."""
        if weights is None:
            return replace(self, weights=None)
        if is_array(weights) and not same_library(weights, self.y):
            raise InputError(
                f"weights is in {where(weights)}, but y is in {where(self.y)}. Pass both in the same library and place."
            )
        return replace(self, weights=to_device_of(checked_weights(weights, np.finfo(self.dtype)), self.y))

    def flat(self, shape: tuple[int, int]) -> "DataFit":
        """The same with y and weights flattened row by row where they are matrices of this shape."""

        def laid(a: Any) -> Any:
            return flat(a) if a is not None and tuple(a.shape) == shape else a

        return replace(self, y=laid(self.y), weights=laid(self.weights))

    def sized(self, size: int, what: str) -> "DataFit":
        """The same with one y and one weight per measurement; `InputError` if y does not have `size` values."""
        y, w = self.y, self.weights
        if tuple(y.shape) != (size,):
            raise InputError(
                f"y has shape {tuple(y.shape)}, but {what}. "
                f"Pass one y for each of the {size} measurements, in the same order."
            )
        if w is not None and w.ndim and w.shape != y.shape:
            raise InputError(
                f"weights has shape {tuple(w.shape)}, but y has {size} values. Pass one weight per measurement."
            )
        if w is None or w.ndim:
            return self
        return replace(self, weights=to_device_of(np.full(size, to_numpy(w), np.finfo(self.dtype).dtype), y))

    def take(self, chosen: Any) -> "DataFit":
        """Some of the measurements, or all of them in another order; None means all, in the same order."""
        if chosen is None:
            return self
        return replace(self, y=take_numbers(self.y, chosen), weights=take_numbers(self.weights, chosen))

    def with_values(self, y: Array) -> "DataFit":
        """The same with other values of y."""
        return replace(self, y=y if self.group is None else records(self.each_loss, y, self.group)[1])

    @property
    def quadratic(self) -> bool:
        return self.loss.quadratic

    @property
    def total(self) -> float:
        """Σ wᵢ, or the number of measurements if they have no weights."""
        return float(self.y.shape[0] if self.weights is None else np.sum(to_numpy(self.weights), dtype=np.float64))

    @property
    def seen(self) -> int:
        """The number of measurements with a weight above 0."""
        return int(self.y.shape[0] if self.weights is None else np.count_nonzero(to_numpy(self.weights)))

    @property
    def least(self) -> float | None:
        """A lower bound of f, if one is known."""
        return None if self.loss.least is None else self.loss.least * self.total

    @property
    def typical(self) -> tuple[float, Array | None]:
        """The curvature ℓ″ to expect, and the weights to multiply it by, as a NumPy array."""
        weights = None if self.weights is None else to_numpy(self.weights)
        if not isinstance(self.loss, Grouped):
            return self.loss.typical_curvature(self.y), weights
        each = self.loss.typical(self.y)[self.y["group"]]
        return 1.0, each if weights is None else weights * each

    @property
    def smooth(self) -> tuple[float, Array | None]:
        """sup ℓ″, and the weights to multiply it by; `SmoothnessError` if there is no bound."""
        bounds = [smoothness_of(loss) for loss in self.each_loss]
        if self.group is None:
            return bounds[0], None if self.weights is None else to_numpy(self.weights)
        each = np.array(bounds)[self.group]
        return 1.0, each if self.weights is None else self.weights * each

    @property
    def fingerprint(self) -> str:
        weights = np.empty(0) if self.weights is None else self.weights
        parts = (self.values,) if self.group is None else (self.values, self.group)
        return f"{describe(self.loss)} {self.dtype} {digest(*parts, weights)}"

    def refit(self, z: Array) -> "DataFit":
        """The same data with the parameters of the loss that fit these measurements best."""
        weights = None if self.weights is None else to_numpy(self.weights)
        return replace(self, loss=self.loss.refit(to_numpy(z), to_numpy(self.y), weights))

    def losses(self, z: Array) -> Array:
        """ℓ for each measurement, without its weight."""
        return self.loss.value(z, self.y)

    def value(self, z: Array) -> float:
        """f."""
        losses = self.losses(z)
        return total(losses if self.weights is None else self.weights * losses)

    def evaluate(self, z: Array) -> tuple[float, Array]:
        """f and its derivatives ∂f/∂z."""
        return self._kernel(z).evaluate(self.loss, z, *self.arrays())

    def curvature(self, z: Array) -> Array:
        """∂²f/∂z², one number per measurement."""
        curvature = self.loss.curvature(z, self.y)
        return curvature if self.weights is None else self.weights * curvature

    def quartic(self, curve: Moving) -> Array | None:
        """Five numbers c with f(z(a)) = Σₖ cₖ aᵏ if ℓ is quadratic, otherwise None."""
        return to_numpy(self._kernel(curve[0]).quartic(*curve, *self.arrays())) if self.quadratic else None

    def along(self, curve: Moving, a: float) -> tuple[float, float, float]:
        """φ(a) = f(z(a)), φ′(a) and φ″(a)."""
        return self._kernel(curve[0]).line(self.loss, *curve, *self.arrays(), a)

    def advance(self, curve: Moving, a: float) -> tuple[float, Array, Array]:
        """f and ∂f/∂z at z(a), and z(a)."""
        return self._kernel(curve[0]).advance(self.loss, *curve, *self.arrays(), a)

    def _kernel(self, z: Array) -> ModuleType:
        return kernels.get("losses", z, self.loop_size)

    @property
    def loop_size(self) -> int:
        """The number of measurements for compiled loops: 0 if the loss has no form for one measurement."""
        return 0 if self.loss.pointwise is None or self.dtype.kind == "c" else int(self.y.shape[0])

    def arrays(self) -> tuple[Array, Array]:
        """y, and the weights or an empty array."""
        if self.weights is not None:
            return self.y, self.weights
        return self.y, zeros((0,), np.finfo(self.dtype).dtype, HOST_ARRAY if self.group is not None else self.y)
