"""Evaluation of a model on held-out positives, with confidence intervals."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy import sparse

from bifactor.arrays import Array
from bifactor.errors import InputError
from bifactor.ranking.metrics import (
    DENOMINATORS,
    Hits,
    covered,
    frequencies,
    per_user,
    popular,
    require_denominator,
    require_depth,
    require_known_items,
    share_of,
    validate_held_out,
    validate_lists,
)
from bifactor.ranking.splits import Split, member
from bifactor.validation import is_count, pluralize, require_finite, require_instance, require_seed

DRAWS = 1000
BLOCK = 1 << 22
"""Random numbers drawn at a time."""

FEW = 16
"""Users per distinct value above which it is faster to draw how often each value occurs."""


def interval(values: Any, level: float = 0.95, draws: int = DRAWS, seed: int = 0) -> tuple[float, float]:
    """Percentile bootstrap interval for the mean of `values`, one for each user.

    All users are resampled with replacement `draws` times; the interval contains the share `level` of the means. For
    two models on the same users, pass the differences of their values. (NaN, NaN) if there are no users.
    """
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise InputError(f"values has {array.ndim} dimensions. Pass a vector with one number for each user.")
    require_finite(array, "values", "Leave out users without a value.")
    if isinstance(level, bool) or not isinstance(level, (int, float)) or not 0 < level < 1:
        raise InputError(f"level={level!r} is not between 0 and 1. Choose a share such as 0.95.")
    if not is_count(draws, 1):
        raise InputError(f"draws={draws!r} is not an integer ≥ 1. Choose at least a few hundred.")
    require_seed(seed)
    if array.size == 0:
        return float("nan"), float("nan")
    means = _means(array, int(draws), np.random.default_rng(seed))
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def _means(values: Array, draws: int, rng: np.random.Generator) -> Array:
    """Means of users drawn with replacement."""
    distinct, counts = np.unique(values, return_counts=True)
    few = distinct.size * FEW <= values.size
    means, step = np.empty(draws), max(1, BLOCK // (distinct.size if few else values.size))
    for first in range(0, draws, step):
        count = min(step, draws - first)
        if few:  # the same distribution: draw the number of users with each value
            drawn = rng.multinomial(values.size, counts / values.size, size=count)
            means[first : first + count] = drawn @ distinct / values.size
        else:
            users = rng.integers(0, values.size, (count, values.size), dtype=np.int32)
            means[first : first + count] = values[users].mean(axis=1)
    return means


class Difference(NamedTuple):
    """Mean difference over users, and its interval."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Metrics of ranked lists. `found["ndcg@10"]` is a mean over users; `print(found)` shows all with intervals.

    Attributes
    ----------
    values : dict of arrays
        For each per-user metric, one number for every evaluated user.
    shares : dict of float
        Metrics of all lists together, those of users without held-out items too: coverage and popularity share.
    users : array
        Evaluated users, as rows of the held-out matrix.
    left_out : int
        Number of users who were not evaluated because they have no held-out items.
    denominator : {"all", "k"}
        The denominator of recall.
    """

    values: dict[str, Array] = field(repr=False)
    shares: dict[str, float]
    users: Array = field(repr=False)
    left_out: int
    denominator: str
    seed: int = 0

    @property
    def means(self) -> dict[str, float]:
        """All metrics by name."""
        nothing = float("nan")
        means = {name: float(each.mean()) if each.size else nothing for name, each in self.values.items()}
        return {**means, **self.shares}

    def __getitem__(self, name: str) -> float:
        if name not in self.means:
            raise InputError(f"{name!r} is not a metric of this evaluation. Choose from: {', '.join(self.means)}.")
        return self.means[name]

    def interval(self, name: str, level: float = 0.95) -> tuple[float, float]:
        """Bootstrap interval over users for the mean of a metric; the same seed is used each time."""
        return interval(self._of_users(name), level, seed=self.seed)

    def difference(self, other: "Evaluation", name: str, level: float = 0.95) -> Difference:
        """This evaluation minus another, user by user, with a bootstrap interval; both must have the same users."""
        if not isinstance(other, Evaluation) or not np.array_equal(self.users, other.users):
            raise InputError("The other evaluation has different users. Evaluate both models on the same split.")
        if self.denominator != other.denominator and name.startswith("recall@"):
            raise InputError("The two recalls have different denominators. Evaluate both models with the same one.")
        gained = self._of_users(name) - other._of_users(name)
        mean = float(gained.mean()) if gained.size else float("nan")
        return Difference(mean, *interval(gained, level, seed=self.seed))

    def __str__(self) -> str:
        width = max(len(name) for name in self.means)
        lines = [f"{'':{width}}    mean  95 % interval"]
        for name, mean in self.means.items():
            line = f"{name:{width}}  {mean:.4f}"
            if name in self.values:
                low, high = self.interval(name)
                line += f"  {low:.4f} to {high:.4f}"
            lines.append(line)
        left_out = f"; {self.left_out:,} without held-out items skipped" if self.left_out else ""
        recall = f"Recall is hits/{DENOMINATORS[self.denominator]}."
        return "\n".join([*lines, f"{pluralize(self.users.size, 'user')} evaluated{left_out}. {recall}"])

    def _of_users(self, name: str) -> Array:
        if name not in self.values:
            raise InputError(f"{name!r} is not a per-user metric. Choose from: {', '.join(self.values)}.")
        return self.values[name]


def judge(
    recommended: Any,
    held_out: Any,
    n: int | Iterable[int] = 10,
    *,
    known: Any = None,
    denominator: str = "all",
    seed: int = 0,
) -> Evaluation:
    """Compute all metrics of ranked lists.

    Parameters
    ----------
    recommended : integer array of users × places
        Item numbers, starting from 0, best first; -1 for an empty place.
    held_out : SciPy sparse matrix of users × items, or (rows, cols)
        The positives that should have been found.
    n : int or sequence of int
        Number of places at the top of each list that count.
    known : SciPy sparse matrix or (rows, cols), optional
        The positives that define popularity. Without them, the popularity share is not computed. If neither `held_out`
        nor `known` is a matrix, the number of items is unknown and coverage is not computed either.
    denominator : {"all", "k"}
        Recall is hits/|T| or hits/min(k, |T|), where T is the set of held-out items of a user.
    seed : int
        Seed of the bootstrap.
    """
    tally, ids = Tally(depths_of(n), denominator, seed), validate_lists(recommended)
    sized = [given.shape[1] for given in (held_out, known) if sparse.issparse(given)]
    tally.add(ids, validate_held_out(ids, held_out), sized[0] if sized else None)
    return tally.evaluation(known)


class Tally:
    """Accumulates lists batch by batch; only their hits and the item counts are kept."""

    def __init__(self, depths: tuple[int, ...], denominator: str, seed: int):
        require_seed(seed)
        self.depths, self.denominator, self.seed = depths, require_denominator(denominator), seed
        self.hits: list[Hits] = []
        self.counts: Array | None = None

    def add(self, ids: Array, test: Any, items: int | None) -> None:
        """Add some lists and their held-out items. Shares, which are of all lists, need the number of items."""
        for k in self.depths:
            require_depth(k, ids.shape[1])
        hits = Hits.of(ids, test)
        self.hits.append(hits)
        if items is not None:
            require_known_items(ids, items)
            counts = frequencies(ids, self.depths, items)
            self.counts = counts if self.counts is None else self.counts + counts

    def evaluation(self, known: Any) -> Evaluation:
        hits = Hits.joined(self.hits)
        values: dict[str, Array] = {}
        shares: dict[str, float] = {}
        often = None if known is None or self.counts is None else popular(known, self.counts.shape[1])
        for place, k in enumerate(self.depths):
            values |= per_user(hits, k, self.denominator)
            if self.counts is not None:
                shares[f"coverage@{k}"] = covered(self.counts[place])
            if self.counts is not None and often is not None:
                shares[f"popularity_share@{k}"] = share_of(often, self.counts[place])
        left_out = hits.lists - hits.users.size
        return Evaluation(values, shares, hits.users, left_out, self.denominator, self.seed)


def depths_of(n: Any) -> tuple[int, ...]:
    """Distinct list lengths, in the order given."""
    each = tuple(n) if isinstance(n, Iterable) and not isinstance(n, str) else (n,)
    for k in each:
        if not is_count(k, 1):
            raise InputError(f"n={n!r} is not an integer ≥ 1, or several. Pass the number of places that count.")
    if not each:
        raise InputError("n is empty. Pass the number of places that count.")
    return tuple(dict.fromkeys(int(k) for k in each))


# Evaluation of a model on held-out positives.

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
    ids = validate_lists(answer[0])
    if ids.shape[0] != rows.shape[0] or ids.shape[1] > n:
        fact = f"returned shape {ids.shape} instead of {rows.shape[0]} lists of up to {n} places"
        raise InputError(f"{type(model).__name__}.recommend {fact}. Check its results.")
    require_known_items(ids, items)
    return ids
