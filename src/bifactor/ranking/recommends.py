"""Evaluation of a model on held-out positives."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from bifactor.arrays import Array
from bifactor.errors import InputError
from bifactor.ranking.evaluation import Evaluation, Tally, depths_of
from bifactor.ranking.lists import lists_of, require_known_items
from bifactor.ranking.positives import member
from bifactor.ranking.splits import Split
from bifactor.validation import require_instance

BATCH = 10_000
"""Users per call of `recommend`."""


class Recommends(Protocol):
    """A model that can be evaluated: it ranks items for users of the fit or, from their histories, for new users."""

    def recommend(self, rows: Any, n: int, /) -> tuple[Any, Any]:
        """The n best items for each user that the user does not have yet, best first, and their scores.

        `rows` are row numbers of users in the training data, or a csr_array with the history of a new user in each row.
        Both results are arrays of users × n or fewer places; -1 stands for no item.
        """


def evaluate(
    model: Recommends,
    split: Split,
    n: int | Iterable[int] = 10,
    *,
    denominator: str = "all",
    seed: int = 0,
) -> Evaluation:
    """Evaluate the recommendations of a fitted model for the users of a split; all items are ranked.

    The model must have been fitted to `split.train`. Every user of the split with known or held-out items gets a list.
    All lists count in coverage and popularity share; the other metrics are means over users with held-out items. Known
    items of a user that were not in `train`, such as those of the validation part, are removed from the lists here.

    Parameters
    ----------
    model : object
        Model with a method `recommend(rows, n)` that returns (ids, scores); see `Recommends`.
    split : Split
        The data. To choose settings, pass `split.validation`.
    n : int or sequence of int
        Number of places at the top of each list that count.
    denominator : {"all", "k"}
        Recall is hits/|T| or hits/min(k, |T|), where T is the set of held-out items of a user.
    seed : int
        Seed of the bootstrap.
    """
    require_instance(split, Split, "split")
    if not callable(getattr(model, "recommend", None)):
        raise InputError(f"{type(model).__name__} has no method `recommend`. Pass a fitted model that has one.")
    depths = depths_of(n)
    tally, places = Tally(depths, denominator, seed), max(depths)
    if split.test.nnz == 0:
        raise InputError("The test part of this split is empty, so no list can be judged. Hold out some positives.")
    served = np.flatnonzero(np.diff(split.known.indptr) + np.diff(split.test.indptr))
    for first in range(0, served.size, BATCH):
        part = served[first : first + BATCH]
        ids = _unknown(model, split, part, places)
        tally.add(ids, split.test[part], split.test.shape[1])
    found = tally.evaluation(split.train)
    users = served[found.users]
    return replace(found, users=users, left_out=split.test.shape[0] - users.size)


def _unknown(model: Recommends, split: Split, part: Array, places: int) -> Array:
    """Lists of this many places for these users, without their known items."""
    known, items = split.known[part], split.test.shape[1]
    rows: Any = known if split.users is None else split.users[part]
    more = 0 if split.users is None else _not_fitted(split, part, known)
    ids = _asked(model, rows, min(places + more, items), items)
    kept = (ids >= 0) & ~member(known, ids)
    order = np.argsort(~kept, axis=1, kind="stable")[:, :places]
    ids = np.where(np.take_along_axis(kept, order, 1), np.take_along_axis(ids, order, 1), -1)
    return np.pad(ids, ((0, 0), (0, places - ids.shape[1])), constant_values=-1)


def _not_fitted(split: Split, part: Array, known: Any) -> int:
    """Largest number of known items per user that the model may not leave out by itself."""
    assert split.users is not None
    fitted = split.train[split.users[part]]
    return int((np.diff(known.indptr) - np.diff(known.multiply(fitted != 0).tocsr().indptr)).max())


def _asked(model: Recommends, rows: Any, n: int, items: int) -> Array:
    answer = model.recommend(rows, n)
    if not isinstance(answer, tuple) or len(answer) != 2:
        kind = type(answer).__name__
        raise InputError(f"{type(model).__name__}.recommend returned {kind}. It must return (ids, scores).")
    ids = lists_of(answer[0])
    if ids.shape[0] != rows.shape[0] or ids.shape[1] > n:
        fact = f"returned shape {ids.shape} instead of {rows.shape[0]} lists of up to {n} places"
        raise InputError(f"{type(model).__name__}.recommend {fact}. Check its results.")
    require_known_items(ids, items)
    return ids
