"""Losses made of others: with an intercept, and one for each group of measurements."""

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from bifactor._compat import cached_property
from bifactor.arrays import Array
from bifactor.errors import InputError
from bifactor.kernels import pointwise
from bifactor.kernels.losses_reference import record_type
from bifactor.kernels.pointwise import SHIFTED
from bifactor.losses.base import Loss, Targets
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

    def with_data_parameters(self, y: Array) -> "Shifted":
        return Shifted(self.loss.with_data_parameters(y), self.shift)

    def typical_curvature(self, y: Array) -> float:
        return self.loss.typical_curvature(y)

    def saturated(self, y: Array) -> Array:
        return self.loss.saturated(y)

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


# Several losses, one for each group of measurements.

MOST = 256
"""The largest number of groups: a group number takes one byte."""


@dataclass(frozen=True)
class Grouped(Loss):
    """ℓ(z; (y, g)) = ℓ_g(z; y): targets are records of a value and the number of its group.

    `Problem` makes one when it is given several losses. A single pass serves all groups if each loss is one of the
    library's own, or one of them shifted.
    """

    losses: tuple[Loss, ...]
    targets = Targets(
        "a record of value and group", lambda y: np.ones(y.shape, bool), "Pass several losses and groups."
    )

    def __post_init__(self) -> None:
        least = {loss.least for loss in self.losses}
        object.__setattr__(self, "least", least.pop() if len(least) == 1 else None)
        codes = [_base(loss)[0].pointwise in pointwise.CODES for loss in self.losses]
        object.__setattr__(self, "pointwise", pointwise.grouped if all(codes) else None)

    @property
    def smoothness(self) -> float | None:
        bounds = [loss.smoothness for loss in self.losses]
        return None if None in bounds else max(bound for bound in bounds if bound is not None)

    def parameter(self, dtype: Any) -> Any:
        """A table with a row for each group: which loss, its shift and its parameters, zeros after the last."""
        if dtype not in self._tables:
            self._tables[dtype] = self._table(dtype)
        return self._tables[dtype]

    @cached_property
    def _tables(self) -> dict[Any, Array]:
        """The parameters in each precision, for every pass over the measurements needs them."""
        return {}

    def _table(self, dtype: Any) -> Array:
        rows = []
        for loss in self.losses:
            base, shift = _base(loss)
            parameters = np.atleast_1d(base.parameter(dtype)).tolist()
            rows.append([float(pointwise.CODES[base.pointwise]), shift, *parameters])
        width = max(map(len, rows))
        return np.array([row + [0.0] * (width - len(row)) for row in rows], dtype)

    def value(self, z: Array, y: Array) -> Array:
        return self._each("value", z, y, np.finfo(z.dtype).dtype)

    def gradient(self, z: Array, y: Array) -> Array:
        return self._each("gradient", z, y, z.dtype)

    def curvature(self, z: Array, y: Array) -> Array:
        return self._each("curvature", z, y, np.finfo(z.dtype).dtype)

    def mean(self, z: Array) -> Array:
        raise InputError("Several losses have no common mean. Call mean of the loss of the group that you need.")

    def typical(self, y: Array) -> Array:
        """The curvature to expect in each group."""
        parts = (y["y"][y["group"] == g] for g in range(len(self.losses)))
        return np.array([loss.typical_curvature(part) if part.size else 0.0 for loss, part in self._with(parts)])

    @property
    def fitted(self) -> tuple[float, ...]:  # type: ignore[override]
        return tuple(number for loss in self.losses for number in loss.fitted)

    def with_fitted(self, fitted: tuple[float, ...]) -> "Grouped":
        found, rest = [], fitted
        for loss in self.losses:
            count = len(loss.fitted)
            found.append(loss.with_fitted(rest[:count]))
            rest = rest[count:]
        return Grouped(tuple(found))

    @property
    def scales(self) -> bool:  # type: ignore[override]
        return any(loss.scales for loss in self.losses)

    def refit(self, z: Array, y: Array, weights: Array | None) -> "Grouped":
        found = []
        for g, loss in enumerate(self.losses):
            part = y["group"] == g
            own = None if weights is None else weights[part]
            found.append(loss.refit(z[part], y["y"][part], own) if part.any() else loss)
        return Grouped(tuple(found))

    def _with(self, parts: Any) -> Any:
        return zip(self.losses, parts, strict=True)

    def _each(self, part: str, z: Array, y: Array, dtype: Any) -> Array:
        found, values, group = np.empty(z.shape, dtype), y["y"], y["group"]
        for g, loss in enumerate(self.losses):
            own = group == g
            found[own] = getattr(loss, part)(z[own], values[own])
        return found


def _base(loss: Loss) -> tuple[Loss, float]:
    return (loss.loss, loss.shift) if isinstance(loss, Shifted) else (loss, 0.0)


def records(losses: Sequence[Loss], y: Array, group: Any) -> tuple[tuple[Loss, ...], Array]:
    """The losses, suited to their groups, and an array of records of the values and their groups.

    `InputError` if the groups do not match the losses.
    """
    index = np.asarray(group)
    if index.shape != y.shape or index.dtype.kind not in "biu":
        raise InputError(
            f"group is {index.dtype} of shape {index.shape}, but y has shape {y.shape}. Pass one integer for each y."
        )
    if len(losses) > MOST or (index.size and not (index.min() >= 0 and index.max() < len(losses))):
        raise InputError(
            f"group runs from {index.min()} to {index.max()}, but there are {len(losses)} losses. "
            f"Number the groups from 0, at most {MOST} of them, with one loss for each."
        )
    parts = [y[index == g] for g in range(len(losses))]
    suited = tuple(
        loss.with_data_parameters(part) if part.size else loss for loss, part in zip(losses, parts, strict=True)
    )
    for loss, part in zip(suited, parts, strict=True):
        loss.targets.check(part, type(loss).__name__)
    found = np.empty(y.shape, record_type(y.dtype))
    found["y"], found["group"] = y, index
    return suited, found
