"""Counts of genes in single cells: components under a likelihood, against those of log(1 + x), by two protocols.

Thinning: of each count four fifths are kept, by a binomial draw, and the rest is to be predicted: the mean Poisson
deviance of the rest is shown, and the mean negative log-likelihood under a negative binomial of the best dispersion
(lower is better for both). Predictions of all methods are scaled to the right total. Neighbours: the genes are split in
halves, and the 50 nearest neighbours of each cell by the scores of one half are compared with those of the other; their
number in common is shown (higher is better). All but log(1 + x), which has nothing to choose, choose their ridge. Cells
with fewer than 200 counts, and genes seen in fewer than 10 cells, are left out. The table gives means over seeds.
"""

from collections.abc import Callable, Iterator

import numpy as np
from scipy import sparse
from scipy.special import xlogy
from scipy.stats import nbinom
from sklearn.decomposition import PCA
from sklearn.neighbors import NearestNeighbors

from benchmarks.harness.data import arrays
from benchmarks.harness.rows import Row, or_skipped, row
from bifactor.estimators.pca import PoissonPCA
from bifactor.losses import NegativeBinomial

SETS = {"scrna-pbmc-small": "blood cells", "scrna-intestine": "intestine cells"}
RANKS, SEEDS, KEPT, NEIGHBOURS = (5, 10), 3, 0.8, 50
FEWEST_COUNTS, FEWEST_CELLS = 200, 10
FAINTEST = 0.01
"""The least count that log(1 + x) may predict: the deviance of 0 is infinite."""

Told = tuple[np.ndarray, np.ndarray]
"""Scores of cells, and the counts they predict."""


def cells(name: str) -> np.ndarray:
    stored = arrays(name)
    parts = stored["data"], stored["indices"], stored["indptr"]
    X = sparse.csr_array(parts, shape=tuple(stored["shape"])).toarray()
    X = X[X.sum(axis=1) >= FEWEST_COUNTS]
    return X[:, (X > 0).sum(axis=0) >= FEWEST_CELLS]


def depth(X: np.ndarray) -> np.ndarray:
    """The total of each cell beside the average one, as a column."""
    total = np.maximum(X.sum(axis=1, keepdims=True), 0.5)
    return total / total.mean()


def columns_alone(X: np.ndarray, rank: int, seed: int) -> Told:
    return np.zeros((len(X), 1)), depth(X) * X.mean(axis=0)


def logarithms(X: np.ndarray, rank: int, seed: int) -> Told:
    logs, pca = np.log1p(X / depth(X)), PCA(rank, random_state=seed)
    scores = pca.fit_transform(logs)
    return scores, depth(X) * np.maximum(np.expm1(pca.inverse_transform(scores)), FAINTEST)


def poisson(X: np.ndarray, rank: int, seed: int, dispersion: float | str = 0.0) -> Told:
    pca = PoissonPCA(rank, exposure="total", dispersion=dispersion, random_state=seed)
    scores = pca.fit_transform(sparse.csr_array(X.astype(np.float32)))
    return scores, pca.exposure_[:, None] * pca.inverse_transform(scores)


def negative_binomial(X: np.ndarray, rank: int, seed: int) -> Told:
    return poisson(X, rank, seed, "auto")


METHODS: dict[str, Callable[[np.ndarray, int, int], Told]] = {
    "log(1 + x), PCA": logarithms,
    "columns alone": columns_alone,
    "PoissonPCA": poisson,
    "PoissonPCA, dispersion": negative_binomial,
}


def thinned(X: np.ndarray, method: Callable[..., Told], rank: int, seed: int) -> dict[str, float]:
    kept = np.random.default_rng(seed).binomial(X.astype(np.int64), KEPT)
    rest, told = X - kept, method(kept, rank, seed)[1].astype(np.float64)
    mean = told * (rest.sum() / told.sum())
    theta = NegativeBinomial().refit(np.log(mean).ravel(), rest.ravel().astype(np.float64), None).theta
    return {
        "deviance": float(np.mean(2 * (xlogy(rest, rest / mean) - rest + mean))),
        "nb_loss": -float(np.mean(nbinom.logpmf(rest, theta, theta / (theta + mean)))),
    }


def shared_neighbours(X: np.ndarray, method: Callable[..., Told], rank: int, seed: int) -> float:
    order = np.random.default_rng(seed).permutation(X.shape[1])
    halves = order[::2], order[1::2]
    near = [neighbours(method(X[:, half], rank, seed)[0]) for half in halves]
    return float(np.mean([np.intersect1d(a, b).size for a, b in zip(*near, strict=True)]))


def neighbours(scores: np.ndarray) -> np.ndarray:
    return NearestNeighbors(n_neighbors=NEIGHBOURS).fit(scores).kneighbors(return_distance=False)


def rows(name: str) -> Iterator[Row]:
    X = cells(name)
    for rank in RANKS:
        for seed in range(SEEDS):
            for solver, method in METHODS.items():
                numbers = thinned(X, method, rank, seed)
                if method is not columns_alone:
                    numbers["shared"] = shared_neighbours(X, method, rank, seed)
                yield row("counts", f"{SETS[name]}, r = {rank}", solver, draw=seed, **numbers)


def run() -> Iterator[Row]:
    for name in SETS:
        yield from or_skipped(lambda name=name: rows(name))
