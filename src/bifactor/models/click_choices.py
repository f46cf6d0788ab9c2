"""What is left open in a model of clicks, chosen by the ranking of positives held out of users who are held out."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from bifactor.inits import Given, Init
from bifactor.models.chosen import Clicks, Trial
from bifactor.models.clicks import Strangers, chosen_entries, clicks_problem
from bifactor.models.fitting import Settings, run
from bifactor.models.item_regression import Cooccurrence, with_items
from bifactor.models.model import Model
from bifactor.ranking import Split, by_user, evaluate
from bifactor.tables import Observations

Pair = tuple[float, float]
Fixed = tuple[float | None, float | None]
"""Numbers that are given; None for those that are not."""

UNOBSERVED, ALPHA = 0.2, 0.01
"""w₀ and λ where too little is known to choose them."""

ODDS, ITEM_ALPHA = 0.3, 200.0
"""Of item-to-item scores, and the ridge of their regression, where one is given and the other cannot be chosen."""

STARTS = ((UNOBSERVED, ALPHA), (0.1, 0.03), (0.02, 0.1))
"""Where a search for w₀ and λ begins: good pairs lie along such a line."""

STEPS = (2.0, 1.6), (1.4, 1.25)
"""Factors of w₀ and of λ by which a search goes on, and then ends."""

LEAST, LARGEST = (1e-4, 1e-4), (30.0, 30.0)

ITEM_STARTS = ((ODDS, ITEM_ALPHA), (3.0, 50.0))
ITEM_STEP = 2.0, 2.0
ITEM_LEAST, ITEM_LARGEST = (0.05, 1.0), (20.0, 1e4)
"""The same for odds and ridge of item-to-item scores."""

MOST, ITEM_MOST = 20, 24
"""Pairs that are tried, of weights in each of two rounds."""

TRIAL_RANK, TRIAL_TOL = 64, 1e-3
"""Of fits that are only compared."""

JUDGES, SHARE, FEW = 2000, 0.2, 30
"""Users held out: at most so many, at most this share of all, and how many it takes to choose anything."""

FOLDS, SURE = 3, 600
"""Where so many users are not held out at once, others are held out again, so many times at most."""

ENOUGH = 2_000_000
"""Entries that are fitted while choosing: those of some users, where there are more."""

DEPTH = 20
"""Places of the lists that are judged, by NDCG."""


@dataclass(frozen=True)
class Choices:
    """Settings of a model of clicks; None for what is to be chosen."""

    unobserved: float | None = None
    alpha: float | None = None
    item_share: float | None = None
    item_alpha: float | None = None

    @property
    def complete(self) -> bool:
        items = self.item_share == 0 or None not in (self.item_share, self.item_alpha)
        return items and None not in (self.unobserved, self.alpha)


def chosen(data: Observations, settings: Settings, given: Choices) -> tuple[Trial, tuple[Trial, ...]]:
    """The settings that rank best, and all that were tried."""
    splits = [] if given.complete else list(_splits(data, settings.seed))
    if not splits:
        return _usual(given), ()
    folds = [_Fold(split, settings) for split in splits]
    rough, fine = _weights(folds, settings, given)
    best = max(fine, key=_ndcg)
    if given.item_share == 0:
        return best, (*rough, *fine)
    alone = replace(best, ndcg=float(np.mean([fold.hold(best.unobserved, best.alpha) for fold in folds])))
    items = _with_items(folds, alone, settings, given)
    best = max(items if given.item_share else (alone, *items), key=_ndcg)
    return best, (*rough, *fine, alone, *items)


def _weights(folds: list["_Fold"], settings: Settings, given: Choices) -> tuple[list[Trial], list[Trial]]:
    """Those tried for w₀ and λ: roughly by users of one fold, then by all who are held out."""
    starts: tuple[Pair, ...] = STARTS
    told: list[list[Trial]] = []
    for used, step in ((folds[:1], STEPS[0]), (folds, STEPS[1])):
        tell = _told(settings, "choosing weights", len(told[0]) if told else 0)
        search = _Search(used, _Fold.ndcg, (given.unobserved, given.alpha), (LEAST, LARGEST), MOST, tell)
        starts = (search.best(starts, step),)
        told.append([Trial(*pair, 0.0, 0.0, ndcg, _users(used)) for pair, ndcg in search.tried.items()])
    return told[0], told[1]


def _with_items(folds: list["_Fold"], alone: Trial, settings: Settings, given: Choices) -> list[Trial]:
    """Item-to-item scores beside the factors that rank best."""
    share = given.item_share
    fixed = None if share is None else share / (1 - share), given.item_alpha
    tell = _told(settings, "choosing item-to-item scores", 0)
    search = _Search(folds, _Fold.mixed, fixed, (ITEM_LEAST, ITEM_LARGEST), ITEM_MOST, tell)
    search.best(ITEM_STARTS, ITEM_STEP)
    return [
        replace(alone, item_share=odds / (1 + odds), item_alpha=ridge, ndcg=ndcg)
        for (odds, ridge), ndcg in search.tried.items()
    ]


def _ndcg(trial: Trial) -> float:
    return trial.ndcg


def _users(folds: list["_Fold"]) -> int:
    return sum(int(np.count_nonzero(np.diff(fold.split.test.indptr))) for fold in folds)


def _usual(given: Choices) -> Trial:
    """What is given, and usual numbers for the rest."""
    share = given.item_share
    if share is None:
        share = 0.0 if given.item_alpha is None else ODDS / (1 + ODDS)
    item_alpha = ITEM_ALPHA if given.item_alpha is None else given.item_alpha
    alpha = ALPHA if given.alpha is None else given.alpha
    return Trial(given.unobserved or UNOBSERVED, alpha, share, item_alpha if share else 0.0, np.nan, 0)


def _told(settings: Settings, what: str, before: int) -> Callable[[int, int], None]:
    def tell(count: int, most: int) -> None:
        if settings.stage is not None:
            settings.stage(what, before + count, before + most)

    return tell


def _splits(data: Observations, seed: int) -> Iterator[Split]:
    """Users who judge, and what the others have chosen; none where there are too few."""
    values = np.ones(data.values.size) if data.weights is None else data.weights
    entries = sparse.csr_array((values, (data.rows, data.cols)), shape=data.shape)
    if entries.nnz > ENOUGH:
        order = np.random.default_rng(seed).permutation(entries.shape[0])
        counts = np.cumsum(np.diff(entries.indptr)[order])
        entries = entries[np.sort(order[: max(2, int(np.searchsorted(counts, ENOUGH)))])]
    able = int(np.count_nonzero(np.diff(entries.indptr) >= 2))
    judges = min(JUDGES, int(SHARE * able))
    if judges >= FEW:
        for fold in range(min(FOLDS, -(-SURE // judges))):
            yield by_user(entries, judges, seed=seed + fold)


class _Fold:
    """Fits to what some users have chosen, each begun where the one before it ended, judged by others."""

    def __init__(self, split: Split, settings: Settings):
        self.data, self.split = chosen_entries(split.train), split
        self.most = settings.n_components or TRIAL_RANK
        self.rank = min(self.most, TRIAL_RANK, *self.data.shape)
        self.settings = replace(settings, tol=TRIAL_TOL, progress=False, callback=None, checkpoint=None)
        self.last: Init | None = None

    def ndcg(self, unobserved: float, alpha: float) -> float:
        return self._judged(self._model(unobserved, alpha))

    def hold(self, unobserved: float, alpha: float) -> float:
        """Fit once more, for item-to-item scores to stand beside: with fewer components these would seem better."""
        self.last, self.rank = None, min(self.most, *self.data.shape)
        self.model = self._model(unobserved, alpha)
        self.together = Cooccurrence.of(self.data, self.most, self.model)
        return self._judged(self.model)

    def mixed(self, odds: float, ridge: float) -> float:
        return self._judged(with_items(self.model, self.data, self.together, odds, ridge))

    def _model(self, unobserved: float, alpha: float) -> Model:
        problem = clicks_problem(self.data, unobserved, alpha)
        result = run(problem, self.rank, None, self.last, self.settings)
        self.last = Given(result.U, result.V)
        return Model(self.settings.loss, 0.0, (0, 0), alpha, result.U, result.V, result, clicks=Clicks(unobserved))

    def _judged(self, model: Model) -> float:
        return evaluate(Strangers(model), self.split, DEPTH, denominator="k")[f"ndcg@{DEPTH}"]


class _Search:
    """Pairs of numbers that were tried, and how each did in the mean of some folds; those that are given stay."""

    def __init__(
        self,
        folds: list[_Fold],
        score: Callable[[_Fold, float, float], float],
        given: Fixed,
        ends: tuple[Pair, Pair],
        most: int,
        tell: Callable[[int, int], None],
    ):
        self.folds, self.score, self.given, self.ends, self.most, self.tell = folds, score, given, ends, most, tell
        self.tried = dict[Pair, float]()

    def best(self, starts: tuple[Pair, ...], step: Pair) -> Pair:
        """From the best of some starts to a better pair beside it, until there is none."""
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
        """That can be tried."""
        a, b = (
            min(max(at, low), high) if given is None else given
            for given, at, low, high in zip(self.given, pair, *self.ends, strict=True)
        )
        return round(a, 9), round(b, 9)

    def _scored(self, pair: Pair) -> float:
        if pair not in self.tried:
            self.tried[pair] = float(np.mean([self.score(fold, *pair) for fold in self.folds]))
            self.tell(len(self.tried), self.most)
        return self.tried[pair]
