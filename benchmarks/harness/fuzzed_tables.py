"""Random unusual tables and estimators with random settings, each reproducible from its seed."""

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
from scipy import sparse

import bifactor as bf
from benchmarks.harness.fuzzed import Rng, one_of

SHAPES = ((1, 1), (1, 5), (6, 1), (2, 3), (12, 4), (4, 12), (40, 3), (9, 9))
CELLS = ("numbers", "numbers", "labels", "counts", "constant", "low rank", "one odd cell")
FORMS = (
    "array",
    "float32",
    "integers",
    "objects",
    "list",
    "pandas",
    "nullable",
    "polars",
    "csr",
    "lil",
    "masked",
    "triples",
)
ODD = (np.inf, -np.inf, 1e308, 1e-308, -1.0, 0.5, None, "word", 1j)


def cells_for(estimator: Any) -> str:
    """What the cells of a table mostly are for an estimator."""
    loss = getattr(estimator, "loss", type(estimator).__name__)
    return {"logistic": "signs", "poisson": "counts", "PoissonPCA": "counts"}.get(
        loss, "labels" if loss in ("OneBitCompletion", "LogisticPCA") else "numbers"
    )


def draw_table(rng: Rng, usual: str) -> tuple[str, Any]:
    """What it is, and a table with holes in some form, mostly of the usual cells, at times of what others take."""
    m, n = one_of(rng, SHAPES) if rng.random() < 0.7 else tuple(map(int, rng.integers(0, 15, 2)))
    cells, form = usual if rng.random() < 0.7 else one_of(rng, CELLS), one_of(rng, FORMS)
    scale = 10.0 ** rng.integers(-8, 9)
    X = {
        "numbers": lambda: scale * rng.standard_normal((m, n)),
        "labels": lambda: rng.integers(0, 2, (m, n)).astype(float),
        "signs": lambda: 2.0 * rng.integers(0, 2, (m, n)) - 1,
        "counts": lambda: rng.poisson(2.0, (m, n)).astype(float),
        "constant": lambda: np.full((m, n), scale),
        "low rank": lambda: np.outer(rng.standard_normal(m), rng.standard_normal(n)),
        "one odd cell": lambda: rng.integers(0, 2, (m, n)).astype(object),
    }[cells]()
    holes = rng.random((m, n)) < one_of(rng, (0.0, 0.2, 0.6, 0.95))
    if cells == "one odd cell" and X.size:
        X[int(rng.integers(m)), int(rng.integers(n))] = one_of(rng, ODD)
    X[holes] = np.nan
    return f"{cells} of {m}×{n}, {form}", formed(X, form)


def formed(X: Any, form: str) -> Any:
    m, n = X.shape
    names = [f"c{j}" for j in range(n)]
    if X.dtype == object and form not in ("array", "list", "pandas"):
        form = "array"
    known = None if X.dtype == object else ~np.isnan(X)
    rows, cols = np.nonzero(known) if known is not None else (None, None)
    make = {
        "array": lambda: X,
        "float32": lambda: X.astype(np.float32),
        "integers": lambda: np.nan_to_num(np.clip(X, -1e6, 1e6)).astype(np.int64),
        "objects": lambda: np.where(known, X, None),
        "list": lambda: X.tolist(),
        "pandas": lambda: pd.DataFrame(X, columns=names),
        "nullable": lambda: pd.DataFrame(X, columns=names).convert_dtypes(),
        "polars": lambda: pl.DataFrame({name: X[:, j] for j, name in enumerate(names)}),
        "csr": lambda: sparse.csr_array((X[rows, cols], (rows, cols)), shape=(m, n)),
        "lil": lambda: sparse.lil_array(np.nan_to_num(X)),
        "masked": lambda: np.ma.masked_invalid(X),
        "triples": lambda: (rows, cols, X[rows, cols]),
    }
    return make[form]()


def draw_counts(rng: Rng) -> tuple[bf.StateTomography, list[str], np.ndarray]:
    """A tomography, settings of a few qubits, and counts, few or none of them at times."""
    n = int(rng.integers(1, 4))
    settings = ["".join(rng.choice(list("XYZ"), n)) for _ in range(int(rng.integers(1, 6)))]
    counts = rng.poisson(10.0 ** rng.integers(-2, 5), (len(settings), 2**n)).astype(float)
    rank = one_of(rng, ("auto", 1, 2, 2**n))
    return bf.StateTomography(rank=rank, max_iter=one_of(rng, (1, 200)), random_state=0), settings, counts


def draw_estimator(rng: Rng) -> Any:
    common = {
        "n_components": one_of(rng, (0, 1, 2, 3, 50, "auto", "auto")),
        "ridge": one_of(rng, ("auto", "auto", 0, 1e-6, 1.0, 1e6)),
        "max_iter": one_of(rng, (1, 20, 200)),
        "tol": one_of(rng, (1e-2, 1e-5, 1e-12)),
        "random_state": int(rng.integers(10)),
    }
    few = {**common, "n_components": int(rng.integers(1, 4))}
    flag = lambda: bool(rng.integers(2))  # noqa: E731
    binarize = one_of(rng, (None, None, 0.5))
    makers = [
        lambda: bf.MatrixCompletion(
            **common, loss=one_of(rng, ("squared", "huber", "logistic", "poisson")), offsets=flag()
        ),
        lambda: bf.OneBitCompletion(
            **common, link=one_of(rng, ("logistic", "probit")), binarize=binarize, offsets=flag()
        ),
        lambda: bf.TableImputer(
            effort=one_of(rng, ("fast", "full")),
            keep_empty_features=flag(),
            add_indicator=flag(),
            max_iter=common["max_iter"],
            random_state=common["random_state"],
        ),
        lambda: bf.FactorAnalysis(
            common["n_components"],
            noise=one_of(rng, ("columns", "one")),
            **{name: common[name] for name in ("max_iter", "tol", "random_state")},
        ),
        lambda: bf.LogisticPCA(**few, binarize=binarize),
        lambda: bf.PoissonPCA(**few, exposure=one_of(rng, (None, "total"))),
    ]
    return one_of(rng, makers)()
