"""Metrics of ranked lists. Each function returns one number for every user with held-out items, in order."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from bifactor.arrays import Array
from bifactor.errors import InputError
from bifactor.ranking.splits import member, positives, require_some
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
    ids = validate_lists(recommended)
    return Hits.of(ids, validate_held_out(ids, held_out))


def validate_held_out(ids: Array, held_out: Any) -> Any:
    """Held-out items of the users of some lists; for a pair (rows, cols), the largest number gives the item count."""
    test = positives(held_out, "held_out", _shape(ids, held_out[1]) if isinstance(held_out, tuple) else None)
    if test.shape[0] != ids.shape[0]:
        raise InputError(
            f"There are {ids.shape[0]} lists for {test.shape[0]} rows of held_out. Pass one list for each row."
        )
    require_known_items(ids, test.shape[1])
    return test


def validate_lists(recommended: Any) -> Array:
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


DENOMINATORS = {"all": "|T|", "k": "min(k, |T|)"}
"""The denominator of recall."""

HEAD = 0.5
"""Share of the known positives that belong to the most popular items."""


def ndcg(recommended: Any, held_out: Any, k: int = 10) -> Array:
    """Σ over hits of 1/log₂(1 + place), divided by the same sum for a list that begins with min(k, |T|) hits."""
    return _ndcg(hits(recommended, held_out), k)


def recall(recommended: Any, held_out: Any, k: int = 10, denominator: str = "all") -> Array:
    """Hits among k places divided by |T|, or, for `denominator="k"`, by min(k, |T|), so that 1 is always attainable."""
    return _recall(hits(recommended, held_out), k, require_denominator(denominator))


def precision(recommended: Any, held_out: Any, k: int = 10) -> Array:
    """Hits among k places divided by k, even if a list is shorter."""
    return _precision(hits(recommended, held_out), k)


def average_precision(recommended: Any, held_out: Any, k: int = 10) -> Array:
    """Sum of the precision at each hit, divided by min(k, |T|); its mean over users is MAP."""
    return _average_precision(hits(recommended, held_out), k)


def reciprocal_rank(recommended: Any, held_out: Any, k: int = 10) -> Array:
    """1/place of the first hit, 0 if none is among k places; its mean over users is MRR."""
    return _reciprocal_rank(hits(recommended, held_out), k)


def hit_rate(recommended: Any, held_out: Any, k: int = 10) -> Array:
    """1 if there is a hit among k places, else 0."""
    return _hit_rate(hits(recommended, held_out), k)


def coverage(recommended: Any, items: int, k: int = 10) -> float:
    """Share of the items that are among the first k places of any list."""
    if not is_count(items, 1):
        raise InputError(f"items={items!r} is not an integer ≥ 1. Pass the number of items.")
    return covered(_frequencies(validate_lists(recommended), int(items), k))


def popularity_share(recommended: Any, known: Any, k: int = 10) -> float:
    """Share of the first k places taken by the most popular items: the fewest with half of the known positives.

    0.5 is the share in the data; larger values favour popular items. `known` has the positives that define popularity.
    NaN if nothing is recommended.
    """
    ids = validate_lists(recommended)
    items = known.shape[1] if sparse.issparse(known) else int(ids.max(initial=0)) + 1
    return share_of(popular(known, items), _frequencies(ids, items, k))


def covered(counts: Array) -> float:
    return float(np.count_nonzero(counts) / counts.size)


def popular(known: Any, items: int) -> Array:
    """The fewest items with half of the positives, in order of their numbers of users, then of their item numbers."""
    found = positives(known, "known")
    require_some(found, "known")
    if sparse.issparse(known) and found.shape[1] != items:
        raise InputError(f"known has {found.shape[1]} items, not {items}. Pass it for the items that are ranked.")
    counts = np.bincount(found.indices, minlength=items)
    order = np.argsort(-counts, kind="stable")
    some = order[: int(np.searchsorted(np.cumsum(counts[order]), HEAD * counts.sum())) + 1]
    return some[some < items]  # others are never recommended


def share_of(items: Array, counts: Array) -> float:
    total = int(counts.sum())
    return float(counts[items].sum() / total) if total else float("nan")


def _frequencies(ids: Array, items: int, k: int) -> Array:
    require_known_items(ids, items)
    return frequencies(ids, [require_depth(k, ids.shape[1])], items)[0]


def require_denominator(denominator: Any) -> str:
    if denominator not in DENOMINATORS:
        raise InputError(f"denominator={denominator!r} is not known. Choose 'all' for |T|, or 'k' for min(k, |T|).")
    return str(denominator)


def _ndcg(at: Hits, k: int) -> Array:
    top = at.top(k)
    discounts = 1 / np.log2(np.arange(2, k + 2))
    gain = np.zeros(at.sizes.size)
    for place, discount in zip(top, discounts, strict=True):
        gain += discount * place
    return np.minimum(gain / np.cumsum(discounts)[np.minimum(k, at.sizes) - 1], 1.0)  # sums are rounded


def _recall(at: Hits, k: int, denominator: str) -> Array:
    found = at.top(k).sum(axis=0)
    return found / (at.sizes if denominator == "all" else np.minimum(k, at.sizes))


def _precision(at: Hits, k: int) -> Array:
    return at.top(k).sum(axis=0) / k


def _average_precision(at: Hits, k: int) -> Array:
    count, total = np.zeros(at.sizes.size), np.zeros(at.sizes.size)
    for place, found in enumerate(at.top(k), start=1):
        count += found
        total += found * count / place
    return total / np.minimum(k, at.sizes)


def _reciprocal_rank(at: Hits, k: int) -> Array:
    top = at.top(k)
    return top.any(axis=0) / (1 + top.argmax(axis=0))


def _hit_rate(at: Hits, k: int) -> Array:
    return at.top(k).any(axis=0).astype(float)


def per_user(at: Hits, k: int, denominator: str) -> dict[str, Array]:
    """All per-user metrics at one depth, by name."""
    return {
        f"ndcg@{k}": _ndcg(at, k),
        f"recall@{k}": _recall(at, k, denominator),
        f"precision@{k}": _precision(at, k),
        f"map@{k}": _average_precision(at, k),
        f"mrr@{k}": _reciprocal_rank(at, k),
        f"hit_rate@{k}": _hit_rate(at, k),
    }
