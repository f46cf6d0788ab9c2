"""Implicit feedback: entries that were chosen, and a weak statement that all others were not.

½Σ_S w(z − 1)² + ½w₀Σᵢⱼ zᵢⱼ² + (λ/2)(Σᵢ aᵢ‖uᵢ‖² + Σⱼ bⱼ‖vⱼ‖²), aᵢ = Σ w over row i + w₀n, bⱼ = Σ w over column j + w₀m
(Rendle, Krichene, Zhang and Koren 2021, with ν = 1). What is left open is chosen by the ranking of positives that were
held out of users who were held out.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from bifactor.arrays import Array
from bifactor.errors import InputError
from bifactor.inits import Given, Init
from bifactor.models.fitting import Settings, resumed, run
from bifactor.models.model import Clicks, Model, Trial
from bifactor.models.pairs import Pairs
from bifactor.models.ranking import best_columns
from bifactor.models.side import Sides
from bifactor.operators import Entries, Operator
from bifactor.operators.cells import all_cells
from bifactor.penalties import Ridge
from bifactor.problems.problem import Problem
from bifactor.ranking import Split, by_entry, by_user, evaluate
from bifactor.tables import Observations

UNOBSERVED, ALPHA = 0.2, 0.01
"""w₀ and λ where too little is known to choose them."""

STARTS = ((0.2, 0.01), (0.1, 0.03), (0.02, 0.1))
"""Where a search for both begins: good pairs lie along such a line."""

STEPS = (2.0, 1.6), (1.4, 1.25)
"""Factors of w₀ and of λ by which a search goes on, and then ends."""

MOST = 40
"""Pairs that are tried."""

LOW, HIGH = 1e-4, 30.0
"""The ends of both."""

TRIAL_RANK, TRIAL_TOL = 64, 1e-3
"""Of fits that are only compared."""

JUDGES, SHARE, FEW = 2000, 0.2, 30
"""Users held out: at most so many, at most this share of all, and how many it takes to choose anything."""

FOLDS = 3
"""Where there are few users, others are held out again, so many times at most."""

ENOUGH = 2_000_000
"""Entries that are fitted while choosing: those of some users, where there are more."""

DEPTH = 20
"""Places of the lists that are judged, by NDCG."""


def fit_clicks(data: Observations, settings: Settings, start: Model | None, unobserved: float | None) -> Model:
    """Chooses what is to be chosen, and fits; values are 1 and weights say how sure they are."""
    if data.values.size == 0:
        raise InputError("Nothing was chosen: no value is above 0. Pass at least one.")
    tried: tuple[Trial, ...] = ()
    alpha = settings.alpha
    if unobserved is None or alpha is None:
        unobserved, alpha, tried = _chosen(data, settings, unobserved, alpha)
    rank = min(*data.shape, settings.n_components or 0)
    sides, clicks = Sides(data, weights=_paid(data, unobserved)), Clicks(unobserved, tried)
    if not sides.none:
        clicks = replace(clicks, known=Pairs.of(data).known(data.shape[1]))
    problem = clicks_problem(data, clicks, alpha, sides)
    result = run(problem, rank, settings.solver, resumed(start, problem, rank, sides), settings)
    U, V, side = sides.unfolded(problem.kind.pair(result.U, result.V))
    return Model(settings.loss, 0.0, (0, 0), alpha, U, V, result, clicks=clicks, side=side)


def clicks_problem(data: Observations, clicks: Clicks, alpha: float, sides: Sides | None = None) -> Problem:
    rows, cols = _paid(data, clicks.unobserved)
    operator: Operator = Entries(data.rows, data.cols, data.shape)
    if sides is not None:
        operator, rows, cols = sides.seen_by(operator), sides.weights(0, rows), sides.weights(1, cols)
    penalty = Ridge(alpha, rows=rows, cols=cols) if alpha > 0 else None
    cells = all_cells(clicks.unobserved, clicks.part(0), clicks.part(1))
    return Problem("squared", operator, data.values, data.weights, penalty) + cells


def _paid(data: Observations, unobserved: float) -> tuple[Array, Array]:
    """a and b, what each row and each column pays."""
    weights = np.ones(data.values.size) if data.weights is None else data.weights
    m, n = data.shape
    rows = np.bincount(data.rows, weights, m) + unobserved * n
    return rows, np.bincount(data.cols, weights, n) + unobserved * m


def as_choices(data: Observations) -> Observations:
    """Each entry once, as 1, with the weight that its count stands for: 1 + log r above 1. Pairs count as 1."""
    values = data.values if data.values.size == data.rows.size else np.ones(data.rows.size)
    counts = sparse.csr_array((values, (data.rows, data.cols)), shape=data.shape)
    if np.any(counts.data < 0):
        raise InputError(f"A value is {counts.data.min():g}, but what was chosen counts above 0. Leave it out.")
    counts.eliminate_zeros()
    weights = np.where(counts.data > 1, 1 + np.log(np.maximum(counts.data, 1)), counts.data)
    if data.weights is not None:
        weighed = sparse.csr_array((values * data.weights, (data.rows, data.cols)), shape=data.shape)
        weights *= weighed[counts.nonzero()] / counts.data
    counts.data = weights.astype(counts.dtype, copy=False)
    found = chosen_entries(counts)
    return replace(
        found,
        row_names=data.row_names,
        column_names=data.column_names,
        origin=data.origin,
        row_features=data.row_features,
        column_features=data.column_features,
    )


def chosen_entries(weights: sparse.csr_array) -> Observations:
    """The stored entries of a matrix, as ones that are so sure."""
    rows, cols = weights.tocoo().coords
    shape = (int(weights.shape[0]), int(weights.shape[1]))
    return Observations(rows.astype(np.int64), cols.astype(np.int64), np.ones_like(weights.data), shape, weights.data)


@dataclass(frozen=True)
class Strangers:
    """Recommends to users by their histories."""

    model: Model

    def factors(self, rows: sparse.csr_array, features: sparse.csr_array | None = None) -> Array:
        """Of each row of chosen entries, with their weights, and perhaps features."""
        return self.model.rows(replace(chosen_entries(rows), row_features=features))

    def recommend(self, rows: sparse.csr_array, n: int, /) -> tuple[Array, Array]:
        """For each row of chosen entries, with their weights, the n best columns that are not among these."""
        seen = Pairs.stored(rows).__getitem__
        return best_columns(self.factors(rows), self.model.V, min(n, rows.shape[1]), seen)


def held_out_ranking(model: Model, histories: sparse.csr_array, depth: int = 10) -> float:
    """NDCG of a fifth of each history, held out and ranked by factors that are found from the rest."""
    parts = by_entry(histories, (4, 1), seed=0)
    if parts.test.nnz == 0:
        raise InputError("No row has two entries, so none can be held out. Pass rows with at least two.")
    strangers = Split(parts.train, parts.known, parts.test)
    return evaluate(Strangers(model), strangers, depth)[f"ndcg@{depth}"]


def _chosen(
    data: Observations, settings: Settings, unobserved: float | None, alpha: float | None
) -> tuple[float, float, tuple[Trial, ...]]:
    splits = list(_splits(data, settings.seed))
    if not splits:
        return unobserved or UNOBSERVED, ALPHA if alpha is None else alpha, ()
    search = _Search([_Fold(split, settings) for split in splits], unobserved, alpha, settings.stage)
    best = max((search.tried(*start) for start in STARTS), key=lambda trial: trial.ndcg)
    for steps in STEPS:
        best = search.climbed(best, steps)
    return best.unobserved, best.alpha, tuple(search.trials.values())


def _splits(data: Observations, seed: int) -> Iterator[Split]:
    """Users who judge, and what the others have chosen; none where there are too few."""
    values = np.ones(data.values.size) if data.weights is None else data.weights
    chosen = sparse.csr_array((values, (data.rows, data.cols)), shape=data.shape)
    if chosen.nnz > ENOUGH:
        order = np.random.default_rng(seed).permutation(chosen.shape[0])
        counts = np.cumsum(np.diff(chosen.indptr)[order])
        chosen = chosen[np.sort(order[: max(2, int(np.searchsorted(counts, ENOUGH)))])]
    able = int(np.count_nonzero(np.diff(chosen.indptr) >= 2))
    judges = min(JUDGES, int(SHARE * able))
    if judges >= FEW:
        for fold in range(min(FOLDS, -(-JUDGES // (2 * judges)))):
            yield by_user(chosen, judges, seed=seed + fold)


class _Fold:
    """Fits to what some users have chosen, each begun where the one before it ended, judged by others."""

    def __init__(self, split: Split, settings: Settings):
        self.data, self.split = chosen_entries(split.train), split
        self.rank = min(settings.n_components or TRIAL_RANK, TRIAL_RANK, *self.data.shape)
        self.settings = replace(settings, tol=TRIAL_TOL, progress=False, callback=None, checkpoint=None)
        self.last: Init | None = None

    def ndcg(self, unobserved: float, alpha: float) -> float:
        problem = clicks_problem(self.data, Clicks(unobserved), alpha)
        result = run(problem, self.rank, None, self.last, self.settings)
        self.last = Given(result.U, result.V)
        model = Model(self.settings.loss, 0.0, (0, 0), alpha, result.U, result.V, result, clicks=Clicks(unobserved))
        return evaluate(Strangers(model), self.split, DEPTH, denominator="k")[f"ndcg@{DEPTH}"]


class _Search:
    """Settings that were tried; those that are given stay."""

    def __init__(
        self,
        folds: list[_Fold],
        unobserved: float | None,
        alpha: float | None,
        stage: Callable[[str, int, int], None] | None,
    ):
        self.folds, self.given, self.stage = folds, (unobserved, alpha), stage
        self.trials = dict[tuple[float, float], Trial]()

    def tried(self, unobserved: float, alpha: float) -> Trial:
        unobserved, alpha = (
            min(max(at, LOW), HIGH) if given is None else given
            for given, at in zip(self.given, (unobserved, alpha), strict=True)
        )
        key = round(unobserved, 9), round(alpha, 9)
        if key not in self.trials:
            ndcg = float(np.mean([fold.ndcg(unobserved, alpha) for fold in self.folds]))
            self.trials[key] = Trial(unobserved, alpha, ndcg)
            if self.stage is not None:
                self.stage("choosing weights", len(self.trials), MOST)
        return self.trials[key]

    def climbed(self, best: Trial, steps: tuple[float, float]) -> Trial:
        """From one pair to a better one beside it, until there is none."""
        while len(self.trials) < MOST:
            beside = [
                self.tried(best.unobserved * steps[0] ** i, best.alpha * steps[1] ** j)
                for i, j in ((1, 0), (-1, 0), (0, 1), (0, -1), (1, -1), (-1, 1))
            ]
            next_best = max(beside, key=lambda trial: trial.ndcg)
            if next_best.ndcg <= best.ndcg:
                break
            best = next_best
        return best
