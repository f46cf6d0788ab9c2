"""Any two values as −1 and +1."""

from typing import Any

import numpy as np

from bifactor.arrays import Array
from bifactor.errors import InputError
from bifactor.validation import is_at_least_zero

ADVICE = "Encode it as 0 and 1, or pass binarize."
"""Advice for estimators with this parameter."""

CODINGS = ((0.0, 1.0), (-1.0, 1.0))
"""Pairs of classes that are assumed if only one value occurs."""


def check_binarize(binarize: Any) -> None:
    if binarize is not None and not (is_at_least_zero(binarize) or is_at_least_zero(_negative(binarize))):
        raise InputError(f"binarize={binarize!r} is not a finite number. Pass a threshold for class 1, or None.")


def above_threshold(values: Array, binarize: float | None) -> Array:
    """1 for values above the threshold and 0 for the others; without a threshold, the values as they are."""
    return values if binarize is None else (values > binarize).astype(values.dtype)


def two_classes(values: Array, advice: str = "Encode it as 0 and 1.") -> Array:
    """The lower and the upper of two values; `advice` is for the error if there are more."""
    distinct = np.unique(values)
    if distinct.size > 2:
        some = ", ".join(f"{value:g}" for value in distinct[:3])
        raise InputError(f"X contains {distinct.size} different values ({some}, …), not two. {advice}")
    if distinct.size == 2:
        return distinct
    for coding in CODINGS:
        if float(distinct[0]) in coding:
            return np.array(coding, distinct.dtype)
    raise InputError(f"X contains only the value {distinct[0]:g}, so the other class is unknown. Encode it as 0 and 1.")


def signs(values: Array, classes: Array) -> Array:
    """−1 for the lower class, +1 for the upper."""
    upper = values == classes[1].astype(values.dtype)
    bad = ~upper & (values != classes[0].astype(values.dtype))
    if bad.any():
        known = " and ".join(f"{value:g}" for value in classes)
        raise InputError(f"X contains {values[bad][0]:g}, but the fit had only {known}. Encode it as in the fit.")
    return np.where(upper, 1, -1).astype(values.dtype)


def _negative(value: Any) -> Any:
    return -value if isinstance(value, (int, float, np.number)) and not isinstance(value, bool) else None
