"""Recommendations by the mean, by a lower bound, and by a draw."""

import numpy as np
import pandas as pd
import pytest
import scipy

import bifactor as bf
from bifactor.errors import InputError
from bifactor.models import top_k
from bifactor.solvers.variational.posterior import variance_table

SHAPE = (50, 30)


def made(dtype=np.float64, **options):
    rng = np.random.default_rng(0)
    X = 3 + rng.standard_normal((SHAPE[0], 2)) @ rng.standard_normal((2, SHAPE[1]))
    chance = np.linspace(0.05, 0.8, SHAPE[1])  # the first columns are hardly known
    table = np.where(rng.random(SHAPE) < chance, X + 0.5 * rng.standard_normal(SHAPE), np.nan).astype(dtype)
    return bf.MatrixCompletion(**{"n_components": 3, "noise": "one", "random_state": 0} | options).fit(table)


@pytest.fixture(scope="module")
def fitted():
    return made()


def bounds(model, level):
    """By the posterior of single entries."""
    i, j = np.indices(SHAPE).reshape(2, -1)
    std = model.result_.posterior.std(i, j)
    return (model.decision_function(i, j) - scipy.special.ndtri(level) * std).reshape(SHAPE)


@pytest.mark.parametrize("block", [top_k.SCORES_PER_BLOCK, 70])
@pytest.mark.parametrize("level", [0.9, 0.5, 0.1])
def test_lower_bounds_are_those_of_single_entries(fitted, level, block, monkeypatch):
    monkeypatch.setattr(top_k, "SCORES_PER_BLOCK", block)
    columns, told = fitted.recommend(n=SHAPE[1], by="lower", level=level, filter_seen=False)
    expected = bounds(fitted, level)
    np.testing.assert_allclose(told, -np.sort(-expected, axis=1), rtol=1e-9)
    np.testing.assert_allclose(np.take_along_axis(expected, columns, axis=1), told, rtol=1e-9)


def test_at_one_half_it_is_the_mean(fitted):
    for one, other in zip(fitted.recommend(by="lower", level=0.5), fitted.recommend(), strict=True):
        np.testing.assert_array_equal(one, other)


def test_safe_columns_come_first(fitted):
    known = np.bincount(fitted.observations_.cols, minlength=SHAPE[1])
    means = [
        known[fitted.recommend(n=3, by="lower", level=level, filter_seen=False)[0]].mean()
        for level in (0.01, 0.5, 0.99)
    ]
    assert means == sorted(means)
    assert means[0] < means[2]


def test_filters_hold_for_every_order(fitted):
    data = fitted.observations_
    seen = set(zip(data.rows.tolist(), data.cols.tolist(), strict=True))
    for by in ("mean", "lower", "draw"):
        columns, told = fitted.recommend([3, 4], 5, by=by, random_state=0, items=np.arange(20))
        assert not seen & {(row, col) for row, line in zip((3, 4), columns.tolist(), strict=True) for col in line}
        assert columns.max() < 20
        assert np.all(np.diff(told, axis=1) <= 0)


def test_draws_are_draws_of_the_posterior(fitted):
    i, j = np.indices(SHAPE).reshape(2, -1)
    drawn = np.zeros((400, SHAPE[1]))
    for seed in range(400):
        columns, told = fitted.recommend([7], SHAPE[1], by="draw", random_state=seed, filter_seen=False)
        drawn[seed, columns[0]] = told[0]
    mean = fitted.decision_function(i, j).reshape(SHAPE)[7]
    std = fitted.result_.posterior.std(i, j).reshape(SHAPE)[7]
    assert np.all(np.abs(drawn.mean(axis=0) - mean) < 5 * std / 20)
    np.testing.assert_allclose(drawn.std(axis=0), std, rtol=0.2)


def test_one_seed_one_draw(fitted):
    first, again, other = (fitted.recommend([2, 5, 2], by="draw", random_state=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first[1], again[1])
    np.testing.assert_array_equal(first[0][0], first[0][2])
    assert not np.array_equal(first[1], other[1])


def test_single_precision_stays():
    model = made(np.float32)
    for by in ("mean", "lower", "draw"):
        assert model.recommend([0], by=by)[1].dtype == np.float32


def test_after_new_rows_and_from_folders(fitted, tmp_path):
    data = fitted.observations_
    frame = pd.DataFrame({"user": [f"u{k}" for k in data.rows], "item": data.cols, "rating": data.values})
    named = bf.MatrixCompletion(n_components=3, noise="one", random_state=0).fit_long(frame)
    named.save(tmp_path / "fit")
    new = pd.DataFrame(
        {"user": ["zoe"] * 6, "item": [25, 26, 27, 28, 29, 24], "rating": [5.0, 1.0, 2.0, 6.0, 3.0, 3.0]}
    )
    fit = bf.load(tmp_path / "fit").fold_in(bf.data.read(new))
    columns, lower = fit.recommend(["zoe", "u3"], 4, by="lower", level=0.8)
    below = fit.predict(np.repeat(["zoe", "u3"], 4), columns.ravel()).reshape(2, 4)
    assert np.all(lower < below)
    named.partial_fit_long(new)
    np.testing.assert_allclose(named.recommend(["zoe", "u3"], 4, by="lower", level=0.8)[1], lower)
    assert fit.recommend(["zoe"], 4, by="draw", random_state=0)[0].shape == (1, 4)
    named.save(tmp_path / "means", error_bars=False)
    means = bf.load(tmp_path / "means")
    assert means.recommend(["zoe"], 4)[0].shape == (1, 4)
    for by in ("lower", "draw"):
        with pytest.raises(InputError, match="Only the means"):
            means.recommend(["zoe"], 4, by=by)


@pytest.mark.parametrize("by", ["lower", "draw"])
def test_a_ridge_has_no_doubts(by):
    with pytest.raises(InputError, match=f"by='{by}' needs a posterior, but this fit has a ridge"):
        made(ridge=1.0, noise="auto").recommend(by=by)


@pytest.mark.parametrize("level", [0, 1, -0.5, np.nan, True, "0.9", None])
def test_levels_that_are_refused(fitted, level):
    with pytest.raises(InputError, match="is not between 0 and 1"):
        fitted.recommend(by="lower", level=level)


@pytest.mark.parametrize("by", ["upper", None, 1, ["mean"]])
def test_orders_that_are_refused(fitted, by):
    with pytest.raises(InputError, match="Pass one of 'mean', 'lower', 'draw'"):
        fitted.recommend(by=by)


def test_nobody_and_rank_zero(fitted):
    none = made(n_components=0)
    for by in ("mean", "lower", "draw"):
        assert fitted.recommend(np.array([], int), by=by)[0].shape == (0, 10)
        assert none.recommend([1], 3, by=by, random_state=0)[0].shape == (1, 3)


def test_the_table_of_variances_is_that_of_single_entries(fitted):
    posterior = fitted.result_.posterior
    i, j = np.indices(SHAPE).reshape(2, -1)
    np.testing.assert_allclose(variance_table(posterior.rows, posterior.cols).ravel(), posterior.std(i, j) ** 2)
