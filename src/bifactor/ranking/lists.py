"""Ranked lists against held-out items: which places are hits, and how often each item is recommended."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bifactor.arrays import Array
from bifactor.errors import InputError
from bifactor.ranking.positives import member, positives
from bifactor.validation import is_count

BLOCK = 1 << 22
"""Places compared at a time."""


@dataclass(frozen=True, eq=False)
class Hits:
    """For users with held-out items: which places of their lists are hits, and the number of held-out items.

    `found` is places × users, so that a metric goes through the lists of all users together.
    """

    found: Array
    sizes: Array
    users: Array
    """Row numbers of these lists."""
    lists: int
    """Total number of lists."""

    @classmethod
    def of(cls, ids: Array, test: Any) -> "Hits":
        """Hits of checked lists; `test` holds the held-out items as a sorted csr_array with one row per list."""
        sizes = np.diff(test.indptr)
        users = np.flatnonzero(sizes)
        found, step = np.empty((ids.shape[1], users.size), bool), max(1, BLOCK // ids.shape[1])
        for first in range(0, users.size, step):
            part = users[first : first + step]
            found[:, first : first + step] = member(test[part], ids[part]).T
        return cls(found, sizes[users], users, ids.shape[0])

    @classmethod
    def joined(cls, parts: Sequence["Hits"]) -> "Hits":
        """Concatenate the lists of several parts."""
        starts = np.cumsum([0, *(part.lists for part in parts)])
        return cls(
            np.concatenate([part.found for part in parts], axis=1),
            np.concatenate([part.sizes for part in parts]),
            np.concatenate([part.users + start for part, start in zip(parts, starts[:-1], strict=True)]),
            int(starts[-1]),
        )

    def top(self, k: int) -> Array:
        """The first k places."""
        return self.found[: require_depth(k, self.found.shape[0])]


def hits(recommended: Any, held_out: Any) -> Hits:
    """Hits of an array of users × places against a sparse matrix with as many rows, or a pair (rows, cols)."""
    ids = lists_of(recommended)
    return Hits.of(ids, held_out_of(ids, held_out))


def held_out_of(ids: Array, held_out: Any) -> Any:
    """Held-out items of the users of some lists; for a pair (rows, cols), the largest number gives the item count."""
    test = positives(held_out, "held_out", _shape(ids, held_out[1]) if isinstance(held_out, tuple) else None)
    if test.shape[0] != ids.shape[0]:
        raise InputError(
            f"There are {ids.shape[0]} lists for {test.shape[0]} rows of held_out. Pass one list for each row."
        )
    require_known_items(ids, test.shape[1])
    return test


def lists_of(recommended: Any) -> Array:
    """Item numbers as users × places, -1 for an empty place; each item at most once per list."""
    ids = np.asarray(recommended)
    if ids.ndim != 2 or ids.dtype.kind not in "iu" or ids.shape[1] == 0:
        raise InputError(
            f"recommended has dtype {ids.dtype} and shape {ids.shape}. Pass integers as users × places, -1 for no item."
        )
    ids, step = ids.astype(np.int64, copy=False), max(1, BLOCK // ids.shape[1])
    if ids.size and ids.min() < -1:
        raise InputError(f"recommended contains {ids.min()}. Pass item numbers starting from 0, and -1 for no item.")
    for first in range(0, ids.shape[0], step):
        order = np.sort(ids[first : first + step], axis=1)
        twice = ((order[:, 1:] == order[:, :-1]) & (order[:, 1:] >= 0)).any(axis=1)
        if twice.any():
            row = first + int(np.argmax(twice))
            raise InputError(f"List {row} contains an item twice. Recommend each item once.")
    return ids


def require_known_items(ids: Array, items: int) -> None:
    if ids.size and ids.max() >= items:
        raise InputError(f"recommended contains item {ids.max()}, but there are {items} items. Number them from 0.")


def require_depth(k: Any, places: int) -> int:
    if not is_count(k, 1) or k > places:
        raise InputError(f"k={k!r} is not possible for lists of {places} places. Choose an integer from 1 to {places}.")
    return int(k)


def frequencies(ids: Array, depths: Iterable[int], items: int) -> Array:
    """Count how often each item is among the first k places, for each depth k: depths × items."""
    return np.stack([np.bincount(ids[:, :k].ravel() + 1, minlength=items + 1)[1:] for k in depths])


def _shape(ids: Array, cols: Any) -> tuple[int, int]:
    last = [int(side.max()) for side in (ids, np.asarray(cols)) if side.size and side.dtype.kind in "iu"]
    return ids.shape[0], max([-1, *last]) + 1
