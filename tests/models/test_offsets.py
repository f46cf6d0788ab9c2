"""Offsets with a ridge of their own: no unit matters, and offsets alone are among the candidates."""

from dataclasses import replace

import numpy as np
import pytest

import bifactor as bf
from bifactor.data import Observations
from bifactor.estimators import MatrixCompletion, OneBitCompletion
from bifactor.losses import Huber, Logistic, Poisson, Squared
from bifactor.models import hyperparameters
from bifactor.models.completion.fitting import best_constant, fit_constant
from bifactor.models.completion.offsets import (
    offset_scale,
    penalty,
    root_of,
    scale_fixed_columns,
    unscale_fixed_columns,
    with_scale,
)
from bifactor.operators import Entries
from bifactor.running.search import Trials

ROUNDING = {"rtol": 0, "atol": 1e-9}
"""Differences of predictions of size 1: rounding, a hundred iterations later."""


def table(seed=0, shape=(45, 30), components=0.7, known=0.5, noise=0.4):
    """A matrix of numbers with offsets and two components, and what is known of it."""
    rng = np.random.default_rng(seed)
    truth = 3 + rng.standard_normal((shape[0], 1)) + 2 * rng.standard_normal((1, shape[1]))
    truth = truth + components * rng.standard_normal((shape[0], 2)) @ rng.standard_normal((2, shape[1]))
    return truth, np.where(rng.random(shape) < known, truth + noise * rng.standard_normal(shape), np.nan)


def error(model, truth, X):
    return float(np.sqrt(np.mean((model.complete() - truth)[np.isnan(X)] ** 2)))


CASES = {
    "ridge": {"ridge": "auto", "n_components": 4},
    "rank and ridge": {"ridge": "auto", "n_components": "auto"},
    "huber": {"loss": "huber", "n_components": 4},
    "pattern": {"ridge": "auto", "n_components": 3, "implicit_features": True},
    "offsets alone": {"ridge": "auto", "n_components": 0},
    "no offsets": {"ridge": "auto", "n_components": 3, "offsets": False},
}


@pytest.mark.parametrize("unit", [1e-6, 7.0, 1e6])
@pytest.mark.parametrize("case", CASES)
def test_the_unit_of_numbers_does_not_matter(case, unit):
    _, X = table()
    one, other = (MatrixCompletion(random_state=0, **CASES[case]).fit(c * X) for c in (1, unit))
    assert other.n_components_ == one.n_components_
    np.testing.assert_allclose(other.complete() / unit, one.complete(), **ROUNDING)
    assert other.ridge_ == pytest.approx(unit * one.ridge_, rel=1e-9)
    if case == "no offsets":
        assert one.offset_ridge_ is None
    else:
        assert other.offset_ridge_ == pytest.approx(one.offset_ridge_, rel=1e-9)
    if case == "huber":
        assert other.model_.loss.delta == pytest.approx(unit * one.model_.loss.delta, rel=1e-9)
    rows = np.where(np.random.default_rng(1).random((5, X.shape[1])) < 0.7, X[:5], np.nan)
    first, second = (model.inverse_transform(model.transform(c * rows)) / c for model, c in ((one, 1), (other, unit)))
    np.testing.assert_allclose(second, first, **ROUNDING)


@pytest.mark.parametrize(("loss", "same"), [("squared", "squared"), ("huber", "huber"), (Huber(0.7), Huber(0.7e5))])
def test_a_given_ridge_has_the_unit_of_numbers(loss, same):
    _, X = table()
    one = MatrixCompletion(n_components=3, loss=loss, ridge=2.0, random_state=0).fit(X)
    other = MatrixCompletion(n_components=3, loss=same, ridge=2e5, random_state=0).fit(1e5 * X)
    np.testing.assert_allclose(other.complete() / 1e5, one.complete(), **ROUNDING)
    assert (one.ridge_, other.ridge_) == (2.0, 2e5)
    if loss == "squared":
        assert one.offset_ridge_ == pytest.approx(2 / np.nanstd(X), rel=1e-9)


def test_a_given_delta_is_that_of_the_loss():
    _, X = table()
    assert MatrixCompletion(n_components=2, loss=Huber(0.3), random_state=0).fit(X).model_.loss == Huber(0.3)


