"""Results of an evaluation, with confidence intervals."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from bifactor.arrays import Array
from bifactor.errors import InputError
from bifactor.ranking.bootstrap import interval
from bifactor.ranking.lists import Hits, frequencies, held_out_of, lists_of, require_depth, require_known_items
from bifactor.ranking.metrics import DENOMINATORS, covered, per_user, popular, require_denominator, share_of
from bifactor.validation import counted, is_count, require_seed


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
        return "\n".join([*lines, f"{counted(self.users.size, 'user')} evaluated{left_out}. {recall}"])

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
    tally, ids = Tally(depths_of(n), denominator, seed), lists_of(recommended)
    sized = [given.shape[1] for given in (held_out, known) if sparse.issparse(given)]
    tally.add(ids, held_out_of(ids, held_out), sized[0] if sized else None)
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
