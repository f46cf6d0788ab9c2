"""Rank 0, a fit of offsets alone, is an answer like any other."""

import warnings

import numpy as np
import pytest

import bifactor as bf
from bifactor.errors import InputError
from bifactor.plots import (
    ConvergenceDisplay,
    ImageDisplay,
    ObservedPredictedDisplay,
    SpectrumDisplay,
)

pytestmark = pytest.mark.filterwarnings("error")


def holed(value, shape=(12, 9), dtype=np.float64):
    X = np.full(shape, value, dtype)
    X[np.random.default_rng(0).random(shape) < 0.3] = np.nan
    return X


CONSTANT = {
    "squared": (bf.MatrixCompletion(n_components="auto", random_state=0), 0.1),
    "squared, no offsets": (bf.MatrixCompletion(n_components="auto", offsets=False, random_state=0), 0.0),
    "huber": (bf.MatrixCompletion(n_components="auto", loss="huber", random_state=0), 123456.7),
    "poisson": (bf.MatrixCompletion(n_components="auto", loss="poisson", random_state=0), 3.0),
    "labels": (bf.OneBitCompletion(n_components="auto", random_state=0), 1.0),
    "asked for": (bf.MatrixCompletion(n_components=0, random_state=0), 2.5),
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("case", CONSTANT)
def test_one_value_is_predicted_everywhere(case, dtype, tmp_path):
    model, value = CONSTANT[case]
    X = holed(value, dtype=dtype)
    model.fit(X)
    assert model.n_components_ == 0
    assert model.components_.shape == (0, 9)
    assert model.row_factors_.shape == (12, 0)
    close = {"rtol": 1e-3, "atol": 1e-3}
    np.testing.assert_allclose(model.predict([0, 3], [1, 2]), value, **close)
    np.testing.assert_allclose(model.complete(), value, **close)
    offset = int(model.get_params().get("offsets", True))
    factors = model.transform(X[:4])
    assert factors.shape == (4, offset)
    np.testing.assert_allclose(model.inverse_transform(factors), value, rtol=2e-2, atol=1e-2)
    assert model.score(X) <= 1
    columns, predicted = model.recommend([0, 1], 3, filter_seen=False)
    assert columns.shape == predicted.shape == (2, 3)
    model.partial_fit(X[:2])
    assert model.row_factors_.shape == (14, 0)
    model.save(tmp_path / "fit")
    fit = bf.load(tmp_path / "fit")
    np.testing.assert_array_equal(fit.predict([0, 13], [1, 2]), model.fit_.predict([0, 13], [1, 2]))
    assert fit.fold_in(model.observations_).model.rank == 0


def test_the_value_comes_back_to_the_bit():
    for value in (0.1, 1e-8 / 3, 123456.7):
        for dtype in (np.float32, np.float64):
            model = bf.MatrixCompletion(n_components="auto", random_state=0).fit(holed(value, dtype=dtype))
            assert np.all(model.complete() == dtype(value))


def test_the_imputer_fills_in_the_constant():
    assert np.all(bf.TableImputer(random_state=0).fit_transform(holed(0.1)) == 0.1)


@pytest.mark.parametrize("ridge", [0.5, "auto"])
@pytest.mark.parametrize("loss", ["squared", "huber", "logistic", "poisson"])
def test_offsets_alone_are_those_of_a_ridge_regression(loss, ridge):
    """The problem is convex then, so that another method must find the same."""
    rng = np.random.default_rng(1)
    y = {"logistic": np.where(rng.random((20, 8)) < 0.6, 1.0, -1.0), "poisson": rng.poisson(3.0, (20, 8)).astype(float)}
    X = y.get(loss, rng.standard_normal((20, 8)) + np.arange(8))
    X[rng.random(X.shape) < 0.2] = np.nan
    model = bf.MatrixCompletion(n_components=0, loss=loss, ridge=ridge, tol=1e-9, random_state=0).fit(X)
    assert model.n_components_ == 0
    rows, cols = np.nonzero(~np.isnan(X))
    slope = model.model_.loss.gradient(model.model_.scores(rows, cols), X[rows, cols])
    for side, index, offsets in ((0, rows, model.row_offsets_), (1, cols, model.column_offsets_)):
        total = np.bincount(index, slope, X.shape[side]) + model.offset_ridge_ * offsets
        np.testing.assert_allclose(total, 0, atol=1e-3)


@pytest.mark.parametrize(
    "solver", [None, bf.solvers.PCG(), bf.solvers.Newton(), bf.solvers.RankContinuation(), bf.solvers.Race()]
)
def test_solve_fits_fixed_columns_alone(solver, make_problem):
    plain = make_problem(rank=1)
    problem = bf.Problem(plain.loss, plain.operator, plain.y, penalty=bf.penalties.Ridge(0.1), offsets=True)
    result = bf.solve(problem, 0, solver, rng=0)
    assert result.rank == 2
    assert result.status.converged
    wanted = bf.solve(problem, 0, bf.solvers.PCG(), rng=1, tol=1e-10)
    assert result.objective == pytest.approx(wanted.objective, rel=1e-5)
    assert problem.memory(0).total > 0
    with pytest.raises(InputError, match=r"rank=0 is not possible.*from 1 to 20"):
        bf.solve(plain, 0)


def test_rank_zero_is_drawn():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    for case in ("squared", "squared, no offsets"):
        model, value = CONSTANT[case]
        model.fit(holed(value))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for display in (SpectrumDisplay, ConvergenceDisplay, ObservedPredictedDisplay, ImageDisplay):
                drawn = display.from_estimator(model)
                drawn.figure_.canvas.draw()
                matplotlib.pyplot.close(drawn.figure_)
        assert SpectrumDisplay.from_estimator(model).ax_.get_title() == "rank 0: no components"
        matplotlib.pyplot.close("all")


def test_principal_components_are_at_least_one():
    for estimator in (bf.LogisticPCA(n_components=0), bf.PoissonPCA(n_components=0)):
        with pytest.raises(InputError, match="n_components=0 is not an integer ≥ 1"):
            estimator.fit(np.eye(4))