def test_the_delta_of_huber_is_that_of_the_noise():
    """δ is 1.345 standard deviations for normal noise, whatever a tenth of the entries are."""
    for size in (0.0, 1e3):
        _, X = table(shape=(90, 60), noise=0.5)
        rng = np.random.default_rng(1)
        X = X + np.where(rng.random(X.shape) < 0.1, size * rng.standard_normal(X.shape), 0)
        model = MatrixCompletion(n_components=2, loss="huber", random_state=0).fit(X)
        assert 0.6 < model.model_.loss.delta / (1.345 * 0.5) < 2.5


def test_units_do_not_matter_in_single_precision():
    """Exactly for powers of two, which change no digit; other units round the numbers, so another ridge may be best."""
    truth, X = table()

    def fitted(c):
        model = MatrixCompletion(n_components=3, ridge="auto", random_state=0).fit((c * X).astype(np.float32))
        path = model.ridge_search_
        return error(model, c * truth, X) / c, path.score.min() / c**2, path.standard_error.max() / c**2

    first, loss, spread = fitted(1)
    for c in (2.0**-20, 2.0**20):
        assert fitted(c)[0] == pytest.approx(first, rel=1e-6)
    for c in (1e-6, 1e6):
        assert fitted(c)[1] == pytest.approx(loss, abs=spread)


def values(loss, X):
    """The same matrix as labels or counts, if the loss wants these."""
    kinds = {"logistic": lambda: np.where(X > 3, 1.0, -1.0), "poisson": lambda: np.round(np.exp(X / 3))}
    return np.where(np.isnan(X), np.nan, kinds[loss]()) if loss in kinds else X


