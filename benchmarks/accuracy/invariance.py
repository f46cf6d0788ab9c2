"""Changes of the data that must not change the answers of an estimator, such as their unit or order.

Each estimator is fitted before and after each change, with five seeds; see `bifactor.testing.check_invariance`. A law
is exact if the answers must agree up to rounding or the tolerance of the fit. It is statistical if random choices of
the fit depend on the change: then the losses at held-out entries must agree within one standard error. The table shows
how often the law holds, the largest difference of an answer in units of the standard deviation of the answers, the
difference of losses in standard errors, and settings that the two fits chose differently.
"""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

import bifactor as bf
from benchmarks.harness.rows import Row, row
from benchmarks.harness.small_data import (
    SHAPE,
    clicks,
    columns,
    counts,
    grades,
    labels,
    many_clicks,
    numbers,
    picture,
    states,
)
from bifactor.testing.invariance import Comparison, compare

SEEDS = 5
EXACT, STATISTICAL = "exact", "statistical"

ENDS = {"tol": 1e-10, "max_iter": 5000, "random_state": 0}
"""Fits that end at their optimum: they may start elsewhere after a change of the order."""

CHOICES = "n_components_", "ridge_", "unobserved_", "item_share_", "item_ridge_", "noise_search_"
"""Attributes that a fit chooses."""

Answers = Callable[[Any, np.ndarray], np.ndarray]


def of_the_fit(model: Any, X: np.ndarray) -> np.ndarray:
    """Expected values of the rows of the fit; `transform` gives entries of new rows the weight 1."""
    rows, cols = np.indices(X.shape).reshape(2, -1)
    return np.asarray(model.model_.predicted(model.model_.scores(rows, cols))).reshape(X.shape)


def misplaced(scores: np.ndarray, X: np.ndarray, hidden: np.ndarray) -> np.ndarray:
    """1 − 1/log₂(1 + place) of each held-out choice in the ranking of the columns that its row is not known to have."""
    open_to = np.where(~np.isnan(X) & ~hidden, -np.inf, scores)
    places = 1 + np.sum(open_to[:, None, :] > open_to[:, :, None], axis=2)
    return 1 - 1 / np.log2(1 + places[hidden])


def filled(model: Any, X: np.ndarray) -> np.ndarray:
    return np.asarray(model.fit_transform(X))


@dataclass(frozen=True)
class Case:
    """An estimator, its data, and the laws that it obeys."""

    make: Callable[..., Any]
    data: Callable[[int], np.ndarray]
    exact: str
    """Changes for which the law is exact, and those for which it is statistical."""
    statistical: str = ""
    settings: dict[str, Callable[[Any], dict[str, Any]]] = field(default_factory=dict)
    """Settings in the unit of what changes, by change, as functions of `by`."""
    answers: dict[str, Answers] = field(default_factory=dict)
    losses: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray] | None = None
    tol: float = 1e-6

    @property
    def laws(self) -> dict[str, str]:
        return dict.fromkeys(self.exact.split(), EXACT) | dict.fromkeys(self.statistical.split(), STATISTICAL)


def features(count: int) -> np.ndarray:
    return np.random.default_rng(9).normal([0, 30], 1, (count, 2))


def with_features(estimator: Callable[..., Any]) -> Callable[..., Any]:
    """The estimator with features of rows and columns."""
    sides = {"user_features": features(SHAPE[0]), "item_features": features(SHAPE[1])}
    return lambda: estimator().set_params(**sides)


FORMS = "names sparse triples frame file"
RIDGE = {change: lambda by: {"ridge": by} for change in ("scale", "weights")}
PARTS = {"n_components": 3, "random_state": 0}
CLICKS = {"n_components": 6, "item_ridge": 20.0}
LIGHT = {"weights": lambda by: {"unobserved": 0.2 * by}}

