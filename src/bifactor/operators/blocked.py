"""What a store of blocks is to a bound, and which losses its observations have."""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from bifactor.arrays import Array
from bifactor.errors import InputError
from bifactor.executors import Part
from bifactor.losses import Loss

SHARES = 100_000
"""Values that stand for all, each level by its share."""


class Blocked(Protocol):
    """A matrix some of whose entries are observed, in blocks of the rows of its longer side."""

    @property
    def shape(self) -> tuple[int, int]: ...

    @property
    def dtype(self) -> Any: ...

    @property
    def flipped(self) -> bool:
        """Whether blocks are of columns."""

    @property
    def parts(self) -> Sequence[Part]: ...


def suited(loss: Loss, store: Blocked, grouped: bool) -> Loss:
    """The loss with what it leaves to the data, such as levels, taken from all blocks alike."""
    levels, counts = getattr(store, "levels", None), getattr(store, "level_counts", None)
    if levels is None or counts is None:
        return loss
    found = loss.suited(np.repeat(levels, np.maximum(1, (SHARES * counts) // np.sum(counts))))
    if grouped and found != loss:
        raise InputError(f"{loss!r} of a group takes its levels from all columns. Pass them, as Ordinal(levels=…).")
    return found


def groups_of(group: Any, losses: tuple[Loss, ...], columns: int) -> Array | None:
    if group is None:
        if len(losses) > 1:
            raise InputError(f"There are {len(losses)} losses. Pass group, the number of one for each column.")
        return None
    found = np.asarray(group)
    if found.shape != (columns,) or found.dtype.kind not in "iu":
        raise InputError(f"group is {found.dtype} of shape {found.shape}. Pass {columns} integers, one per column.")
    if found.min() < 0 or found.max() >= len(losses):
        raise InputError(f"group has {found.min()} to {found.max()}, but there are {len(losses)} losses.")
    return found
