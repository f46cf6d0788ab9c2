"""Plots: what they draw, and what they say where there is nothing to draw."""

import sys

import matplotlib as mpl
import numpy as np
import pytest

import bifactor as bf
from bifactor.errors import BifactorError, InputError
from bifactor.estimators.matrix_completion import MatrixCompletion
from bifactor.plots import (
    ConvergenceDisplay,
    ImageDisplay,
    ObservedPredictedDisplay,
    ScreeDisplay,
    SearchDisplay,
    SpectrumDisplay,
)

DISPLAYS = (ConvergenceDisplay, ImageDisplay, ObservedPredictedDisplay, SearchDisplay, SpectrumDisplay)


@pytest.fixture(autouse=True)
def without_a_screen():
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    yield
    plt.close("all")


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 2)) @ rng.standard_normal((2, 30)) + 0.1 * rng.standard_normal((40, 30))
    return np.where(rng.random(X.shape) < 0.6, X, np.nan)


@pytest.fixture(scope="module")
def fit(table):
    return MatrixCompletion(n_components=3, ridge="auto", random_state=0).fit(table)


@pytest.fixture(scope="module")
def result(table):
    problem = bf.Problem(bf.losses.Squared(), *bf.operators.Entries.from_dense(table, ~np.isnan(table)))
    return bf.solve(problem, "auto", rng=0)


@pytest.mark.parametrize("display", DISPLAYS)
def test_each_is_drawn_from_a_result_and_from_an_estimator(display, fit, result, tmp_path):
    for drawn in (display.from_result(result), display.from_estimator(fit)):
        assert np.atleast_1d(drawn.ax_).flat[0].figure is drawn.figure_
        drawn.figure_.savefig(tmp_path / "plot.png")
        assert (tmp_path / "plot.png").stat().st_size > 5000


@pytest.mark.parametrize("display", [ConvergenceDisplay, ObservedPredictedDisplay, SearchDisplay, SpectrumDisplay])
def test_the_axes_passed_are_used(display, fit):
    from matplotlib import pyplot as plt

    figure, ax = plt.subplots()
    drawn = display.from_estimator(fit, ax=ax)
    assert drawn.ax_ is ax
    assert drawn.figure_ is figure
    assert ax.has_data()
    assert ax.get_xlabel()
    assert ax.get_ylabel()


def test_convergence_is_the_history(result):
    drawn = ConvergenceDisplay.from_result(result, against="seconds")
    x, y = drawn.ax_.lines[0].get_data()
    np.testing.assert_array_equal(x, result.history.seconds)
    np.testing.assert_array_equal(y, result.history.objective)
    with pytest.raises(InputError, match="neither 'iterations' nor 'seconds'"):
        drawn.plot(against="hours")


def test_spectrum_is_that_of_the_matrix_and_sees_imbalance(result):
    expected = np.linalg.svd(result.matrix(), compute_uv=False)[: result.rank]
    U, V = bf.metrics.balanced(result.U, result.V)
    even, uneven = SpectrumDisplay.from_factors(U, V), SpectrumDisplay.from_factors(10 * U, V / 10)
    for drawn in (even, uneven):
        np.testing.assert_allclose(drawn.singular_values, expected)
    np.testing.assert_allclose(even.left, expected)
    assert even.imbalance < 1e-10
    assert uneven.imbalance == pytest.approx(100 - 0.01)


def test_offsets_are_no_part_of_an_estimators_spectrum(fit):
    X = fit.row_factors_ @ fit.components_
    np.testing.assert_allclose(
        SpectrumDisplay.from_estimator(fit).singular_values, np.linalg.svd(X, compute_uv=False)[:3], atol=1e-10
    )


def test_paths_show_what_was_chosen(fit, result):
    ridge, rank = SearchDisplay.from_estimator(fit), SearchDisplay.from_result(result)
    assert (ridge.search, rank.search) == (fit.ridge_search_, result.rank_search)
    assert (ridge.ax_.get_xlabel(), rank.ax_.get_xlabel()) == ("ridge", "rank")
    for drawn, chosen in ((ridge, fit.ridge_), (rank, result.rank)):
        assert drawn.ax_.lines[-1].get_xdata() == [chosen, chosen]
        assert drawn.ax_.get_ylabel() == "held-out loss"