ESTIMATORS: dict[str, Case] = {
    "MatrixCompletion": Case(
        lambda: bf.MatrixCompletion(**PARTS), numbers, f"scale shift weights {FORMS}", "order blocks"
    ),
    "MatrixCompletion, solver given": Case(  # a given noise still leaves the prior and implicit features to be chosen
        lambda: bf.MatrixCompletion(n_components=3, solver=bf.solvers.Variational("one"), **ENDS),
        numbers,
        f"scale shift weights order {FORMS}",
        "blocks",
        tol=1e-4,
    ),
    "MatrixCompletion, features": Case(
        with_features(lambda: bf.MatrixCompletion(n_components=3, noise="one", **ENDS)),
        numbers,
        "scale shift weights features sparse triples",
        "order",
        tol=1e-4,
    ),
    "MatrixCompletion, n_components='auto'": Case(
        lambda: bf.MatrixCompletion(random_state=0), numbers, f"scale shift weights {FORMS}", "order blocks"
    ),
    "MatrixCompletion, ridge=1": Case(
        lambda: bf.MatrixCompletion(n_components=3, ridge=1.0, **ENDS),
        numbers,
        f"scale shift weights order blocks {FORMS}",
        settings=RIDGE,
    ),
    "MatrixCompletion, ridge=1, features": Case(
        with_features(lambda: bf.MatrixCompletion(n_components=3, ridge=1.0, **ENDS)),
        numbers,
        "scale shift weights features order sparse triples",
        settings=RIDGE,
    ),
    "MatrixCompletion, ridge='auto'": Case(
        lambda: bf.MatrixCompletion(ridge="auto", **PARTS), numbers, f"scale shift weights {FORMS}", "order blocks"
    ),
    "MatrixCompletion, huber": Case(
        lambda: bf.MatrixCompletion(loss="huber", **PARTS), numbers, f"scale shift weights {FORMS}", "order blocks"
    ),
    "MatrixCompletion, ordinal": Case(
        lambda: bf.MatrixCompletion(loss="ordinal", **PARTS),
        grades,
        f"scale shift {FORMS}",
        "weights order blocks",
    ),
    "OneBitCompletion, ridge=1": Case(
        lambda: bf.OneBitCompletion(n_components=3, ridge=1.0, **ENDS),
        labels,
        f"scale shift weights order blocks {FORMS}",
        settings={"weights": RIDGE["weights"]},
        tol=1e-3,
    ),
    "OneBitCompletion": Case(
        lambda: bf.OneBitCompletion(**PARTS), labels, f"scale shift weights {FORMS}", "order blocks"
    ),
    "Recommender, settings given": Case(
        lambda: bf.Recommender(unobserved=0.2, ridge=0.03, item_share=0.3, **CLICKS, **ENDS),
        clicks,
        f"weights order {FORMS}",
        settings=LIGHT,
    ),
    "Recommender, features": Case(
        with_features(lambda: bf.Recommender(unobserved=0.2, ridge=0.03, item_share=0, **CLICKS, **ENDS)),
        clicks,
        "weights features order sparse triples",
        settings=LIGHT,
    ),
    "Recommender, no item_share": Case(
        lambda: bf.Recommender(unobserved=0.2, ridge=0.03, item_share=0, **CLICKS, **ENDS),
        clicks,
        f"weights order {FORMS}",
        "blocks",
        settings=LIGHT,
        losses=misplaced,
    ),
    "Recommender, settings chosen": Case(
        lambda: bf.Recommender(n_components=6, random_state=0), many_clicks, "names weights", "order", losses=misplaced
    ),
    "LogisticPCA, ridge=1": Case(
        lambda: bf.LogisticPCA(n_components=3, ridge=1.0, **ENDS),
        labels,
        "scale shift weights order sparse",
        settings={"weights": RIDGE["weights"]},
        answers={"weights": of_the_fit},
        tol=1e-4,
    ),
    "LogisticPCA": Case(
        lambda: bf.LogisticPCA(**PARTS),
        labels,
        "scale shift weights sparse",
        "order",
        answers={"weights": of_the_fit},
        tol=1e-5,
    ),
    "PoissonPCA, ridge=1": Case(
        lambda: bf.PoissonPCA(n_components=3, ridge=1.0, **ENDS),
        counts,
        "weights order sparse",
        settings={"weights": RIDGE["weights"]},
        answers={"weights": of_the_fit},
        tol=1e-3,
    ),
    "PoissonPCA": Case(
        lambda: bf.PoissonPCA(**PARTS), counts, "sparse", "weights order", answers={"weights": of_the_fit}
    ),
    "FactorAnalysis": Case(lambda: bf.FactorAnalysis(n_components=3, **ENDS), numbers, "scale shift order", tol=1e-5),
    "FactorAnalysis, n_components='auto'": Case(
        lambda: bf.FactorAnalysis(random_state=0), numbers, "scale shift", "order"
    ),
    "TableImputer": Case(lambda: bf.TableImputer(random_state=0), columns, "scale shift", "order"),
    "ImageCompletion": Case(
        lambda: bf.ImageCompletion(), picture, "scale shift", answers=dict.fromkeys(("scale", "shift"), filled)
    ),
}


