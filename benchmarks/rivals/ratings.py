"""Other libraries that predict ratings, each with a grid of settings; their packages come with the `bench` extra.

Values are standardised, so that one grid suits all data, and predictions are transformed back.
"""

import contextlib
import io
import itertools
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks.harness.ratings_data import Split
from benchmarks.harness.rows import library
from bifactor.kernels.threading import thread_count

Predictor = Callable[[np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Recommender:
    """A library: `fit` takes a split, the rank and one of the settings."""

    name: str
    fit: Callable[..., Predictor]
    settings: list[dict[str, float]]


def cmfrec(train: Split, rank: int, ridge: float) -> Predictor:
    """Alternating least squares with offsets of rows and columns."""
    package = library("cmfrec")
    rows, cols, values, turned_back = scaled(train)
    matrix = sparse.coo_matrix((values, (rows, cols)), shape=train.shape)
    model = package.CMF(k=rank, lambda_=ridge, verbose=False, nthreads=thread_count()).fit(matrix)
    return turned_back(model.predict)


def surprise(train: Split, rank: int, ridge: float, epochs: int) -> Predictor:
    """Stochastic gradients with offsets of rows and columns, on one core."""
    package, pandas = library("surprise"), library("pandas")
    rows, cols, values, turned_back = scaled(train)
    frame = pandas.DataFrame({"row": rows, "col": cols, "value": values})
    scale = package.Reader(rating_scale=(values.min(), values.max()))
    model = package.SVD(n_factors=rank, reg_all=ridge, n_epochs=epochs, random_state=0)
    model.fit(package.Dataset.load_from_df(frame, scale).build_full_trainset())
    return turned_back(lambda i, j: np.array([model.predict(*pair).est for pair in zip(i, j, strict=True)]))


def libmf(train: Split, rank: int, ridge: float, epochs: int) -> Predictor:
    """Stochastic gradients without offsets, on one thread: two threads deadlocked."""
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        package = library("libmf.mf")
    rows, cols, values, turned_back = scaled(train)
    ridges = {"lambda_p1": 0, "lambda_q1": 0, "lambda_p2": ridge, "lambda_q2": ridge}
    model = package.MF(k=rank, nr_iters=epochs, nr_threads=1, quiet=True, **ridges)
    model.fit(np.ascontiguousarray(np.column_stack([rows, cols, values])))
    # Its own `predict` reads pairs in another order than `fit` does.
    U, V = model.p_factors(), model.q_factors()
    return turned_back(lambda i, j: np.einsum("tk,tk->t", U[i], V[j]).astype(float))


def scaled(train: Split) -> tuple[np.ndarray, np.ndarray, np.ndarray, Callable[[Any], Predictor]]:
    """Rows, columns, scaled values, and a function that transforms predictions back."""
    rows, cols, values = train.shown
    mean, unit = values.mean(), values.std()

    def turned_back(predict: Predictor) -> Predictor:
        return lambda i, j: mean + unit * predict(i, j)

    return rows, cols, (values - mean) / unit, turned_back


def grid(**choices: tuple[float, ...]) -> list[dict[str, float]]:
    return [dict(zip(choices, values, strict=True)) for values in itertools.product(*choices.values())]


RIDGES = (0.02, 0.05, 0.1, 0.2, 0.4)
"""Of one entry, for stochastic gradients."""

RECOMMENDERS = (
    Recommender("cmfrec", cmfrec, grid(ridge=(1.0, 2.0, 4.0, 6.0, 9.0, 13.0, 20.0, 40.0))),
    Recommender("scikit-surprise SVD", surprise, grid(ridge=RIDGES, epochs=(20, 50, 100))),
    Recommender("LibMF", libmf, grid(ridge=RIDGES, epochs=(5, 20, 100))),
)
