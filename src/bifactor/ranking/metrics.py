"""Metrics of ranked lists. Each function returns one number for every user with held-out items, in order.

Throughout, `recommended` holds item numbers as users × places, best first, -1 for an empty place. `held_out` has the
positives that should have been found: a SciPy sparse matrix with one row for each list, or a pair of vectors
(rows, cols). T is the set of held-out items of a user, and a hit is a place with an item of T. Users with an empty T
are skipped.
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
    return covered(_frequencies(lists_of(recommended), int(items), k))


def popularity_share(recommended: Any, known: Any, k: int = 10) -> float:
    """Share of the first k places taken by the most popular items: the fewest with half of the known positives.

    0.5 is the share in the data; larger values favour popular items. `known` has the positives that define popularity.
    NaN if nothing is recommended.
    """
    ids = lists_of(recommended)
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
