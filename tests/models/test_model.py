"""What a model is made of: a link, a model of new rows, and a predictive distribution."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy import sparse

import bifactor as bf
from bifactor.data import Observations
from bifactor.errors import InputError
from bifactor.models import Fit, Link, Model, Prediction, PredictiveDistribution, RowModel
from bifactor.models.rows import NewRows, RidgeRows, with_ones

M, N, RANK = 12, 9, 2


@dataclass(frozen=True)
class LeastSquaresRows(RowModel):
    """Rows by the least squares of NumPy, without offsets; nothing of the library is used."""

    def solve(self, x, link, new, side):
        other = (x.right, x.left)[side]
        ours, theirs = (new.rows, new.cols)[::-1] if side else (new.rows, new.cols)
        found = np.zeros((new.shape[side], x.width))
        for k in range(len(found)):
            here = ours == k
            found[k] = np.linalg.lstsq(other[theirs[here]], new.values[here] - link.intercept)[0]
        return NewRows(found)


@dataclass(frozen=True)
class Even(PredictiveDistribution):
    """The same standard deviation everywhere."""

    size: float

    def std(self, i, j):
        return np.full(np.size(i), self.size)

    def interval(self, i, j, level):
        return np.full(np.size(i), -self.size), np.full(np.size(i), self.size)

    def sample(self, rng, i, j, noise, whole):
        return rng.standard_normal(np.size(i)) * self.size

    def of_rows(self, rows):
        return self

    def following(self, rows):
        return self


@pytest.fixture(scope="module")
def fit():
    """A fit whose parts were written here."""
    rng = np.random.default_rng(0)
    U, V = rng.standard_normal((M, RANK)), rng.standard_normal((N, RANK))
    result = bf.solve(bf.Problem("squared", bf.operators.Full((M, N)), (U @ V.T).ravel()), RANK, rng=0)
    link = Link(bf.losses.Squared(), intercept=1.5)
    model = Model(with_ones(U, V, (0, 0)), link, LeastSquaresRows(), result, Even(0.5))
    i, j = np.divmod(np.arange(M * N), N)
    return Fit.of(model, Observations(i, j, model.scores(i, j), (M, N)))


def test_parts_of_ones_own_serve_a_fit(fit):
    i, j = np.array([0, 3]), np.array([1, 2])
    np.testing.assert_allclose(fit.predict(i, j), 1.5 + np.sum(fit.model.U[i] * fit.model.V[j], axis=1))
    low, high = fit.predict_interval(i, j)
    np.testing.assert_allclose([low, high], [[1.0, 1.0], [2.0, 2.0]])
    assert fit.predict(0, 1, return_std=True)[1] == 0.5
    assert fit.at(i, j).sample(3, True, np.random.default_rng(0)).shape == (3, 2)
    columns, scores = fit.recommend([0], n=3, filter_seen=False)
    np.testing.assert_allclose(scores, np.sort(fit.predict(0, np.arange(N)))[::-1][None, :3])
    assert columns.shape == (1, 3)


@pytest.mark.parametrize("side", [0, 1])
def test_rows_and_columns_come_from_the_model_of_rows(fit, side):
    """A row of an exact matrix is found again from some of its entries, also at a new place."""
    model, rng = fit.model, np.random.default_rng(1)
    other = (model.V, model.U)[side]
    line, at = rng.standard_normal(RANK), np.array([0, 2, 5, 7])
    ours, shape = np.zeros(4, int), (1, N) if side == 0 else (M, 1)
    y = other[at] @ line + 1.5
    new = Observations(*((ours, at) if side == 0 else (at, ours)), y, shape)
    count = (M, N)[side] + 2
    longer = model.with_rows(side, count, new, np.array([count - 1]))
    found = (longer.U, longer.V)[side]
    np.testing.assert_allclose(found[-1], line)
    np.testing.assert_array_equal(found[-2], 0)
    np.testing.assert_array_equal(found[:-2], (model.U, model.V)[side])


def test_all_cells_are_those_one_by_one(fit):
    i, j = np.divmod(np.arange(M * N), N)
    whole, single = Prediction(fit.model), Prediction(fit.model, (i, j))
    np.testing.assert_allclose(whole.scores.ravel(), single.scores, rtol=1e-13)
    assert whole.std.shape == whole.interval(0.9)[0].shape == (M, N)
    assert whole.sample(2, False, np.random.default_rng(0)).shape == (2, M, N)


def test_a_ridge_has_no_error_bars_and_says_what_does(fit):
    ridge = replace(fit, model=replace(fit.model, rows=RidgeRows(1.0), predictive=None))
    for ask in (lambda: ridge.predict_interval(0, 1), lambda: ridge.predict(0, 1, return_std=True)):
        with pytest.raises(InputError, match="has a ridge, and error bars need a posterior"):
            ask()


@pytest.mark.parametrize("kind", ["ridge", "posterior", "offsets alone", "clicks", "clicks with items", "features"])
def test_what_is_unknown_is_a_row_without_entries(kind):
    """-1 is predicted like a row that is folded in without entries."""
    rng = np.random.default_rng(2)
    X = np.where(rng.random((40, 15)) < 0.6, rng.integers(1, 6, (40, 15)), np.nan)
    if kind.startswith("clicks"):
        items = {"item_share": 0.3, "item_ridge": 50.0} if "items" in kind else {"item_share": 0.0}
        estimator = bf.Recommender(3, unobserved=0.2, ridge=0.01, random_state=0, **items)
        model = estimator.fit(sparse.csr_array(np.nan_to_num(X) > 3)).model_
    else:
        settings = {"posterior": {"noise": "one"}}.get(kind, {"ridge": 1.0})
        features = {"user_features": rng.standard_normal((40, 2))} if kind == "features" else {}
        rank = 0 if kind == "offsets alone" else 2
        model = bf.MatrixCompletion(rank, random_state=0, **settings, **features).fit(X).model_
    nothing = Observations(np.zeros(0, int), np.zeros(0, int), np.zeros(0), (1, 15))
    j = np.arange(15)
    wanted = model.of_rows(nothing).scores(np.zeros(15, int), j)
    np.testing.assert_allclose(model.scores(np.full(15, -1), j), wanted, rtol=1e-12, atol=1e-12)


def test_a_threshold_travels_with_a_fit(tmp_path):
    """Raw values of a fit to labels above a threshold: scored and folded in as by the estimator, also once loaded."""
    rng = np.random.default_rng(3)
    X = np.where(rng.random((30, 12)) < 0.7, rng.integers(1, 6, (30, 12)), np.nan).astype(float)
    estimator = bf.OneBitCompletion(2, ridge=1.0, binarize=3.0, random_state=0).fit(X)
    estimator.save(tmp_path / "fit")
    i, j = np.nonzero(~np.isnan(X))
    for fit in (estimator.fit_, bf.load(tmp_path / "fit")):
        assert fit.classes.tolist() == [0, 1]
        assert fit.score(i, j, X[i, j]) == pytest.approx(estimator.score((i, j, X[i, j])), rel=1e-12)
        folded = fit.fold_in(X[:3])
        np.testing.assert_array_equal(folded.model.U[-3:, 1:], estimator.transform(X[:3]))


def test_what_is_unknown_costs_no_copy_of_the_factors(fit):
    """Scores of few pairs, some unknown, take the lines of these alone."""
    model = fit.model
    wanted = [model.scores([3], [4])[0], 1.5, 1.5, model.scores([0], [8])[0]]
    np.testing.assert_array_equal(model.scores([3, -1, 2, 0], [4, 1, -1, 8]), wanted)
    assert [len(lines) for lines, _ in (model._lines(np.array([-1, 5, 5]), side) for side in (0, 1))] == [2, 2]
