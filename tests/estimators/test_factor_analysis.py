"""FactorAnalysis: scikit-learn's rules, its own factor analysis in the limit, and holes."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn import decomposition
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_checks

import bifactor as bf
from bifactor.errors import InputError
from bifactor.models.factor_analysis.updates import BlockedTable

CASES = {"auto": bf.FactorAnalysis(), "two": bf.FactorAnalysis(2), "one noise": bf.FactorAnalysis(1, noise="one")}


def planted(n=500, q=8, rank=2, seed=0, one_noise=False):
    rng = np.random.default_rng(seed)
    noise = 0.6 if one_noise else rng.uniform(0.3, 1.2, q)
    X = rng.standard_normal((n, rank)) @ rng.standard_normal((rank, q)) + noise * rng.standard_normal((n, q))
    return 5 + X * (1 if one_noise else rng.uniform(0.1, 10, q))


@pytest.fixture(scope="module")
def table():
    X = planted()
    return np.where(np.random.default_rng(1).random(X.shape) < 0.25, np.nan, X)


@pytest.mark.parametrize("estimator", CASES.values(), ids=CASES)
def test_scikit_learn_checks(estimator):
    estimator_checks.check_estimator(estimator, on_skip=None)


def test_further_checks():
    estimator_checks.check_dataframe_column_names_consistency("FactorAnalysis", bf.FactorAnalysis(1))
    tags = bf.FactorAnalysis().__sklearn_tags__()
    assert tags.input_tags.allow_nan
    assert tags.transformer_tags.preserves_dtype == ["float64", "float32"]


def test_the_likelihood_is_that_of_scikit_learn_in_the_limit():
    X, other = planted(4000, seed=2), planted(4000, seed=2)[::-1]
    ours, theirs = bf.FactorAnalysis(2).fit(X), decomposition.FactorAnalysis(2, tol=1e-6, max_iter=5000).fit(X)
    assert ours.score(X) == pytest.approx(theirs.score(X), abs=2e-3)
    assert ours.score(other) == pytest.approx(theirs.score(other), abs=2e-3)
    scale = np.sqrt(np.outer(X.var(axis=0), X.var(axis=0)))
    np.testing.assert_allclose(ours.get_covariance() / scale, theirs.get_covariance() / scale, atol=0.01)
    np.testing.assert_allclose(ours.mean_, theirs.mean_, atol=0.01 * X.std())
    np.testing.assert_allclose(ours.noise_variance_, theirs.noise_variance_, rtol=0.05)


def test_one_noise_is_probabilistic_pca():
    X = planted(4000, seed=3, one_noise=True)
    ours, theirs = bf.FactorAnalysis(2, noise="one").fit(X), decomposition.PCA(2).fit(X)
    assert ours.score(X) == pytest.approx(theirs.score(X), abs=2e-3)
    np.testing.assert_allclose(ours.noise_variance_, theirs.noise_variance_, rtol=0.02)
    lengths = np.linalg.norm(ours.components_, axis=1, keepdims=True)
    np.testing.assert_allclose(np.abs(ours.components_ / lengths @ theirs.components_.T), np.eye(2), atol=0.01)


def test_scores_of_samples_are_those_of_the_joint_gaussian(table):
    model = bf.FactorAnalysis(2).fit(table)
    found = model.score_samples(table)
    for i in range(0, 500, 50):
        known = ~np.isnan(table[i])
        part, apart = model.get_covariance()[np.ix_(known, known)], (table[i] - model.mean_)[known]
        wanted = -0.5 * (apart @ np.linalg.solve(part, apart) + np.linalg.slogdet(2 * np.pi * part)[1])
        assert found[i] == pytest.approx(wanted, rel=1e-8)
    assert model.score(table) == pytest.approx(found.mean())


def test_transform_and_back(table):
    model = bf.FactorAnalysis(2).fit(table)
    scores = model.transform(table)
    assert scores.shape == (500, 2)
    np.testing.assert_allclose(model.transform(table[:3]), scores[:3])
    told, scale = model.inverse_transform(scores), np.sqrt(np.diagonal(model.get_covariance()))
    full = planted()
    errors = np.abs((told - full) / scale)[np.isnan(table)]
    assert np.mean(errors) < 0.8 * np.mean(np.abs((full - model.mean_) / scale)[np.isnan(table)])
    np.testing.assert_array_equal(model.transform(np.full((1, 8), np.nan)), 0)


def test_units_do_not_matter(table):
    model = bf.FactorAnalysis(2).fit(table)
    units = np.array([1e-6, 1e6, 1, 2, 3, 4, 5, 1e3])
    other = bf.FactorAnalysis(2).fit(table * units)
    np.testing.assert_allclose(other.components_, model.components_ * units, rtol=1e-6)
    np.testing.assert_allclose(other.transform(table * units), model.transform(table), atol=1e-8)
    known = ~np.isnan(table)
    assert other.bound_ == pytest.approx(model.bound_ - np.sum(known * np.log(units)), rel=1e-8)


def test_the_number_of_components(table):
    assert bf.FactorAnalysis().fit(table).n_components_ == 2
    assert bf.FactorAnalysis().fit(planted(300, 10, 4, seed=5)).n_components_ == 4
    bounds = [bf.FactorAnalysis(k).fit(table).bound_ for k in range(5)]
    assert np.argmax(bounds) == 2
    assert bf.FactorAnalysis(0).fit(table).transform(table).shape == (500, 0)
    many = planted(4000, 10, 3, seed=6)
    first, second = (bf.FactorAnalysis(random_state=0).fit(many) for _ in range(2))
    assert first.n_components_ == 3
    np.testing.assert_array_equal(first.components_, second.components_)


def test_new_rows_have_the_moments_of_the_fit(table):
    model = bf.FactorAnalysis(2).fit(table)
    rows = model.sample(40_000, random_state=0)
    scale = np.sqrt(np.diagonal(model.get_covariance()))
    np.testing.assert_allclose((rows.mean(axis=0) - model.mean_) / scale, 0, atol=0.03)
    np.testing.assert_allclose(
        np.cov(rows.T) / np.outer(scale, scale), model.get_covariance() / np.outer(scale, scale), atol=0.03
    )
    np.testing.assert_array_equal(model.sample(3, random_state=1), model.sample(3, random_state=1))


def test_single_precision(table):
    model = bf.FactorAnalysis(2).fit(table.astype(np.float32))
    assert model.transform(table.astype(np.float32)).dtype == np.float32
    assert model.score(table) == pytest.approx(bf.FactorAnalysis(2).fit(table).score(table), rel=1e-4)


def test_masked_arrays(table):
    masked = np.ma.masked_invalid(np.where(np.isnan(table), 1e6, table))
    masked.mask = np.isnan(table)
    model = bf.FactorAnalysis(2).fit(masked)
    np.testing.assert_array_equal(model.components_, bf.FactorAnalysis(2).fit(table).components_)
    np.testing.assert_array_equal(model.transform(masked), model.transform(table))


def test_odd_columns():
    X = planted(60, 4)
    X = np.column_stack([X, np.full(60, 3e8), np.full(60, np.nan)])
    for noise in ("columns", "one"):
        model = bf.FactorAnalysis(1, noise=noise).fit(X)
        told = model.inverse_transform(model.transform(X))
        assert np.all(np.isfinite(told))
        np.testing.assert_allclose(told[:, 4], 3e8)
        assert np.all(np.isfinite(model.score_samples(X)))
    with pytest.raises(InputError, match="Rescale"):
        bf.FactorAnalysis(1).fit([[1e200, 1.0], [-1e200, 2.0]])
    with pytest.raises(InputError, match="No entry"):
        bf.FactorAnalysis().fit(np.full((3, 2), np.nan))


def test_frames_pipelines_and_searches(table):
    frame = pd.DataFrame(table, columns=list("abcdefgh"))
    pipe = make_pipeline(StandardScaler(), bf.FactorAnalysis(2)).set_output(transform="pandas").fit(frame)
    out = pipe.transform(frame)
    assert list(out.columns) == ["factoranalysis0", "factoranalysis1"]
    search = GridSearchCV(bf.FactorAnalysis(), {"n_components": [1, 2]}, cv=3).fit(table)
    assert search.best_params_ == {"n_components": 2}
    model = search.best_estimator_
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.transform(table), model.transform(table))
    assert not hasattr(clone(model), "model_")


def test_callbacks_see_every_round(table):
    pytest.importorskip("sklearn.callback", reason="callbacks came with scikit-learn 1.9")

    class Counter:
        rounds = 0

        def setup(self, estimator, context): ...

        def teardown(self, estimator, context): ...

        def on_fit_task_begin(self, estimator, context, *, X=None): ...

        def on_fit_task_end(self, estimator, context, *, X=None):
            self.rounds += context.task_name == "iteration"
            return self.rounds >= 3

    counter = Counter()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = bf.FactorAnalysis(2).set_callbacks(counter).fit(table)
    assert counter.rounds == model.n_iter_ == 3
    assert model.result_.status is bf.Status.CALLBACK


def test_a_fit_that_stops_early_says_so(table):
    with pytest.warns(ConvergenceWarning, match="after 3 rounds"):
        model = bf.FactorAnalysis(2, max_iter=3).fit(table)
    assert model.result_.status is bf.Status.MAX_ITER
    assert bf.FactorAnalysis(2).fit(table).result_.status.converged


def test_ctrl_c_keeps_the_best_so_far(table, monkeypatch):
    with pytest.warns(ConvergenceWarning, match="after 3 rounds"):
        wanted = bf.FactorAnalysis(2, max_iter=3).fit(table)
    collect, passes = BlockedTable.collect, []

    def interrupted(table, columns):
        passes.append(columns)
        if len(passes) == 5:
            raise KeyboardInterrupt
        return collect(table, columns)

    monkeypatch.setattr(BlockedTable, "collect", interrupted)
    with pytest.warns(ConvergenceWarning, match="ended in round 4: interrupted from the keyboard"):
        model = bf.FactorAnalysis(2).fit(table)
    assert model.result_.status is bf.Status.INTERRUPTED
    np.testing.assert_array_equal(model.components_, wanted.components_)
    assert "interrupted" in model._repr_html_()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_components": "all"}, "is not an integer ≥ 0"),
        ({"n_components": -1}, "is not an integer ≥ 0"),
        ({"n_components": 1.5}, "is not an integer ≥ 0"),
        ({"n_components": 9}, "more than min"),
        ({"noise": "rows"}, "noise='rows'"),
        ({"max_iter": 0}, "max_iter=0"),
        ({"tol": -1}, "tol=-1"),
        ({"random_state": "x"}, "random_state"),
    ],
)
def test_mistakes(table, settings, message):
    with pytest.raises(InputError, match=message):
        bf.FactorAnalysis(**settings).fit(table)


def test_before_and_after_the_fit(table):
    for act in (lambda m: m.transform(table), lambda m: m.sample(), lambda m: m.get_covariance()):
        with pytest.raises(NotFittedError):
            act(bf.FactorAnalysis())
    model = bf.FactorAnalysis(2).fit(table)
    with pytest.raises(InputError, match="n_samples=0"):
        model.sample(0)
    with pytest.raises(InputError, match="transform returns 2 columns"):
        model.inverse_transform(np.ones((3, 3)))
    with pytest.raises(InputError, match="features"):
        model.transform(table[:, :3])


@pytest.mark.parametrize("size", [1e-300, 1e150, 1e300])
def test_a_single_value_may_be_of_any_size(size):
    model = bf.FactorAnalysis(1, max_iter=5, tol=0).fit([[size]])
    assert model.mean_ == pytest.approx([size])
