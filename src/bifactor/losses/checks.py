"""Checks of data before they are fitted, selection of some of them, and their form for compiled loops."""

from typing import Any

import numpy as np

from bifactor.arrays import (
    Array,
    dtype_of,
    floating,
    host,
    is_complex,
    is_foreign,
    namespace,
    on_host,
    on_this_machine,
    where,
)
from bifactor.errors import InputError, SmoothnessError
from bifactor.losses.base import Loss
from bifactor.losses.grouped import record_type


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


def chosen_of(a: Any, chosen: Any) -> Any:
    """Some of the numbers, or all of them in another order."""
    if a is None or isinstance(chosen, slice):
        return a if a is None else a[chosen]
    return on_host(np.take, a, chosen) if np.asarray(chosen).dtype != np.bool_ else on_host(np.compress, chosen, a)


def host_only(a: Array, what: str) -> Array:
    if is_foreign(a):
        raise InputError(f"{what} needs a NumPy array, but y is in {where(a)}. Convert y first.")
    return a


def checked_weights(weights: Array | float, precision: Any) -> Array:
    w = host(floating(weights, "weights"))
    if is_complex(w) or not np.all(np.isfinite(w)) or np.any(w < 0) or not np.any(w > 0):
        raise InputError("weights must be finite real numbers ≥ 0, not all zero. Check how they were computed.")
    check_range(w, "weights", precision)
    return np.array(w, dtype=precision.dtype)


def check_range(a: Array, name: str, precision: Any) -> None:
    """Reject data so large or so small that their squares overflow or underflow."""
    top = float(np.max(np.abs(host(a)), initial=0.0))
    low, high = 1e3 * float(precision.tiny) ** 0.5, 1e-3 * float(precision.max) ** 0.5
    if top > 0 and not low <= top <= high:
        raise InputError(
            f"The largest magnitude in {name} is {top:.3g}, whose square overflows or underflows in {precision.dtype}. "
            f"Rescale {name} to around 1."
        )


def compiled_form(
    loss: Loss, values: Array, group: Array | None, arrays: tuple[Array, Array], dtype: Any
) -> tuple[Any, Any, Array, Array] | None:
    """A loss and data in the form that compiled loops need, or None; see `DataFit.compiled`."""
    unknown = loss.pointwise is None or dtype_of(values).kind == "c"
    if unknown or not on_this_machine(values):
        return None
    y, w = (host(a) for a in arrays)
    y = np.ascontiguousarray(y, dtype=dtype if group is None else record_type(dtype))
    return loss.pointwise, loss.parameter(dtype), y, np.ascontiguousarray(w, dtype=dtype)
