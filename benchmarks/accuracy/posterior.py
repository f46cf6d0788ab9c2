"""Ratings: how well the posterior of the factors predicts, against a ridge that is chosen and other libraries.

A tenth of the entries is hidden at random, five times; those whose row or column would be new are left out. Errors are
of predictions clipped to the range of known values. cover80, cover90 and cover95 are the shares of hidden entries
inside intervals of these levels, length90 the mean length of those of 0.9. Rank 10 throughout, except for "posterior,
chosen", the defaults of MatrixCompletion. Other libraries have the settings, of a grid of 8 or 15, with the least mean
error on the hidden entries themselves, which favours them; their seconds are of the fit with these, ours include all
choices.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

import bifactor as bf
from benchmarks.harness.ratings_data import RATINGS, Split, split
from benchmarks.harness.rows import Case, Row, or_skipped, row, timed
from benchmarks.rivals.ratings import RECOMMENDERS, Predictor, Recommender

SEEDS = (301, 302, 303, 304, 305)
RANK = 10
MODELS = (("one", "shared"), ("student", "separate"), ("both", "separate"), ("columns", "separate"))
OBJECTIVE = "hidden ratings"

Interval = Callable[[np.ndarray, np.ndarray, float], tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True)
class Fitted:
    """Predictions of a candidate; some have no intervals."""

    predict: Predictor
    interval: Interval | None = None


def ridge(train: Split) -> Fitted:
    model = bf.MatrixCompletion(n_components=RANK, ridge="auto", random_state=0).fit(train.shown)
    return Fitted(model.predict)


def solved(train: Split, noise: str, prior: str) -> bf.Result:
    rows, cols, values = train.shown
    operator = bf.operators.Entries(rows, cols, train.shape)
    problem = bf.Problem("squared", operator, values - values.mean(), offsets=True)
    return bf.solve(problem, RANK, bf.solvers.Variational(noise, prior), rng=0, max_iter=100)


def posterior(train: Split, noise: str, prior: str) -> Fitted:
    result, mean = solved(train, noise, prior), train.shown[2].mean()

    def interval(i: np.ndarray, j: np.ndarray, level: float) -> tuple[np.ndarray, np.ndarray]:
        lower, upper = result.posterior.interval(i, j, level)
        return lower + mean, upper + mean

    return Fitted(lambda i, j: result.predict(i, j) + mean, interval)


def chosen(train: Split) -> Fitted:
    model = bf.MatrixCompletion(random_state=0).fit(train.shown)
    return Fitted(model.predict, model.predict_interval)


CANDIDATES: dict[str, Callable[[Split], Fitted]] = {
    "ridge, chosen by hold-out": ridge,
    **{f"posterior, {n}, {p}": lambda train, n=n, p=p: posterior(train, n, p) for n, p in MODELS},
    "posterior, chosen": chosen,
}


def measured(fit: Callable[[Split], Fitted], part: Split) -> Row:
    """The numbers of a row. Only the fit is timed."""
    kept: list[Fitted] = []
    seconds = timed(lambda: kept.append(fit(part)))["seconds"]
    (fitted,), (rows, cols, truth), shown = kept, part.hidden, part.shown[2]
    prediction = np.clip(fitted.predict(rows, cols), shown.min(), shown.max())
    numbers: Row = {"rmse": float(np.sqrt(np.mean((prediction - truth) ** 2)))}
    if fitted.interval is not None:
        limits = {level: fitted.interval(rows, cols, level / 100) for level in (80, 90, 95)}
        numbers |= {f"cover{at}": float(np.mean((lo <= truth) & (truth <= up))) for at, (lo, up) in limits.items()}
        numbers["length90"] = float(np.mean(limits[90][1] - limits[90][0]))
    return {**numbers, "seconds": seconds}


def tuned(rival: Recommender, parts: list[Split]) -> tuple[Row, list[Row]]:
    """The settings with the least mean error on what is hidden, and what was measured there."""
    tried = [(setting, [measured(with_setting(rival, setting), part) for part in parts]) for setting in rival.settings]
    # An error that is not finite comes last.
    return min(tried, key=lambda item: np.nan_to_num(np.mean([numbers["rmse"] for numbers in item[1]]), nan=np.inf))


def with_setting(rival: Recommender, setting: dict[str, float]) -> Callable[[Split], Fitted]:
    return lambda train: Fitted(rival.fit(train, RANK, **setting))


def candidate_rows(data: str, parts: list[Split], solver: str) -> Iterator[Row]:
    for seed, part in zip(SEEDS, parts, strict=True):
        yield row(OBJECTIVE, data, solver, draw=seed, **measured(CANDIDATES[solver], part))


def rival_rows(data: str, parts: list[Split], rival: Recommender) -> Iterator[Row]:
    setting, found = tuned(rival, parts)
    for seed, numbers in zip(SEEDS, found, strict=True):
        yield row(OBJECTIVE, data, f"{rival.name}, best of a grid", draw=seed, **numbers, **setting)


def data_rows(data: str) -> Iterator[Row]:
    triples = RATINGS[data]()
    parts = [split(triples, seed) for seed in SEEDS]
    for solver in CANDIDATES:
        nouns = {"objective": OBJECTIVE, "data": data, "solver": solver}
        yield from or_skipped(lambda s=solver: candidate_rows(data, parts, s), **nouns)
    for rival in RECOMMENDERS:
        nouns = {"objective": OBJECTIVE, "data": data, "solver": f"{rival.name}, best of a grid"}
        yield from or_skipped(lambda r=rival: rival_rows(data, parts, r), **nouns)


def warm_up() -> None:
    """Import and compile what is timed, on data large enough for compiled kernels."""
    rng = np.random.default_rng(0)
    shown = (*rng.integers(0, 300, (2, 20_000)), rng.standard_normal(20_000))
    part = split(shown, 0)
    for fit in (*CANDIDATES.values(), *(with_setting(rival, rival.settings[0]) for rival in RECOMMENDERS)):
        or_skipped(lambda f=fit: [measured(f, part)])


def prepare() -> Callable[[], Row]:
    part = split(RATINGS["MovieLens 100k"](), SEEDS[0])
    return lambda: timed(lambda: solved(part, "one", "shared"))


CASES = [Case(OBJECTIVE, f"MovieLens 100k, r = {RANK}", "posterior, one, shared", prepare)]


def run() -> Iterator[Row]:
    warm_up()
    for data in RATINGS:
        yield from or_skipped(lambda d=data: data_rows(d), objective=OBJECTIVE, data=data)