@pytest.mark.parametrize("loss", ["squared", "huber", "logistic", "poisson"])
def test_a_constant_times_the_weights_does_not_matter(loss):
    X = values(loss, table()[1])
    weights = np.random.default_rng(2).uniform(0.5, 2, X.shape[0])
    settings = {"n_components": 3, "loss": loss, "ridge": "auto", "random_state": 0}
    one, other = (MatrixCompletion(**settings).fit(X, sample_weight=c * weights) for c in (1, 1e3))
    for name in ("ridge_", "offset_ridge_"):
        assert getattr(other, name) == pytest.approx(1e3 * getattr(one, name), rel=1e-9)
    np.testing.assert_allclose(other.complete(), one.complete(), rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("loss", ["squared", "logistic", "poisson"])
def test_the_fit_is_stationary_under_both_ridges(loss):
    X = values(loss, table(shape=(30, 25))[1])
    model = MatrixCompletion(n_components=2, loss=loss, ridge="auto", tol=1e-12, max_iter=5000, random_state=0).fit(X)
    i, j = np.nonzero(~np.isnan(X))
    G = np.zeros(X.shape)
    G[i, j] = model.model_.loss.gradient(model.model_.scores(i, j), X[i, j])
    U, V, size = model.row_factors_, model.components_.T, np.abs(G).sum(axis=1).max()
    for slopes, own, other, b in ((G, U, V, model.row_offsets_), (G.T, V, U, model.column_offsets_)):
        np.testing.assert_allclose(slopes.sum(axis=1) + model.offset_ridge_ * b, 0, atol=0.02 * size)
        np.testing.assert_allclose(slopes @ other + model.ridge_ * own, 0, atol=0.02 * size)


def labels(seed):
    """Sparse labels with large offsets of rows and columns and weak components, as in votes: known, and others."""
    rng, shape = np.random.default_rng(seed), (400, 300)
    z = 1.5 * rng.standard_normal((shape[0], 1)) + 1.5 * rng.standard_normal((1, shape[1])) + 1
    z = z + 0.4 * rng.standard_normal((shape[0], 1)) @ rng.standard_normal((1, shape[1]))
    y = np.where(rng.random(shape) < 1 / (1 + np.exp(-z)), 1.0, -1.0)
    i, j = np.nonzero(rng.random(shape) < 0.08)
    known = rng.random(i.size) < 0.8
    return (i[known], j[known], y[i, j][known]), (i[~known], j[~known], y[i, j][~known])


@pytest.mark.parametrize("seed", range(2))
def test_labels_are_predicted_no_worse_than_by_offsets_alone(seed):
    train, (i, j, y) = labels(seed)
    loss = []
    for components in (10, 0):
        model = OneBitCompletion(n_components=components, random_state=0).fit(train)
        loss.append(float(np.mean(np.logaddexp(0, -y * model.decision_function(i, j)))))
    assert loss[0] < 1.01 * loss[1]


@pytest.mark.parametrize("rank", ["auto", 10])
def test_numbers_are_predicted_about_as_well_as_by_offsets_alone(rank):
    """Where there is nothing else, and a tenth of 1,200 entries decides."""
    errors = {rank: 0.0, 0: 0.0}
    for seed in range(3):
        truth, X = table(seed, shape=(120, 40), components=0.0, known=0.25, noise=0.8)
        for own in errors:
            errors[own] += error(MatrixCompletion(n_components=own, ridge="auto", random_state=0).fit(X), truth, X)
    assert errors[rank] < 1.15 * errors[0]


def problem(loss="squared", scale=4.0, shape=(60, 40)):
    _, X = table(shape=shape)
    i, j = np.nonzero(~np.isnan(X))
    plain = bf.Problem(loss, Entries(i, j, X.shape), X[i, j] - 3, offsets=True)
    return plain, with_scale(plain, scale)


def test_scaled_factors_are_those_of_the_same_matrix():
    """And their ridge is that of offsets with scale times the weight."""
    plain, wide = problem()
    rng = np.random.default_rng(0)
    x = plain.kind.pair(rng.standard_normal((60, 5)), rng.standard_normal((40, 5)))
    x.left[:, 0], x.right[:, 1] = 1, 1
    U, V = scale_fixed_columns(wide, x.left, x.right)
    y = wide.kind.pair(U, V)
    np.testing.assert_array_equal(U[:, 0], 2)
    np.testing.assert_allclose(U @ V.T, x.left @ x.right.T, rtol=1e-12, atol=1e-12)
    back = unscale_fixed_columns(y)
    np.testing.assert_array_equal(back.left, x.left)
    np.testing.assert_array_equal(back.right, x.right)
    ridge = penalty(3.0, 0.6)
    free = (x.left[:, 2:] ** 2).sum() + (x.right[:, 2:] ** 2).sum()
    offsets = (x.left[:, 1] ** 2).sum() + (x.right[:, 0] ** 2).sum()
    constant = 0.6 / 2 * 4 * (60 + 40)
    assert ridge.value(y) == pytest.approx(3 / 2 * free + 0.6 / 2 / 4 * offsets + constant)
    assert penalty(0.0, 0.0) is None


def test_the_spread_is_that_of_numbers():
    plain, _ = problem()
    assert offset_scale(plain, Squared()) == pytest.approx(np.mean(plain.y**2) ** 0.5)
    assert offset_scale(plain.reweighted(np.full(plain.y.size, 5.0)), Squared()) == pytest.approx(
        offset_scale(plain, Squared())
    )
    assert offset_scale(plain, Logistic()) == 1
    assert root_of(with_scale(plain, 9.0)) == 3


def test_offsets_alone_are_the_first_of_a_path():
    """Their ridge is that of the best fit without components, and the ridge of the path falls from where X = 0."""
    given = with_scale(problem()[0], 2.0)
    holdout = hyperparameters.hold_out(given, np.random.default_rng(0))
    family = hyperparameters._offsets_alone(holdout, Trials())
    search = hyperparameters._searched(holdout, family, [4], False, Trials()).search
    assert search["ridge"][0] == family.first
    assert np.all(np.diff(search["ridge"]) < 0)
    alone = holdout.losses(family.start.left, family.start.right)
    assert search.score[0] == pytest.approx(holdout.mean(alone))
    for factor in (hyperparameters.OFFSET_FACTOR, 1 / hyperparameters.OFFSET_FACTOR):
        ridge = bf.penalties.Ridge(factor * family.offset_ridge)
        other = bf.solve(holdout.train.penalized(ridge), 0, rng=0)
        assert holdout.mean(holdout.losses(other.U, other.V)) >= search.score[0] * (1 - 1e-4)


def test_the_ridge_of_offsets_is_chosen_only_if_it_is_clearly_better():
    given = with_scale(problem()[0], 2.0)
    holdout, start = hyperparameters.hold_out(given, np.random.default_rng(0)), given.zero(0)
    common = hyperparameters.Family(bf.penalties.Ridge, start, hyperparameters.largest_ridge(given, start))
    one = hyperparameters._searched(holdout, common, [4], False, Trials())
    start = hyperparameters._offsets_alone(holdout, Trials()).start
    alone = holdout.losses(start.left, start.right)
    for losses, own in ((one.losses + 1, True), (one.losses - 1, False), (alone, True)):
        found = hyperparameters._with_own_ridge(holdout, replace(one, losses=losses), [4], Trials())
        assert (found.offset_ridge is not None) == own


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("loss", [Huber(0.01), Huber(1.0), Huber(30.0)])
def test_the_constant_is_a_minimum_in_every_unit(loss, unit):
    rng = np.random.default_rng(0)
    y = unit * np.concatenate([rng.standard_normal(200), 50 + rng.standard_normal(30), [1e4]])
    data = Observations(np.zeros(y.size, int), np.arange(y.size), y, (1, y.size))
    a = fit_constant(data, Huber(unit * loss.delta))
    slopes = Huber(unit * loss.delta).gradient(a + unit * 1e-6 * np.array([[-1.0], [1.0]]), y).sum(axis=1)
    assert slopes[0] <= 1e-9 * unit * y.size
    assert slopes[1] >= -1e-9 * unit * y.size


@pytest.mark.parametrize(("loss", "y"), [(Logistic(), [1.0] * 9), (Logistic(), [-1.0] * 9), (Poisson(), [0.0] * 9)])
def test_a_constant_at_infinity_ends_at_the_limit(loss, y):
    data = Observations(np.zeros(9, int), np.arange(9), np.array(y), (1, 9))
    assert abs(fit_constant(data, loss)) == pytest.approx(20.0)
    counts = Observations(np.zeros(9, int), np.arange(9), np.full(9, 1e6), (1, 9))
    assert fit_constant(counts, Poisson()) == pytest.approx(np.log(1e6))


def test_a_constant_is_found_where_newton_steps_go_astray():
    """The slope of Σ arctan-like losses is flat far away, and its curvature nearly 0."""
    found = best_constant(
        lambda a: (float(np.arctan(100 * (a - 0.3))), 100 / (1 + 1e4 * (a - 0.3) ** 2)), -5.0, (-9, 9)
    )
    assert found == pytest.approx(0.3, abs=1e-9)


def test_a_saved_fit_has_both_ridges(tmp_path):
    train, _ = labels(0)
    model = OneBitCompletion(n_components=2, random_state=0).fit(train)
    assert model.offset_ridge_ < 0.5 * model.ridge_
    model.save(tmp_path / "fit")
    fit = bf.load(tmp_path / "fit")
    assert (fit.model.ridge, fit.model.offset_ridge) == (model.ridge_, model.offset_ridge_)
    rows = np.full((3, 300), np.nan)
    rows[:, ::9] = np.where(np.random.default_rng(0).random((3, 34)) < 0.7, 1.0, 0.0)
    i, j = np.nonzero(~np.isnan(rows))
    new = Observations(i, j, 2 * rows[i, j] - 1, rows.shape)
    np.testing.assert_array_equal(fit.model.rows(new), model.model_.rows(new))


def test_a_new_row_has_the_ridges_of_the_fit():
    """A row of the fit that is folded in again is found again, as its factors minimise the same function."""
    _, X = table(shape=(80, 30), components=0.4, known=0.3)
    model = MatrixCompletion(n_components=2, ridge="auto", tol=1e-12, max_iter=5000, random_state=0).fit(X)
    np.testing.assert_allclose(model.transform(X)[:, 0], model.row_offsets_, atol=0.02)
    np.testing.assert_allclose(model.transform(X)[:, 1:], model.row_factors_, atol=0.02)


def test_a_warm_start_continues_from_the_same_matrix():
    _, X = table()
    model = MatrixCompletion(n_components=3, ridge=1.0, warm_start=True, tol=1e-9, random_state=0).fit(X)
    before, first = model.complete(), model.n_iter_
    model.fit(X)
    assert model.n_iter_ < first
    np.testing.assert_allclose(model.complete(), before, atol=1e-3)
    assert model.result_.history.objective[0] == pytest.approx(model.result_.objective, rel=1e-6)


def test_shares_of_the_ridge_of_components_are_candidates(monkeypatch):
    """Where components explain most, the ridge that is best for offsets alone is too heavy."""
    truth, X = table(3, (70, 45), components=1.5, known=0.4)
    settings = {"n_components": 3, "loss": "huber", "ridge": "auto", "random_state": 0}
    share = MatrixCompletion(**settings).fit(X)
    monkeypatch.setattr(hyperparameters, "SHARES", ())
    alone = MatrixCompletion(**settings).fit(X)
    assert share.offset_ridge_ / share.ridge_ < 0.5 * alone.offset_ridge_ / alone.ridge_
    assert error(share, truth, X) < 1.01 * error(alone, truth, X)
