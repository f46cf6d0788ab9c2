"""How good ranked lists are. Each function returns one number for every user with something held out, in their order.

Throughout, `recommended` holds ids of items by users × places, best first, -1 where there is none. `held_out` has the
positives that should have been found: a SciPy sparse matrix with one row for each list, or a pair of vectors
(rows, cols). T is what is held out of a user, and hits are places that hold an item of T. Users with an empty T are
left out.
"""

from typing import Any

import numpy as np
from scipy import sparse

from bifactor.arrays import Array
from bifactor.errors import InputError
from bifactor.ranking.lists import Hits, frequencies, hits, lists_of, require_depth, require_known_items
from bifactor.ranking.positives import positives, require_some
from bifactor.validation import is_count

DENOMINATORS = {"all": "|T|", "k": "min(k, |T|)"}
"""What recall divides by."""

HEAD = 0.5
"""The share of known positives that the most popular items hold."""


def ndcg(recommended: Any, held_out: Any, k: int = 10) -> Array:
    """Σ over hits of 1/log₂(1 + place), by the same sum for a list that begins with min(k, |T|) hits."""
    return _ndcg(hits(recommended, held_out), k)


def recall(recommended: Any, held_out: Any, k: int = 10, denominator: str = "all") -> Array:
    """The hits among k places by |T|, or for `denominator="k"` by min(k, |T|), of which 1 can always be reached."""
    return _recall(hits(recommended, held_out), k, require_denominator(denominator))


def precision(recommended: Any, held_out: Any, k: int = 10) -> Array:
    """The hits among k places by k, also where a list is shorter."""
    return _precision(hits(recommended, held_out), k)


def average_precision(recommended: Any, held_out: Any, k: int = 10) -> Array:
    """The sum of the precision at each hit by min(k, |T|); its mean over users is MAP."""
    return _average_precision(hits(recommended, held_out), k)


def reciprocal_rank(recommended: Any, held_out: Any, k: int = 10) -> Array:
    """1/place of the first hit, 0 without one among k places; its mean over users is MRR."""
    return _reciprocal_rank(hits(recommended, held_out), k)


def hit_rate(recommended: Any, held_out: Any, k: int = 10) -> Array:
    """1 where there is a hit among k places, else 0."""
    return _hit_rate(hits(recommended, held_out), k)


def coverage(recommended: Any, items: int, k: int = 10) -> float:
    """The share of the items that are among the first k places of any list."""
    if not is_count(items, 1):
        raise InputError(f"items={items!r} is not an integer ≥ 1. Pass how many items there are.")
    return covered(_frequencies(lists_of(recommended), int(items), k))


def popularity_share(recommended: Any, known: Any, k: int = 10) -> float:
    """The share of the first k places that the most popular items take: the fewest with half of the known positives.

    0.5 is as in the data, more is more of what is popular. `known` has the positives by which popularity is judged.
    NaN where nothing is recommended.
    """
    ids = lists_of(recommended)
    items = known.shape[1] if sparse.issparse(known) else int(ids.max(initial=0)) + 1
    return share_of(popular(known, items), _frequencies(ids, items, k))


def covered(counts: Array) -> float:
    return float(np.count_nonzero(counts) / counts.size)


def popular(known: Any, items: int) -> Array:
    """Which items are the fewest that hold half of the positives, by their numbers of users and then by their ids."""
    found = positives(known, "known")
    require_some(found, "known")
    if sparse.issparse(known) and found.shape[1] != items:
        raise InputError(f"known has {found.shape[1]} items, and not {items}. Pass it for the items that are ranked.")
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
    """All metrics of users at one depth, by their names."""
    return {
        f"ndcg@{k}": _ndcg(at, k),
        f"recall@{k}": _recall(at, k, denominator),
        f"precision@{k}": _precision(at, k),
        f"map@{k}": _average_precision(at, k),
        f"mrr@{k}": _reciprocal_rank(at, k),
        f"hit_rate@{k}": _hit_rate(at, k),
    }
