"""The range that predictions are clipped to.

Moving a prediction to the nearest point of an interval that contains the truth never increases its error.
"""

from typing import Any

import numpy as np

from bifactor.data.dataset import Dataset, Summary
from bifactor.errors import InputError
from bifactor.losses import Huber, Loss, Squared

Range = tuple[float, float]
"""Lower and upper limit; infinite if there is no limit."""

Clip = str | bool | Range
"""Setting of a user: "auto", the range of the data (True), no limits (False), or a range."""

POINTS = 101
"""Largest number of points of the regular grid of grades: 1 to 5, ½ to 5, −10 to 10, 0 to 100."""

SHARE, TIMES = 0.01, 10
"""How often an end of the scale must occur, as a share of the values and as a count. The extremes of rounded numbers
are rare, and do not indicate a limit."""


def clip_of(clip: Any, loss: Loss) -> Clip:
    """Validate the setting of a user; losses for other data than numbers never predict values outside their range."""
    numbers = isinstance(loss, (Squared, Huber))
    if isinstance(clip, str) and clip == "auto":
        return "auto" if numbers else False
    if isinstance(clip, (bool, np.bool_)):
        found: Clip = bool(clip)
    else:
        found = _range(clip)
    if found is not False and not numbers:
        raise InputError(f"clip={clip!r} needs loss='squared' or 'huber', not {type(loss).__name__}. Leave it out.")
    return found


def clip_range(clip: Clip, data: Dataset) -> Range | None:
    """Range of predictions for some data; None for no limits."""
    if clip is False:
        return None
    about = data.summary()
    if clip == "auto":
        return levels_range(about)
    if clip is True:
        return about.least, about.largest
    assert isinstance(clip, tuple)
    middle = float(np.median(data.representatives()))
    if not clip[0] <= middle <= clip[1]:
        raise InputError(f"clip={clip} excludes the median of the values, {middle:g}. Pass the range of their scale.")
    return clip


def levels_range(about: Summary) -> Range | None:
    """The scale if values are grades, from the statistics of the values.

    Grades are a few equally spaced points, and an end that occurs often. An end with fewer than one in a hundred
    values, or fewer than ten, is not a limit: counts have no upper limit.
    """
    distinct, counts = about.levels, about.level_counts
    if distinct is None or counts is None or not distinct.size:
        return None
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


def _range(clip: Any) -> Range:
    try:
        low, high = (float(end) for end in clip)
    except (TypeError, ValueError):
        raise InputError(f"clip={clip!r} is unknown. Pass 'auto', True, False or a pair (lowest, highest).") from None
    if not low < high:
        raise InputError(f"clip={clip!r} is not increasing. Pass the lowest value of the scale, then the highest.")
    return low, high


def stored_range(limits: Range | None) -> list[float | None] | None:
    """The range for JSON, which has no infinity."""
    return None if limits is None else [end if np.isfinite(end) else None for end in limits]


def restored_range(stored: Any) -> Range | None:
    """The inverse of `stored_range`; raises `ValueError` for anything else."""
    if stored is None:
        return None
    numbers = isinstance(stored, list) and all(type(end) in (int, float, type(None)) for end in stored)
    if not numbers or len(stored) != 2:
        raise ValueError(f"clip is {str(stored)[:40]!r}, not a range")
    low, high = (limit if end is None else float(end) for end, limit in zip(stored, (-np.inf, np.inf), strict=True))
    if not low <= high:
        raise ValueError(f"clip is {low} to {high}, which is not increasing")
    return low, high


def describe_range(limits: Range) -> str:
    low, high = limits
    if np.isinf(low) or np.isinf(high):
        return f"at most {high:g}" if np.isinf(low) else f"at least {low:g}"
    return f"{low:g} to {high:g}"
