"""Choice of the settings of a model of clicks by the ranking of held-out positives of held-out users."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from scipy import sparse

from bifactor.arrays import Array
from bifactor.data import Observations
from bifactor.errors import InputError
from bifactor.inits import Given, Init
from bifactor.models.completion.fitting import CompletionSettings, run
from bifactor.models.link import Link
from bifactor.models.model import Model
from bifactor.models.recommender.item_to_item import Cooccurrence, with_items
from bifactor.models.recommender.model import ColdUserRecommender, clicks_problem
from bifactor.models.recommender.rows import ClickRows
from bifactor.models.recommender.weights import chosen_entries
from bifactor.models.rows import with_ones
from bifactor.ranking import Split, by_user, evaluate
from bifactor.running.search import Search, Trials, require_complete
from bifactor.validation import is_at_least_zero, is_count

Pair = tuple[float, float]
Fixed = tuple[float | None, float | None]
"""Given numbers; None for those to be chosen."""

UNOBSERVED, RIDGE = 0.2, 0.01
"""w₀ and λ if there are too few data to choose them."""

ODDS, ITEM_RIDGE = 0.3, 200.0
"""Odds of item-to-item scores, and the ridge of their regression, if one is given and the other cannot be chosen."""

STARTS = ((UNOBSERVED, RIDGE), (0.1, 0.03), (0.02, 0.1))
"""Starting points of a search for w₀ and λ: good pairs lie along this line."""

STEPS = (2.0, 1.6), (1.4, 1.25)
"""Factors of w₀ and of λ between neighbouring points of a search, at first and at the end."""

LEAST, LARGEST = (1e-4, 1e-4), (30.0, 30.0)

ITEM_STARTS = ((ODDS, ITEM_RIDGE), (3.0, 50.0))
ITEM_STEP = 2.0, 2.0
ITEM_LEAST, ITEM_LARGEST = (0.05, 1.0), (20.0, 1e4)
"""The same for the odds and ridge of item-to-item scores."""

MOST, ITEM_MOST = 20, 24
"""Number of pairs tried; for weights, in each of two rounds."""

LAST = 5
"""Number of pairs by which the last step of a search may exceed that."""

TRIAL_RANK, TRIAL_TOL = 64, 1e-3
"""Rank and tolerance of trial fits. Five iterations for each instead of ten cost up to 2 % of the NDCG."""

JUDGES, SHARE, FEW = 2000, 0.2, 30
"""Held-out users: their largest number, their largest share, and the smallest number needed to choose anything."""

FOLDS, SURE = 3, 600
"""Largest number of folds; more than one are used if a fold holds out fewer than SURE users."""

MAX_TRIAL_ENTRIES = 2_000_000
"""Largest number of entries in trial fits; of more, those of some users."""

RANKING_DEPTH = 20
"""Length of the lists that are evaluated by NDCG."""


@dataclass(frozen=True)
class Hyperparameters:
    """Settings of a model of clicks; None for those to be chosen."""

    unobserved: float | None = None
    ridge: float | None = None
    item_share: float | None = None
    item_ridge: float | None = None

    @property
    def complete(self) -> bool:
        items = self.item_share == 0 or None not in (self.item_share, self.item_ridge)
        return items and None not in (self.unobserved, self.ridge)


def require_click_settings(n_components: Any, unobserved: Any, ridge: Any, item_share: Any, item_ridge: Any) -> None:
    """Raise `InputError` unless these are valid settings of a `Recommender`."""
    if unobserved != "auto" and not (is_at_least_zero(unobserved) and float(unobserved) > 0):
        raise InputError(f"unobserved={unobserved!r} is not a number above 0. Pass such a number, or 'auto'.")
    if ridge is None:
        raise InputError("ridge=None is for numbers with a posterior. Pass a number ≥ 0, or 'auto'.")
    if item_share != "auto" and not (is_at_least_zero(item_share) and float(item_share) < 1):
        raise InputError(f"item_share={item_share!r} is not a number ≥ 0 and < 1. Pass such a number, or 'auto'.")
    if item_ridge != "auto" and not (is_at_least_zero(item_ridge) and float(item_ridge) > 0):
        raise InputError(f"item_ridge={item_ridge!r} is not a number above 0. Pass such a number, or 'auto'.")
    if not is_count(n_components, 1):
        raise InputError(f"n_components={n_components!r} is not an integer ≥ 1. Pass the number of components.")


@dataclass(frozen=True)
class Trial:
    """Settings of a model of clicks, and how well it ranked held-out choices."""

    unobserved: float
    ridge: float
    item_share: float
    item_ridge: float
    ndcg: float
    users: int
    """Number of held-out users; first guesses are evaluated with some of them."""


def search_hyperparameters(
    data: Callable[[], Observations], settings: CompletionSettings, given: Hyperparameters
) -> tuple[Trial, Search | None]:
    """Choose settings with held-out users; use the default ones, without a search, if there are too few users.

    A weight that is to be chosen is relative to the mean weight of choices, so that their unit does not matter.
    """
    unit, splits = 1.0, list[Split]()
    if not given.complete:
        choices = data()
        if given.unobserved is None and choices.weights is not None:
            unit = float(np.mean(choices.weights, dtype=np.float64))
        splits = list(_splits(choices, settings.seed, unit))
    best, search = _default_trial(given), None
    if splits:
        contest = _WeightContest([_Fold(split, settings) for split in splits], best, Trials[Trial](settings.stage))
        with contest.trials:
            contest.choose_weights(given)
            if given.item_share != 0:
                contest.choose_items(given)
        best, search = contest.best, contest.search(unit)
    return replace(best, unobserved=unit * best.unobserved), search


@dataclass
class _WeightContest:
    """Settings tried on some folds, and the best so far."""

    folds: list["_Fold"]
    best: Trial
    trials: Trials[Trial]

    def choose_weights(self, given: Hyperparameters) -> None:
        """Choose weights, roughly with one fold, then with all."""
        starts: tuple[Pair, ...] = STARTS
        for used, step in ((self.folds[:1], STEPS[0]), (self.folds, STEPS[1])):
            first = len(self.trials.tried)
            like = replace(self.best, item_share=0.0, item_ridge=0.0, users=_users(used))

            def note(pair: Pair, ndcg: float, like: Trial = like, first: int = first) -> None:
                self._add(replace(like, unobserved=pair[0], ridge=pair[1], ndcg=ndcg), first)
                self._announce("choosing weights", len(self.trials.tried), first + MOST)

            self._announce("choosing weights", first, first + MOST)
            search = _PairSearch(used, _Fold.ndcg, (given.unobserved, given.ridge), (LEAST, LARGEST), MOST, note)
            starts = (search.best(starts, step),)

    def choose_items(self, given: Hyperparameters) -> None:
        """Choose item-to-item scores to add."""
        best, seen, share = self.best, len(self.trials.tried), given.item_share
        self._announce("choosing item-to-item scores", 0, ITEM_MOST)
        alone = replace(best, ndcg=float(np.mean([fold.hold(best.unobserved, best.ridge) for fold in self.folds])))
        first = seen if share is None else seen + 1  # no item-to-item scores is a choice, unless a share is given
        self.trials.tried.append(alone)

        def note(pair: Pair, ndcg: float) -> None:
            odds, ridge = pair
            self._add(replace(alone, item_share=odds / (1 + odds), item_ridge=ridge, ndcg=ndcg), first)
            self._announce("choosing item-to-item scores", len(self.trials.tried) - seen - 1, ITEM_MOST)

        fixed = None if share is None else share / (1 - share), given.item_ridge
        search = _PairSearch(self.folds, _Fold.mixed, fixed, (ITEM_LEAST, ITEM_LARGEST), ITEM_MOST, note)
        search.best(ITEM_STARTS, ITEM_STEP)

    def search(self, unit: float) -> Search:
        """All settings tried, with weights in this unit."""
        tried = self.trials.tried
        columns = {part.name: np.array([getattr(one, part.name) for one in tried]) for part in fields(Trial)}
        columns["unobserved"] = unit * columns["unobserved"]
        score, users = columns.pop("ndcg"), columns.pop("users")
        index, over, measure = tried.index(self.best), self.trials.interrupted, f"NDCG@{RANKING_DEPTH}"
        return Search("weights", columns, score, index, None, over, measure, {"users": users})

    def _add(self, trial: Trial, first: int) -> None:
        """Add a trial; the best is one of those from `first` on."""
        self.trials.tried.append(trial)
        self.best = max(self.trials.tried[first:], key=lambda one: one.ndcg)

    def _announce(self, what: str, count: int, most: int) -> None:
        self.trials.announce(what, count, most + LAST)


def _users(folds: list["_Fold"]) -> int:
    return sum(int(np.count_nonzero(np.diff(fold.split.test.indptr))) for fold in folds)


def _default_trial(given: Hyperparameters) -> Trial:
    """The given settings, and defaults for the others."""
    share = given.item_share
    if share is None:
        share = 0.0 if given.item_ridge is None else ODDS / (1 + ODDS)
    item_ridge = ITEM_RIDGE if given.item_ridge is None else given.item_ridge
    ridge = RIDGE if given.ridge is None else given.ridge
    return Trial(given.unobserved or UNOBSERVED, ridge, share, item_ridge if share else 0.0, np.nan, 0)


def _splits(data: Observations, seed: int, unit: float) -> Iterator[Split]:
    """Splits into held-out users and the choices of the others, weighed in this unit; none if there are few users."""
    values = np.ones(data.values.size) if data.weights is None else data.weights / data.weights.dtype.type(unit)
    entries = sparse.csr_array((values, (data.rows, data.cols)), shape=data.shape)
    if entries.nnz > MAX_TRIAL_ENTRIES:
        order = np.random.default_rng(seed).permutation(entries.shape[0])
        counts = np.cumsum(np.diff(entries.indptr)[order])
        entries = entries[np.sort(order[: max(2, int(np.searchsorted(counts, MAX_TRIAL_ENTRIES)))])]
    able = int(np.count_nonzero(np.diff(entries.indptr) >= 2))
    judges = min(JUDGES, int(SHARE * able))
    if judges >= FEW:
        for fold in range(min(FOLDS, -(-SURE // judges))):
            yield by_user(entries, judges, seed=seed + fold)


def _single(weights: sparse.csr_array) -> sparse.csr_array:
    """Weights in single precision if they are well within its range."""
    sizes = np.abs(weights.data)
    within = sizes.size == 0 or (sizes.min() > 1e-12 and sizes.max() < 1e12)
    return weights.astype(np.float32) if within else weights


class _Fold:
    """Fits to the choices of some users, each started from the previous one, and evaluated with other users."""

    def __init__(self, split: Split, settings: CompletionSettings):
        train, known = _single(split.train), _single(split.known)
        self.data, self.split = chosen_entries(train), replace(split, train=train, known=known)
        self.most = settings.n_components or TRIAL_RANK
        self.rank = min(self.most, TRIAL_RANK, *self.data.shape)
        self.settings = replace(settings, tol=TRIAL_TOL, progress=False, callback=None, checkpoint=None)
        self.last: Init | None = None

    def ndcg(self, unobserved: float, ridge: float) -> float:
        return self._judged(self._model(unobserved, ridge))

    def hold(self, unobserved: float, ridge: float) -> float:
        """Fit again at full rank, to add item-to-item scores: with fewer components these would seem better."""
        self.last, self.rank = None, min(self.most, *self.data.shape)
        self.model = self._model(unobserved, ridge)
        self.together = Cooccurrence.of(self.data, self.most, self.model)
        self.own = ColdUserRecommender(self.model).factors(self.split.known)
        return self._judged(self.model)

    def mixed(self, odds: float, ridge: float) -> float:
        return self._judged(with_items(self.model, self.data, self.together, odds, ridge), self.own)

    def _model(self, unobserved: float, ridge: float) -> Model:
        rows = ClickRows(ridge, unobserved=unobserved)
        problem = clicks_problem(self.data, rows)
        result = require_complete(run(problem, self.rank, None, self.last, self.settings))
        self.last = Given(result.U, result.V)
        return Model(with_ones(result.U, result.V, (0, 0)), Link(self.settings.loss), rows, result)

    def _judged(self, model: Model, own: Array | None = None) -> float:
        return evaluate(ColdUserRecommender(model, own), self.split, RANKING_DEPTH, denominator="k")[
            f"ndcg@{RANKING_DEPTH}"
        ]


class _PairSearch:
    """Search over pairs of numbers by the mean score of some folds; given numbers are fixed."""

    def __init__(
        self,
        folds: list[_Fold],
        score: Callable[[_Fold, float, float], float],
        given: Fixed,
        ends: tuple[Pair, Pair],
        most: int,
        note: Callable[[Pair, float], None],
    ):
        self.folds, self.score, self.given, self.ends, self.most, self.note = folds, score, given, ends, most, note
        self.tried = dict[Pair, float]()

    def best(self, starts: tuple[Pair, ...], step: Pair) -> Pair:
        """Move from the best start to a better neighbouring pair until there is none."""
        best = max((self._nearest(start) for start in starts), key=self._scored)
        while len(self.tried) < self.most:
            beside = [
                self._nearest((best[0] * step[0] ** i, best[1] * step[1] ** j))
                for i, j in ((1, 0), (-1, 0), (0, 1), (0, -1), (1, -1), (-1, 1))
            ]
            found = max(beside, key=self._scored)
            if self._scored(found) <= self._scored(best):
                break
            best = found
        return best

    def _nearest(self, pair: Pair) -> Pair:
        """The nearest pair within the limits, with the given numbers."""
        a, b = (
            round(min(max(at, low), high), 9) if given is None else given
            for given, at, low, high in zip(self.given, pair, *self.ends, strict=True)
        )
        return a, b

    def _scored(self, pair: Pair) -> float:
        if pair not in self.tried:
            self.tried[pair] = float(np.mean([self.score(fold, *pair) for fold in self.folds]))
            self.note(pair, self.tried[pair])
        return self.tried[pair]
