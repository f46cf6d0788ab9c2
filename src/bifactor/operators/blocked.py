"""The interface of a store of blocks, and the losses of its observations."""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from bifactor.arrays import Array
from bifactor.errors import InputError
from bifactor.executors import Part
from bifactor.losses import Loss

SHARES = 100_000
"""The number of values that represent all observations, each level in proportion."""


class Blocked(Protocol):
    """A matrix with some observed entries, in blocks of rows of its longer side."""

    @property
    def shape(self) -> tuple[int, int]: ...

    @property
    def dtype(self) -> Any: ...

    @property
    def flipped(self) -> bool:
        """Whether blocks consist of columns."""

    @property
    def parts(self) -> Sequence[Part]: ...


def suited(loss: Loss, store: Blocked, grouped: bool) -> Loss:
    """The loss with the parameters that are left to the data, such as levels, taken from all blocks."""
    levels, counts = getattr(store, "levels", None), getattr(store, "level_counts", None)
    if levels is None or counts is None:
        if loss.left_open and not grouped:
            raise InputError(f"{loss!r} has no parameters, and these blocks hold too many values. Pass parameters.")
        return loss
    found = loss.suited(np.repeat(levels, np.maximum(1, (SHARES * counts) // np.sum(counts))))
    if grouped and found != loss:
        raise InputError(
            f"{loss!r} has no parameters, which it needs in a group. Pass them, as in Ordinal(levels=…) or Huber(1.0)."
        )
    return found


def groups_of(group: Any, losses: tuple[Loss, ...], columns: int) -> Array | None:
    if group is None:
        if len(losses) > 1:
            raise InputError(f"There are {len(losses)} losses. Pass group, the number of the loss of each column.")
        return None
    found = np.asarray(group)
    if found.shape != (columns,) or found.dtype.kind not in "iu":
        raise InputError(f"group is {found.dtype} of shape {found.shape}. Pass {columns} integers, one per column.")
    if found.min() < 0 or found.max() >= len(losses):
        raise InputError(
            f"group runs from {found.min()} to {found.max()}, but there are {len(losses)} losses. "
            "Number the losses from 0."
        )
    return found