def test_candidates_that_are_no_numbers_are_numbered():
    search = bf.Search("noise", {"noise": np.array(["one", "both"])}, np.array([0.2, 0.1]), 1)
    drawn = SearchDisplay.from_search(search)
    assert drawn.ax_.get_xlabel() == "candidate"
    assert drawn.ax_.lines[-1].get_xdata() == [2, 2]
    assert drawn.ax_.get_legend().get_texts()[-1].get_text() == "chosen: noise both"


def test_a_ridge_of_zero_has_a_place():
    drawn = SearchDisplay(bf.Search("ridge", {"ridge": np.array([1.0, 0.1, 0.0])}, np.ones(3), 2, np.zeros(3))).plot()
    assert drawn.ax_.get_xscale() == "symlog"
    assert drawn.ax_.get_xlim()[0] < 0


def test_images_side_by_side(fit, table):
    drawn = ImageDisplay.from_estimator(fit, truth=np.nan_to_num(table))
    assert [ax.get_title() for ax in drawn.ax_] == ["known", "completed", "original"]
    np.testing.assert_array_equal(drawn.before, table)
    assert not np.isnan(drawn.after).any()
    colour = np.random.default_rng(0).random((6, 5, 3))
    holes = colour.copy()
    holes[2, 3] = np.nan
    shown = ImageDisplay(holes, colour).plot().ax_[0].images[0].get_array()
    assert shown.shape == (6, 5, 3)
    assert np.isfinite(np.asarray(shown)).all()
    with pytest.raises(InputError, match="Pass one for each picture"):
        drawn.plot(drawn.ax_[:2])
    with pytest.raises(InputError, match="equal shape"):
        ImageDisplay(table, table[1:])


def test_many_pairs_are_drawn_as_a_density():
    y = np.random.default_rng(0).standard_normal(3000)
    few, many = (ObservedPredictedDisplay.from_predictions(y[:k], y[:k] + 1) for k in (100, 3000))
    assert len(few.ax_.collections[0].get_offsets()) == 100
    assert len(many.ax_.collections[0].get_array().ravel()) == 6400
    assert "RMSE 1" in many.ax_.get_title()
    with pytest.raises(InputError, match="Pass pairs"):
        ObservedPredictedDisplay(y, y[1:])


def test_nothing_to_draw_is_said(table, result):
    given = MatrixCompletion(n_components=2, ridge=1.0).fit(table)
    with pytest.raises(InputError, match="ridge='auto'"):
        SearchDisplay.from_estimator(given)
    with pytest.raises(InputError, match="rank='auto'"):
        SearchDisplay.from_result(given.result_)
    with pytest.raises(InputError, match="Fit it first"):
        ConvergenceDisplay.from_estimator(MatrixCompletion())
    full = bf.solve(bf.Problem(bf.losses.Squared(), bf.operators.Full((5, 4)), np.ones((5, 4))), 1, rng=0)
    with pytest.raises(InputError, match="completion problem"):
        ImageDisplay.from_result(full)


@pytest.mark.parametrize("display", DISPLAYS)
def test_without_matplotlib_the_extra_is_named(display, result, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(BifactorError, match=r"bifactor\[plot\]"):
        display.from_result(result)


def test_what_each_component_explains_is_drawn():
    X = np.random.default_rng(0).poisson(2.0, (30, 12))
    model = bf.PoissonPCA(3, ridge=1.0, random_state=0).fit(X)
    drawn = ScreeDisplay.from_estimator(model)
    assert [bar.get_height() for bar in drawn.ax_.patches] == pytest.approx(model.explained_deviance_ratio_)
    assert drawn.ax_.lines[0].get_ydata()[-1] == pytest.approx(model.explained_deviance_ratio_.sum())
    with pytest.raises(InputError, match="Fit it first"):
        ScreeDisplay.from_estimator(bf.PoissonPCA())
