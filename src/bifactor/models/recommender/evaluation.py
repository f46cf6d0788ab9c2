"""How well a fit to clicks ranks held-out choices, compared with a list of the most popular items."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from bifactor.arrays import Array
from bifactor.data import CellMask, Dataset, Observations
from bifactor.data.seen_items import Pairs
from bifactor.errors import InputError
from bifactor.models.fit import Fit
from bifactor.models.recommender.weights import counts_to_weights
from bifactor.models.top_k import RankingCriterion, popular_columns, top_columns
from bifactor.ranking import Evaluation, Split, evaluate
from bifactor.ranking.metrics import DENOMINATORS
from bifactor.ranking.splits import without
from bifactor.validation import pluralize

MAX_EVALUATED_USERS = 20_000
"""Largest number of users who are evaluated."""

BYTES_PER_SPLIT_ENTRY = 60
"""Bytes for each choice of these users: matrices of those that are known, of those held out, and of their counts."""


@dataclass(frozen=True)
class Ranked:
    """Recommends to rows of a fit, given by index."""

    fit: Fit

    def recommend(self, rows: Array, n: int, /) -> tuple[Array, Array]:
        fit = self.fit
        columns, predicted, _ = top_columns(
            fit, RankingCriterion(fit.model.U[rows], fit.model.V), fit.seen.select(rows), n, True, None
        )
        return columns, predicted


class Popular:
    """Recommends to each row the most popular columns that it has not chosen."""

    def __init__(self, fit: Fit):
        self.seen = fit.seen
        self.order, self.shares = popular_columns(fit.seen, len(fit.cols), len(fit.cols))

    def recommend(self, rows: Array, n: int, /) -> tuple[Array, Array]:
        columns, scores = np.full((rows.size, n), -1), np.full((rows.size, n), np.nan)
        has = np.zeros(self.order.size, bool)
        for k, row in enumerate(rows.tolist()):
            own = self.seen[row]
            has[own] = True
            first = np.flatnonzero(~has[self.order[: n + own.size]])[:n]
            has[own] = False
            columns[k, : first.size], scores[k, : first.size] = self.order[first], self.shares[first]
        return columns, scores


@dataclass(frozen=True, eq=False)
class RankingReport:
    """Evaluation of a fit, and of the most popular columns for the same rows."""

    found: Evaluation
    popular: Evaluation

    def card(self) -> dict[str, Any]:
        """All numbers, for a card or machine-readable output."""
        found = self.found
        told: dict[str, Any] = {}
        for name, mean in found.means.items():
            told[name] = {"mean": mean}
            if name in found.values:
                told[name]["low"], told[name]["high"] = found.interval(name)
            told[name]["popular"] = self.popular[name]
        gain = self.found.difference(self.popular, self.first)
        return {
            "users": int(found.users.size),
            "recall": f"hits/{DENOMINATORS[found.denominator]}",
            "metrics": told,
            "gain": {"metric": self.first, "mean": gain.mean, "low": gain.low, "high": gain.high},
        }

    @property
    def first(self) -> str:
        """The main metric: NDCG."""
        return next(name for name in self.found.values if name.startswith("ndcg"))


def evaluate_fit(fit: Fit, split: Split, n: int = 10, seed: int = 0) -> RankingReport:
    """Evaluate the ranking of held-out choices of some rows of a fit."""
    return RankingReport(*(evaluate(one, split, n, seed=seed) for one in (Ranked(fit), Popular(fit))))


def describe_gain(card: dict[str, Any]) -> str:
    """A sentence that says whether a ranking is better than the most popular items."""
    gain, name = card["gain"], metric_label(card["gain"]["metric"])
    interval = f"({gain['low']:+.4f} to {gain['high']:+.4f})"
    if gain["low"] > 0:
        return f"{name} is {gain['mean']:.4f} above that of the most popular items {interval}."
    if gain["high"] < 0:
        return f"{name} is {-gain['mean']:.4f} below that of the most popular items {interval}: use these instead."
    return f"{name} is not clearly better than that of the most popular items: {gain['mean']:+.4f} {interval}."


def metric_label(name: str) -> str:
    """The usual spelling of the name of a metric."""
    kind, at, places = name.partition("@")
    capitals = {"ndcg": "NDCG", "map": "MAP", "mrr": "MRR"}
    return capitals.get(kind, kind.replace("_", " ")) + at + places


def hold_out_choices(data: Dataset, mask: CellMask, seed: int) -> tuple[Dataset, Split] | None:
    """Data to fit, and a split: the choices in some cells are held out.

    At most `MAX_EVALUATED_USERS` users are evaluated, who have held-out and other choices. None if there are none.
    """
    train, hidden = data.split(mask)
    users = _judges(train.counts()[0], hidden.counts()[0], seed)
    if users.size == 0:
        return None
    stay = np.full(data.shape[0], data.in_memory)  # of blocks, only the choices of these users are read
    stay[users] = True
    known, test = (_matrix(one.lines(stay)) for one in (train, hidden))
    return train, Split(known, known[users], test[users], users)


def _judges(left: Array, held: Array, seed: int) -> Array:
    able = np.flatnonzero((left > 0) & (held > 0))
    return np.sort(np.random.default_rng(seed).permutation(able)[:MAX_EVALUATED_USERS])


def _matrix(data: Observations) -> sparse.csr_array:
    """Matrix of the weights of choices."""
    weights = np.ones(data.size) if data.weights is None else data.weights
    return sparse.csr_array((weights, (data.rows, data.cols)), shape=data.shape)


def split_later_choices(fit: Fit, data: Observations) -> tuple[Split, dict[str, int]]:
    """Split with later choices of rows of a fit, and numbers of choices that cannot be evaluated, by reason."""
    data = counts_to_weights(data)
    if data.values.size == 0:
        raise InputError("There are no choices: no value is above 0. Pass at least one choice.")
    assert data.row_names is not None
    assert data.column_names is not None
    rows, cols = fit.places(data.row_names.values, "row"), fit.places(data.column_names.values, "column")
    i, j = rows[data.rows], cols[data.cols]
    here = (i >= 0) & (j >= 0)
    shape = (len(fit.rows), len(fit.cols))
    asked = np.arange(shape[0]) if isinstance(fit.seen, Pairs) else np.unique(i[here])  # not all blocks are read
    train = _ones(asked, fit.seen.select(asked), shape)
    every = sparse.csr_array((np.ones(int(here.sum())), (i[here], j[here])), shape=shape)
    test = without(every, train)
    users = np.flatnonzero(np.diff(test.indptr))
    aside = {
        "choices": int(data.values.size),
        "users": int(data.shape[0]),
        "unknown_users": int(np.count_nonzero(rows < 0)),
        "of_unknown_users": int(np.count_nonzero(i < 0)),
        "of_unknown_items": int(np.count_nonzero((i >= 0) & (j < 0))),
        "known_before": int(every.nnz - test.nnz),
        "judged": int(test.nnz),
        "users_left_out": int(np.count_nonzero(rows >= 0) - users.size),
    }
    if users.size == 0:
        why = (
            f"{aside['of_unknown_users']:,} are of users that were not in the fit, {aside['of_unknown_items']:,} of "
            f"items that were not in the fit, and {aside['known_before']:,} were already in the fit"
        )
        raise InputError(f"None of {pluralize(aside['choices'], 'choice')} can be evaluated: {why}. Check the file.")
    return Split(train, train[users], test[users], users), aside


def _ones(rows: Array, seen: Pairs, shape: tuple[int, int]) -> sparse.csr_array:
    """The pairs of some rows as ones."""
    return sparse.csr_array((np.ones(seen.size), (np.repeat(rows, seen.counts), seen.columns)), shape=shape)