def compared(case: Case, change: str, seed: int, by: Any = None) -> Comparison:
    told: dict[str, Any] = {"answers": case.answers.get(change), "losses": case.losses, "by": by, "seed": seed}
    if change in case.settings:
        told["settings"] = case.settings[change](1e6 if by is None else by)
    return compare(case.make(), case.data(seed), change, exact=case.laws[change] == EXACT, **told)


def holds(case: Case, found: Comparison) -> bool:
    """Whether the law holds; statistical laws also where the answers agree."""
    if found.largest <= case.tol:
        return True
    return found.losses is not None and abs(found.losses[1] - found.losses[0]) <= found.error


def changed(models: tuple[Any, Any], by: float) -> str:
    """Settings that two fits have chosen differently, apart from a ridge in the units of the data."""
    told = []
    for name in CHOICES:
        first, second = (getattr(model, name, None) for model in models)
        if name == "noise_search_":
            first, second = (None if one is None else one.chosen["noise"] for one in (first, second))
        if isinstance(first, float) and first and second:
            ratio = second / first
            if min(abs(ratio - 1), abs(ratio / by - 1), abs(ratio / by**2 - 1)) < 1e-3:
                continue
            first, second = f"{first:.3g}", f"{second:.3g}"
        if first != second:
            told.append(f"{name.strip('_')} {first} → {second}")
    return ", ".join(told)


def rows_of(name: str, change: str, by: Any = None) -> Iterator[Row]:
    case = ESTIMATORS[name]
    for seed in range(SEEDS):
        found = compared(case, change, seed, by)
        apart = None if found.losses is None else abs(found.losses[1] - found.losses[0]) / found.error
        told = {"law": case.laws[change], "holds": holds(case, found), "largest": found.largest, "errors": apart}
        called = change if by is None else f"{change} by {by:g}"
        yield row(name, called, "", draw=seed, **told, changed=changed(found.models, by or 1e6))


def state_rows() -> Iterator[Row]:
    for seed in range(SEEDS):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", bf.estimators.MisfitWarning)  # ten times the counts, the same misfit
            rho = {
                change: bf.StateTomography(rank=2, random_state=0).fit_counts(*data).density_matrix()
                for change, data in states(seed).items()
            }
        before = rho.pop("before")
        for change, after in rho.items():
            largest = float(np.max(np.abs(after - before)) / np.std(before))
            told = {"law": EXACT, "holds": largest <= 1e-5, "largest": largest, "errors": None, "changed": ""}
            yield row("StateTomography", change, "", draw=seed, **told)


def run() -> Iterator[Row]:
    for name, case in ESTIMATORS.items():
        for change, by in product(case.laws, (1e6, 1e-6)):
            if change in ("scale", "weights"):
                yield from rows_of(name, change, by)
            elif by > 1:
                yield from rows_of(name, change)
    yield from state_rows()
