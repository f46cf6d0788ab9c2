# mypy: warn-return-any
"""A user's code, as `mypy --strict` sees it: nothing public is of type Any. Checked by `make check`, never run."""

import numpy as np
from numpy.typing import NDArray

import bifactor as bf

Numbers = NDArray[np.float64]


def matrix(result: bf.Result) -> Numbers:
    return result.matrix()


def factors(X: Numbers) -> tuple[Numbers, Numbers]:
    problem = bf.Problem(bf.losses.Squared(), *bf.operators.Entries.from_dense(X), penalty=bf.penalties.Ridge(0.1))
    result = bf.solve(problem, 2, bf.solvers.PCG(), rng=0)
    return result.U, result.V


def with_all_cells(problem: bf.Problem) -> Numbers:
    return (problem + bf.all_cells(0.2, rows=np.ones(3))).y


def entries(result: bf.Result) -> Numbers:
    return result.predict(np.array([0]), np.array([1]))


def history(result: bf.Result) -> Numbers:
    return result.history.objective


def predictions(X: Numbers) -> Numbers:
    return bf.MatrixCompletion(n_components=3, random_state=0).fit(X).predict([0], [1])


def filled(X: Numbers) -> Numbers:
    return bf.MatrixCompletion().fit_transform(X)


def scores(X: Numbers) -> Numbers:
    return bf.FactorAnalysis(2).fit(X).transform(X)


def served(folder: str) -> Numbers:
    return bf.load(folder).predict(["ann"], ["casablanca"])


def names(path: str) -> int:
    return len(bf.data.read(path).values)


def ranked(model: bf.MatrixCompletion, split: bf.ranking.Split) -> Numbers:
    found: bf.ranking.Evaluation = bf.ranking.evaluate(model, split, n=(10, 20))
    return found.values["ndcg@10"]


def precise(ids: NDArray[np.int64], rows: NDArray[np.int64], cols: NDArray[np.int64]) -> Numbers:
    return bf.ranking.precision(ids, (rows, cols), 5)


def workflows(ratings: str) -> tuple[Numbers, bf.completion.CompletedMatrix]:
    completed = bf.completion.complete(ratings, holdout=0.1)
    lists = bf.recommender.recommend(completed, ["ann"], 5)
    return lists.rows, completed
