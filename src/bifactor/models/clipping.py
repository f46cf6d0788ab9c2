"""The range that predictions are clipped to.

Moving a prediction to the nearest point of an interval that holds the truth never makes its error larger.
"""

from typing import Any

import numpy as np

from bifactor.arrays import Array
from bifactor.errors import InputError
from bifactor.losses import Huber, Loss, Squared

Range = tuple[float, float]
"""From the least to the largest; infinite where there is no limit."""

Clip = str | bool | Range
"""What a user may ask for: "auto", all that was seen (True), nothing (False), or a range."""

POINTS = 101
"""Of a grid of equal steps, at most, that grades lie on: 1 to 5, ½ to 5, −10 to 10, 0 to 100."""

SHARE, TIMES = 0.01, 10
"""How often an end of the scale must be taken, as a share of the values and in numbers. The ends of rounded numbers are
rare, and say nothing of a limit."""


def clip_of(clip: Any, loss: Loss) -> Clip:
    """What a user passed, checked; other losses than those of numbers predict nothing outside of their range."""
    numbers = isinstance(loss, (Squared, Huber))
    if isinstance(clip, str) and clip == "auto":
        return "auto" if numbers else False
    if isinstance(clip, (bool, np.bool_)):
        found: Clip = bool(clip)
    else:
        found = _range(clip)
    if found is not False and not numbers:
        raise InputError(f"clip={clip!r} goes with loss='squared' or 'huber', not with {type(loss).__name__}.")
    return found


def clip_range(clip: Clip, values: Array) -> Range | None:
    """The range for predictions of values like these; None for no limits."""
    if clip is False:
        return None
    if clip == "auto":
        return grade_range(values)
    if clip is True:
        return float(values.min()), float(values.max())
    assert isinstance(clip, tuple)
    middle = float(np.median(values))
    if not clip[0] <= middle <= clip[1]:
        raise InputError(f"clip={clip} leaves out the median of the values, {middle:g}. Pass the range of their scale.")
    return clip


def grade_range(values: Array) -> Range | None:
    """The scale, where values are grades: few points of equal steps, and an end that is often taken.

    An end that is not taken by one in a hundred values, and ten of them, is no limit: counts have none above.
    """
    distinct = _few(values)
    if distinct is None:
        return None
    return levels_range(distinct, np.array([np.count_nonzero(values == one) for one in distinct]))


def levels_range(distinct: Array, counts: Array) -> Range | None:
    """The same of distinct values in order, and how often each occurs."""
    low, high = float(distinct[0]), float(distinct[-1])
    if not 2 <= distinct.size <= POINTS or not np.isfinite(high - low):
        return None
    step = float(np.diff(distinct).min())
    places = (distinct - low) / step
    if places[-1] > POINTS - 0.5 or np.any(np.abs(places - np.round(places)) > 1e-3):
        return None
    enough = max(TIMES, SHARE * float(np.sum(counts)))
    ends = [counts[k] >= enough for k in (0, -1)]
    return (low if ends[0] else -np.inf, high if ends[1] else np.inf) if any(ends) else None


def _few(values: Array) -> Array | None:
    """The distinct values in order, where there are two at least and no more than grades may have."""
    some = np.unique(values[:: max(1, values.size // (10 * POINTS))])  # saves sorting many numbers
    distinct = np.unique(values) if some.size <= POINTS else some
    return distinct.astype(np.float64) if 2 <= distinct.size <= POINTS else None


def _range(clip: Any) -> Range:
    try:
        low, high = (float(end) for end in clip)
    except (TypeError, ValueError):
        raise InputError(f"clip={clip!r} is not 'auto', True, False or a pair (lowest, highest).") from None
    if not low < high:
        raise InputError(f"clip={clip!r} does not rise. Pass the lowest value of the scale, then the highest.")
    return low, high


def stored_range(limits: Range | None) -> list[float | None] | None:
    """As JSON has it, which knows no infinity."""
    return None if limits is None else [end if np.isfinite(end) else None for end in limits]


def restored_range(stored: Any) -> Range | None:
    """What `stored_range` made; `ValueError` where it did not make this."""
    if stored is None:
        return None
    numbers = isinstance(stored, list) and all(type(end) in (int, float, type(None)) for end in stored)
    if not numbers or len(stored) != 2:
        raise ValueError(f"clip is {str(stored)[:40]!r}, not a range")
    low, high = (limit if end is None else float(end) for end, limit in zip(stored, (-np.inf, np.inf), strict=True))
    if not low <= high:
        raise ValueError(f"clip is {low} to {high}, which does not rise")
    return low, high


def in_words(limits: Range) -> str:
    low, high = limits
    if np.isinf(low) or np.isinf(high):
        return f"{high:g} at most" if np.isinf(low) else f"{low:g} at least"
    return f"{low:g} to {high:g}"
