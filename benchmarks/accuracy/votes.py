"""Binary data and counts, some hidden: losses that fit the data, against squared errors at the same rank.

House votes of 1984 and Senate roll calls of the 90th congress: a fifth of the votes is hidden, and the share of these
that is predicted correctly is shown, against the majority in each column and MatrixCompletion. Counts of genes in blood
cells: a tenth is hidden, and the mean Poisson deviance of these is shown (lower is better), against the mean of each
column times the share of each row, and MatrixCompletion of log(1 + x), turned back and multiplied by the number that
makes the total of what is known right: without that its deviance is 6 to 8 % higher. All choose their ridge. The table
gives means over seeds, and differences to squared errors with their standard errors.
"""

from collections.abc import Callable, Iterator

import numpy as np
from scipy import sparse
from scipy.special import xlogy

from benchmarks.harness.data import arrays
from benchmarks.harness.rows import Row, or_skipped, row
from bifactor.estimators.matrix_completion import MatrixCompletion, OneBitCompletion
from bifactor.estimators.pca import LogisticPCA, PoissonPCA

VOTE_RANKS, COUNT_RANKS = (1, 2, 3, 5), (1, 2, 3, 5, 10)
VOTE_SEEDS, COUNT_SEEDS = 10, 3
FAINTEST = 0.01
"""The least count that squared errors may predict: the deviance of 0 is infinite."""

Scores = dict[str, float]


def votes(name: str) -> np.ndarray:
    """1 for yea, 0 for nay, NaN for neither."""
    stored = arrays(name)["votes"]
    return np.where(stored < 0, np.nan, stored)


def cells() -> np.ndarray:
    stored = arrays("scrna-pbmc-small")
    parts = stored["data"], stored["indices"], stored["indptr"]
    return sparse.csr_array(parts, shape=tuple(stored["shape"])).toarray().astype(float)


def hidden(X: np.ndarray, share: float, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The rest of X, and where it was hidden."""
    rows, cols = np.nonzero(~np.isnan(X))
    chosen = np.random.default_rng(seed).random(rows.size) < share
    rest = X.copy()
    rest[rows[chosen], cols[chosen]] = np.nan
    return rest, rows[chosen], cols[chosen]


def vote_scores(X: np.ndarray, rank: int, seed: int) -> Scores:
    rest, *at = hidden(X, 0.2, seed)
    truth = X[at[0], at[1]] > 0.5
    common = {"n_components": rank, "random_state": seed}
    components = LogisticPCA(**common).fit(rest)
    told = {
        "squared errors": MatrixCompletion(**common).fit(rest).predict(*at),
        "columns alone": np.nanmean(rest, axis=0)[at[1]],
        "completion under the loss": OneBitCompletion(**common).fit(rest).predict(*at),
        "components under the loss": components.inverse_transform(components.transform(rest))[at[0], at[1]],
    }
    return {name: float(np.mean((p > 0.5) == truth)) for name, p in told.items()}


def count_scores(X: np.ndarray, rank: int, seed: int) -> Scores:
    rest, *at = hidden(X, 0.1, seed)
    truth = X[at[0], at[1]]
    common = {"n_components": rank, "random_state": seed}
    components = PoissonPCA(exposure="total", **common).fit(rest)
    rates = components.inverse_transform(components.transform(rest)) * components.exposure_[:, None]
    mean = np.nanmean(rest, axis=0)
    told = {
        "squared errors": from_logarithms(MatrixCompletion(**common).fit(np.log1p(rest)), rest, at),
        "columns alone": components.exposure_[at[0]] * mean[at[1]],
        "completion under the loss": MatrixCompletion(loss="poisson", **common).fit(rest).predict(*at),
        "components under the loss": rates[at[0], at[1]],
    }
    return {name: deviance(truth, np.maximum(p, FAINTEST)) for name, p in told.items()}


def from_logarithms(model: MatrixCompletion, rest: np.ndarray, at: list[np.ndarray]) -> np.ndarray:
    """Counts that a fit to log(1 + x) predicts: the mean of x is more than what the mean of its logarithm says."""
    known = np.nonzero(~np.isnan(rest))
    fitted, told = (np.maximum(np.expm1(model.predict(*places)), FAINTEST) for places in (known, at))
    return told * (rest[known].sum() / fitted.sum())


def deviance(y: np.ndarray, mean: np.ndarray) -> float:
    return float(np.mean(2 * (xlogy(y, y / mean) - y + mean)))


def vote_rows(name: str) -> Iterator[Row]:
    X = votes(name)
    for k in VOTE_RANKS:
        yield from rows("logistic + chosen ridge", f"{name}, r = {k}", "accuracy", vote_scores, X, k, VOTE_SEEDS)


def count_rows() -> Iterator[Row]:
    X = cells()
    for k in COUNT_RANKS:
        yield from rows("Poisson + chosen ridge", f"blood cells, r = {k}", "deviance", count_scores, X, k, COUNT_SEEDS)


def rows(
    objective: str, data: str, score: str, scores: Callable[..., Scores], X: np.ndarray, rank: int, seeds: int
) -> Iterator[Row]:
    for seed in range(seeds):
        for solver, value in scores(X, rank, seed).items():
            yield row(objective, data, solver, draw=seed, **{score: value})


def run() -> Iterator[Row]:
    for name in ("house-votes-84", "senate-90"):
        yield from or_skipped(lambda name=name: vote_rows(name))
    yield from or_skipped(count_rows)
