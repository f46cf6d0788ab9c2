"""Models that rank items by positives, and the settings they are tuned over; packages come with the `bench` extra."""

import contextlib
import io
import itertools
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg, sparse

import bifactor as bf
from benchmarks.harness.rows import library
from bifactor.kernels.threading import thread_count
from bifactor.ranking import Recommends

Settings = dict[str, float]

BLOCK = 20_000_000
"""Scores that are held at a time."""


@dataclass(frozen=True)
class Ranker:
    """A model: `fit` takes positives by users × items and one of the settings.

    All of `settings` are tried on the validation part, then each of `then` replaces a setting of the best.
    A model that chooses its own settings has one empty dict.
    """

    name: str
    fit: Callable[..., Recommends]
    settings: tuple[Settings, ...] = ({},)
    then: tuple[Settings, ...] = ()


@dataclass(frozen=True, eq=False)
class Scorer:
    """Recommends by scores: `score(users, histories)` has one row for each user; `users` is None for new users."""

    train: Any
    score: Callable[[np.ndarray | None, Any], np.ndarray]

    def recommend(self, rows: Any, n: int, /) -> tuple[np.ndarray, np.ndarray]:
        step = max(1, BLOCK // self.train.shape[1])
        blocks = [self._best(rows[first : first + step], n) for first in range(0, rows.shape[0], step)]
        ids, scores = (np.concatenate(side) for side in zip(*blocks, strict=True))
        return ids, scores

    def _best(self, rows: Any, n: int) -> tuple[np.ndarray, np.ndarray]:
        strangers = sparse.issparse(rows)
        histories = rows if strangers else self.train[rows]
        scores = np.array(self.score(None if strangers else rows, histories), dtype=np.float64)
        scores[histories.nonzero()] = -np.inf
        some = np.argpartition(-scores, min(n, scores.shape[1]) - 1, axis=1)[:, :n]
        best = np.take_along_axis(scores, some, axis=1)
        order = np.argsort(-best, axis=1, kind="stable")
        ids, best = (np.take_along_axis(side, order, axis=1) for side in (some, best))
        return np.where(np.isneginf(best), -1, ids), best


def popularity(train: Any) -> Recommends:
    """The same items for all, those with most users first."""
    counts = np.bincount(train.indices, minlength=train.shape[1])
    return Scorer(train, lambda users, histories: np.tile(counts, (histories.shape[0], 1)))


def ease(train: Any, ridge: float) -> Recommends:
    """X·B with the B of zero diagonal that minimises ‖X − XB‖² + ridge‖B‖² (Steck 2019)."""
    gram = (train.T @ train).toarray()
    gram[np.diag_indices_from(gram)] += ridge
    factor, failed = linalg.lapack.dpotrf(gram, overwrite_a=True)
    inverse, singular = linalg.lapack.dpotri(factor, overwrite_c=True)
    if failed or singular:
        raise ArithmeticError(f"ridge={ridge} is too small for these data.")
    inverse = np.triu(inverse) + np.triu(inverse, 1).T
    weights = -inverse / np.diag(inverse)
    np.fill_diagonal(weights, 0.0)
    return Scorer(train, lambda users, histories: histories @ weights)


def implicit(train: Any, width: int, alpha: float, ridge: float) -> Recommends:
    """Alternating least squares of Hu, Koren and Volinsky by conjugate gradients, 15 iterations."""
    package = library("implicit.cpu.als")
    matrix = sparse.csr_matrix(train, dtype=np.float32)
    settings = {"alpha": alpha, "regularization": ridge, "num_threads": thread_count(), "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that BLAS has threads, too
        model = package.AlternatingLeastSquares(factors=int(width), **settings)
        model.fit(matrix, show_progress=False)

    def score(users: np.ndarray | None, histories: Any) -> np.ndarray:
        if users is not None:
            return model.user_factors[users] @ model.item_factors.T
        numbers = np.arange(histories.shape[0])
        return model.recalculate_user(numbers, sparse.csr_matrix(histories, dtype=np.float32)) @ model.item_factors.T

    return Scorer(train, score)


def irspack(train: Any, width: int, unobserved: float, ridge: float) -> Recommends:
    """The iALS of Rendle et al. by conjugate gradients, 16 epochs, with a ridge in proportion to the frequencies."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of what it imports
        package = library("irspack")
    settings = {"n_components": int(width), "alpha0": unobserved, "reg": ridge, "n_threads": thread_count()}
    with contextlib.redirect_stdout(io.StringIO()):  # it shows its progress
        model = package.IALSRecommender(sparse.csr_matrix(train), **settings).learn()
    items = model.get_item_embedding()

    def score(users: np.ndarray | None, histories: Any) -> np.ndarray:
        if users is not None:
            return model.get_user_embedding()[users] @ items.T
        return model.compute_user_embedding(sparse.csr_matrix(histories)) @ items.T

    return Scorer(train, score)


def ours(train: Any) -> Recommends:
    """Weights and ridge are chosen inside the training part."""
    return bf.Recommender(random_state=0).fit(train)


def grid(**choices: tuple[float, ...]) -> tuple[Settings, ...]:
    return tuple(dict(zip(choices, values, strict=True)) for values in itertools.product(*choices.values()))


WIDTHS = grid(width=(128, 256))

EASE = grid(ridge=(5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 400.0, 800.0, 1600.0))
IMPLICIT = grid(
    width=(64,),
    alpha=(0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0),
    ridge=(0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0),
)
IRSPACK = grid(
    width=(64,),
    unobserved=(0.0125, 0.025, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2),
    ridge=(0.0025, 0.005, 0.01, 0.02, 0.04, 0.08, 0.16),
)

RANKERS = (
    Ranker("bf.Recommender", ours),
    Ranker("EASE", ease, EASE),
    Ranker("implicit ALS", implicit, IMPLICIT, WIDTHS),
    Ranker("irspack iALS", irspack, IRSPACK, WIDTHS),
    Ranker("popularity", popularity),
)
