"""Any two values as −1 and +1."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from bifactor.arrays import Array
from bifactor.data import Observations, Summary
from bifactor.errors import InputError
from bifactor.executors import BlockData
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


@dataclass(frozen=True)
class Labels:
    """The recoding of two classes as −1 and +1."""

    classes: tuple[float, float]
    binarize: float | None = None

    def observations(self, data: Observations) -> Observations:
        return data.replaced(self.signs(data.values))

    def block(self, loaded: BlockData) -> BlockData:
        return loaded._replace(y=self.signs(loaded.y))

    def signs(self, values: Array) -> Array:
        return signs(above_threshold(values, self.binarize), np.array(self.classes)).astype(values.dtype)

    def summary(self, summary: Summary) -> Summary | None:
        if summary.levels is None or summary.level_counts is None:
            return None
        upper = self.signs(summary.levels) > 0
        counts = np.array([np.sum(summary.level_counts[side]) for side in (~upper, upper)], np.int64)
        levels, total = np.array([-1.0, 1.0])[counts > 0], float(counts[1] - counts[0])
        ends = (float(levels[0]), float(levels[-1])) if levels.size else (0.0, 0.0)
        return Summary(summary.size, *ends, total, True, levels, counts[counts > 0])

    def is_weighted(self, before: bool) -> bool:
        return before
