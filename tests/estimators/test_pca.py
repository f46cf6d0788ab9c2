"""Principal components of binary data and of counts: what they are, new rows, hard data, and real data."""

import os
import pickle
import warnings
from inspect import Parameter, signature
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import optimize, sparse, special
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import mean_poisson_deviance
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils import estimator_checks

import bifactor as bf
from bifactor.errors import InputError
from bifactor.estimators.matrix_completion import MatrixCompletion
from bifactor.estimators.pca import LogisticPCA, PoissonPCA
from bifactor.models import pca
from bifactor.models.pca import LIGHT

DATA = Path(os.environ.get("BIFACTOR_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))


def planted(kind, shape=(80, 15), rank=2, holes=0.2, seed=0):
    """A table with NaN for holes, and the z behind it."""
    rng = np.random.default_rng(seed)
    scale = 2.0 if kind is LogisticPCA else 0.5
    z = scale * rng.standard_normal((shape[0], rank)) @ rng.standard_normal((rank, shape[1]))
    z += rng.standard_normal(shape[1])
    y = rng.random(shape) < special.expit(z) if kind is LogisticPCA else rng.poisson(np.exp(z))
    return np.where(rng.random(shape) < holes, np.nan, y), z


KINDS = [LogisticPCA, PoissonPCA]
LOSSES = {LogisticPCA: bf.losses.Logistic(), PoissonPCA: bf.losses.Poisson()}
each = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture(scope="module")
def tables():
    return {kind: planted(kind)[0] for kind in KINDS}


@pytest.fixture(scope="module")
def fits(tables):
    """With a ridge given, and close to the optimum."""
    return {kind: kind(ridge=1.0, random_state=0, tol=1e-10).fit(tables[kind]) for kind in KINDS}


def targets(kind, X):
    return np.where(X == 1, 1.0, -1.0) if kind is LogisticPCA else X


def linear(model, Z):
    return Z @ model.components_ + model.intercept_


@each
def test_components_are_orthonormal_ordered_and_signed(fits, tables, kind):
    model = fits[kind]
    W, Z = model.components_, model.transform(tables[kind])
    np.testing.assert_allclose(W @ W.T, np.eye(2), atol=1e-10)
    lengths = np.linalg.norm(Z, axis=0)
    assert lengths[0] > lengths[1] > 0
    assert abs(Z[:, 0] @ Z[:, 1]) < 1e-3 * lengths[0] * lengths[1]
    np.testing.assert_allclose(Z.mean(axis=0), 0, atol=0.02)  # what is common to all rows is in the effects
    assert np.all(W[np.arange(2), np.abs(W).argmax(axis=1)] > 0)


@each
def test_it_is_a_minimum_of_the_penalised_likelihood(fits, tables, kind):
    model, X = fits[kind], tables[kind]
    Z, loss = model.transform(X), LOSSES[kind]
    slopes = np.where(np.isnan(X), 0, loss.gradient(linear(model, Z), targets(kind, X)))
    root = np.linalg.norm(model.model_.V[:, model.model_.fixed_columns :], axis=0)
    U, V = Z / root, model.components_.T * root
    for slope, factor in ((slopes @ V, U), (slopes.T @ U, V)):
        assert np.abs(slope + factor).max() < 2e-3 * np.abs(slope).max()
    effects = model.intercept_ - model.model_.intercept
    assert np.abs(slopes.sum(axis=0) + LIGHT * effects).max() < 1e-3 * np.abs(slopes).sum(axis=0).max()


@each
def test_one_column_of_ones_stands_for_the_effects_of_columns(fits, tables, kind):
    model, X = fits[kind], tables[kind]
    assert model.model_.fixed_columns == 1
    assert not model.model_.offsets
    for factor in (model.result_.U, model.model_.U):
        assert factor.shape == (X.shape[0], 1 + model.n_components_)
        np.testing.assert_array_equal(factor[:, 0], 1)
    np.testing.assert_allclose(model.model_.V[:, 0] + model.model_.intercept, model.intercept_, rtol=1e-12)
    rows, cols = np.nonzero(~np.isnan(X))
    z = linear(model, model.transform(X))[rows, cols]
    np.testing.assert_allclose(model.model_.scores(rows, cols), z, rtol=1e-9, atol=1e-12)


@each
def test_the_gradient_of_new_rows_is_zero(fits, kind):
    model, new = fits[kind], planted(kind, seed=0, holes=0.5)[0]
    Z, root = model.transform(new), np.linalg.norm(model.model_.V[:, model.model_.fixed_columns :], axis=0)
    slopes = np.where(np.isnan(new), 0, LOSSES[kind].gradient(linear(model, Z), targets(kind, new)))
    V = model.components_.T * root
    np.testing.assert_allclose(slopes @ V, -Z / root, atol=2e-5 * np.abs(slopes @ V).max())


@each
def test_scores_of_the_rows_of_the_fit_are_those_of_the_fit(fits, tables, kind):
    model, X = fits[kind], tables[kind]
    first = model.model_.fixed_columns
    fitted = model.result_.U[:, first:] @ model.result_.V[:, first:].T
    np.testing.assert_allclose(model.transform(X) @ model.components_, fitted, atol=5e-3)
    np.testing.assert_allclose(clone(model).fit_transform(X), model.transform(X), rtol=1e-8)
    some = model.transform(X[10:13])
    np.testing.assert_allclose(some, model.transform(X)[10:13], atol=1e-8)
    np.testing.assert_array_equal(model.transform(np.full((1, 15), np.nan)), 0)


@each
def test_inverse_transform_gives_means(fits, tables, kind):
    model, Z = fits[kind], fits[kind].transform(tables[kind])
    told = model.inverse_transform(Z)
    np.testing.assert_allclose(told, LOSSES[kind].mean(linear(model, Z)), rtol=1e-12)
    assert np.all(told > 0)
    assert kind is PoissonPCA or np.all(told < 1)
    with pytest.raises(InputError, match="transform returns 2 columns"):
        model.inverse_transform(Z[:, :1])


@each
def test_deviance_explained_is_that_beside_column_means_and_grows_with_rank(tables, kind):
    X = tables[kind]
    seen, explained = ~np.isnan(X), []
    for rank in (1, 2, 3, 5):
        model = kind(n_components=rank, ridge=0.5, random_state=0).fit(X)
        told = model.inverse_transform(model.transform(X))
        left, null = (deviance(kind, X[seen], p[seen]) for p in (told, np.broadcast_to(np.nanmean(X, 0), X.shape)))
        assert model.deviance_explained_ == pytest.approx(1 - left / null, abs=1e-4)
        explained.append(model.deviance_explained_)
    assert np.all(np.diff(explained) > 0)
    assert 0 < explained[0] < explained[-1] < 1


def deviance(kind, y, mean):
    if kind is PoissonPCA:
        return mean_poisson_deviance(y, mean)
    return -2 * np.mean(special.xlogy(y, mean) + special.xlogy(1 - y, 1 - mean))


@each
def test_it_finds_what_is_hidden(kind):
    X, z = planted(kind, (500, 40))
    model = kind(random_state=0).fit(X)
    assert 0 < model.ridge_ == model.ridge_search_.chosen["ridge"]
    hidden, mean = np.isnan(X), LOSSES[kind].mean
    told = model.inverse_transform(model.transform(X))[hidden]
    columns = np.broadcast_to(np.nanmean(X, axis=0), X.shape)[hidden]
    assert np.mean((told - mean(z)[hidden]) ** 2) < 0.2 * np.mean((columns - mean(z)[hidden]) ** 2)


@each
def test_score_is_of_entries_left_out(kind):
    X, _ = planted(kind, (200, 20))
    model = kind(ridge=1.0, random_state=0).fit(X)
    assert 0.1 < model.score(X) < model.deviance_explained_
    noise = np.random.default_rng(0).permuted(X, axis=0)
    assert kind(ridge=1.0, random_state=0).fit(noise).score(noise) < 0.02


CODINGS = {
    "-1 and 1": lambda X: 2 * X - 1,
    "3 and 7": lambda X: 3 + 4 * X,
    "booleans and None": lambda X: np.where(np.isnan(X), None, X == 1),
    "nullable booleans": lambda X: pd.DataFrame(X).astype("boolean"),
    "threshold": lambda X: X - 0.5,
}


@pytest.mark.parametrize("coding", CODINGS)
def test_how_labels_are_written_makes_no_difference(fits, tables, coding):
    base, X = fits[LogisticPCA], CODINGS[coding](tables[LogisticPCA])
    model = clone(base).set_params(binarize=0 if coding == "threshold" else None).fit(X)
    np.testing.assert_array_equal(model.components_, base.components_)
    np.testing.assert_array_equal(model.transform(X), base.transform(tables[LogisticPCA]))


@each
def test_sparse_zeros_are_zeros_and_nan_is_a_hole(fits, tables, kind):
    model = clone(fits[kind]).fit(sparse.csr_array(tables[kind]))
    np.testing.assert_array_equal(model.components_, fits[kind].components_)


@each
@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_in_and_out(fits, tables, kind, frame):
    names = [f"c{j}" for j in range(15)]
    X = frame({name: tables[kind][:, j] for j, name in enumerate(names)})
    output = "pandas" if frame is pd.DataFrame else "polars"
    model = clone(fits[kind]).set_output(transform=output).fit(X)
    assert model.feature_names_in_.tolist() == names
    Z = model.transform(X)
    assert isinstance(Z, frame)
    assert list(Z.columns) == model.get_feature_names_out().tolist() == [f"{kind.__name__.lower()}{k}" for k in (0, 1)]
    np.testing.assert_allclose(np.asarray(Z), fits[kind].transform(tables[kind]), rtol=1e-8, atol=1e-8)


@each
def test_single_precision_stays_so(tables, kind):
    X = tables[kind].astype(np.float32)
    model = kind(ridge=1.0, random_state=0).fit(X)
    Z = model.transform(X)
    assert Z.dtype == model.inverse_transform(Z).dtype == model.components_.dtype == np.float32
    double = kind(ridge=1.0, random_state=0).fit(tables[kind])
    np.testing.assert_allclose(Z, double.transform(tables[kind]), atol=0.05)


@each
def test_columns_and_tables_all_alike_stay_finite(kind):
    X, _ = planted(kind, holes=0.0)
    X[:, 0], X[:, 1] = 0, 1
    X[:, 2] = np.nan
    cases = [X, np.zeros((12, 9)), np.ones((12, 9)), np.eye(9)]
    for table in cases:
        model = kind(random_state=0).fit(table)
        assert model.ridge_ > 0
        told = model.inverse_transform(model.transform(table))
        assert np.isfinite(told).all()
        assert np.isfinite(model.deviance_explained_)
        assert np.isfinite(model.score(table))
        np.testing.assert_allclose(told[:, 0], np.nanmean(table[:, 0]), atol=0.35 if table is cases[3] else 0.05)


def test_a_table_that_components_separate_stays_finite():
    rng = np.random.default_rng(0)
    X = (rng.standard_normal((40, 1)) * rng.standard_normal(30) > 0).astype(float)
    model = LogisticPCA(n_components=1, random_state=0).fit(X)
    Z = model.transform(X)
    assert np.abs(linear(model, Z)).max() < 100
    np.testing.assert_array_equal(model.inverse_transform(Z) > 0.5, X == 1)
    free = LogisticPCA(n_components=1, ridge=0, max_iter=30, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        assert np.isfinite(free.fit(X).transform(X)).all()


@each
@pytest.mark.parametrize("shape", [(1, 8), (8, 1), (1, 1), (2, 2), (3, 50)])
def test_small_tables(kind, shape):
    X = np.random.default_rng(0).integers(0, 2, shape).astype(float)
    model = kind(n_components=1, random_state=0).fit(X)
    assert model.transform(X).shape == (shape[0], 1)
    assert np.isfinite(model.inverse_transform(model.transform(X))).all()


@each
@pytest.mark.parametrize(
    ("parameters", "fact"),
    [
        ({"n_components": 0}, "n_components=0"),
        ({"n_components": "many"}, "'many' is not an integer ≥ 1. Pass the number of components"),
        ({"n_components": "auto", "ridge": 0}, "needs a ridge, but ridge=0"),
        ({"ridge": -1}, "ridge=-1"),
        ({"tol": 0}, "tol=0"),
        ({"max_iter": 0}, "max_iter=0"),
        ({"solver": "pcg"}, "not a Solver"),
    ],
)
def test_bad_parameters_are_refused_before_any_work(kind, parameters, fact):
    with pytest.raises(InputError, match=fact):
        kind(**parameters).fit("no table at all")


@each
def test_bad_tables_are_refused(kind):
    with pytest.raises(InputError, match=r"n_components=2 is more than min\(n_samples=1, n_features=3\)"):
        kind().fit(np.array([[0.0, 1.0, 1.0]]))
    with pytest.raises(InputError, match="No entry of X is known"):
        kind().fit(np.full((3, 3), np.nan))
    with pytest.raises(ValueError, match="infinity"):
        kind().fit(np.array([[0.0, np.inf], [1.0, 1.0]]))
    with pytest.raises(InputError, match="not a table"):
        kind().fit(([0, 1, 2], [0, 1, 2], [0, 1, 0]))
    with pytest.raises(NotFittedError):
        kind().transform(np.eye(3))


def test_what_are_not_labels_is_refused(fits):
    with pytest.raises(InputError, match=r"3 different values \(0, 1, 2, …\), not two"):
        LogisticPCA().fit(np.array([[0.0, 1.0], [2.0, 1.0]]))
    with pytest.raises(InputError, match="only the value 5"):
        LogisticPCA().fit(np.full((3, 3), 5.0))
    with pytest.raises(InputError, match="X contains -1, but the fit had only 0 and 1"):
        fits[LogisticPCA].transform(np.full((1, 15), -1.0))
    with pytest.raises(InputError, match="binarize='high'"):
        LogisticPCA(binarize="high").fit(np.eye(3))


def test_what_are_not_counts_is_refused(fits):
    with pytest.raises(InputError, match="Negative values in data: X contains -1"):
        PoissonPCA().fit(np.array([[0.0, -1.0], [1.0, 1.0]]))
    with pytest.raises(InputError, match="exposure='row' is neither"):
        PoissonPCA(exposure="row").fit(np.eye(3))
    for exposure in (np.zeros(80), np.ones(3), np.full(80, np.nan)):
        with pytest.raises(InputError, match="one number > 0 per row"):
            fits[PoissonPCA].transform(np.ones((80, 15)), exposure=exposure)


def test_exposure_is_a_factor_of_the_mean():
    X, z = planted(PoissonPCA, (300, 30), holes=0.1)
    rng = np.random.default_rng(1)
    e = np.exp(rng.uniform(-1, 2, 300))
    counts = np.where(np.isnan(X), np.nan, rng.poisson(e[:, None] * np.exp(z)))
    model = PoissonPCA(ridge=1.0, random_state=0).fit(counts, exposure=e)
    rates = model.inverse_transform(model.transform(counts, exposure=e))
    assert np.corrcoef(np.log(rates).ravel(), z.ravel())[0, 1] > 0.95
    totals = PoissonPCA(exposure="total", ridge=1.0, random_state=0).fit(counts)
    assert np.corrcoef(np.log(totals.exposure_), np.log(e))[0, 1] > 0.8
    ignored = PoissonPCA(ridge=1.0, random_state=0, tol=1e-9).fit(counts)
    assert totals.score(counts) > 0
    assert model.score(counts, exposure=e) > 0
    # One exposure for all is the same model with other effects.
    same = PoissonPCA(ridge=1.0, random_state=0, tol=1e-9).fit(counts, exposure=np.full(300, 4.0))
    np.testing.assert_allclose(
        4 * same.inverse_transform(same.transform(counts, exposure=np.full(300, 4.0))),
        ignored.inverse_transform(ignored.transform(counts)),
        rtol=0.05,
    )


def test_rows_without_counts_have_an_exposure():
    X, _ = planted(PoissonPCA)
    X[0], X[1] = 0, np.nan
    model = PoissonPCA(exposure="total", ridge=1.0, random_state=0).fit(X)
    assert 0 < model.exposure_[0] < 0.1
    assert model.exposure_[1] == 1
    assert np.isfinite(model.transform(X)).all()


@each
def test_weights(tables, fits, kind):
    X = tables[kind]
    ones = clone(fits[kind]).fit(X, sample_weight=np.ones(80))
    np.testing.assert_allclose(np.abs(ones.components_), np.abs(fits[kind].components_), atol=1e-4)
    out = np.ones(80)
    out[:20] = 0
    some = clone(fits[kind]).fit(X, sample_weight=out)
    part = clone(fits[kind]).fit(X[20:])
    np.testing.assert_allclose(some.transform(X), part.transform(X), atol=5e-3)


@each
@pytest.mark.parametrize("by", [2.0**20, 2.0**-20])
def test_the_unit_of_weights_makes_no_difference(tables, kind, by):
    X = tables[kind]
    weights = np.random.default_rng(0).random(X.shape) + 0.5
    one, other = (kind(n_components=2, ridge=factor).fit(X, sample_weight=factor * weights) for factor in (1.0, by))
    np.testing.assert_allclose(other.components_, one.components_, atol=1e-10)
    np.testing.assert_allclose(other.intercept_, one.intercept_, atol=1e-10)
    np.testing.assert_allclose(other.explained_deviance_ratio_, one.explained_deviance_ratio_, atol=1e-10)


@each
def test_clones_pickles_pipelines_searches(tables, fits, kind):
    first, *others = signature(kind).parameters.values()
    assert first.name == "n_components"  # by position, as in scikit-learn's PCA
    assert first.kind is Parameter.POSITIONAL_OR_KEYWORD
    assert {parameter.kind for parameter in others} == {Parameter.KEYWORD_ONLY}
    again = pickle.loads(pickle.dumps(fits[kind]))
    np.testing.assert_array_equal(again.transform(tables[kind]), fits[kind].transform(tables[kind]))
    y = fits[kind].transform(tables[kind])[:, 0] > 0
    pipe = make_pipeline(kind(ridge=1.0, random_state=0), LogisticRegression())
    assert pipe.fit(tables[kind], y).score(tables[kind], y) > 0.9
    search = GridSearchCV(kind(random_state=0), {"ridge": [1.0, 1e4]}, cv=2).fit(tables[kind])
    assert search.best_params_ == {"ridge": 1.0}


EXPECTED = {
    "check_sample_weights_shape": "weights of the shape of X are weights of entries",
    "check_sample_weight_equivalence_on_dense_data": "a row that comes twice has two scores, and a ridge on each",
    "check_sample_weight_equivalence_on_sparse_data": "a row that comes twice has two scores, and a ridge on each",
}


@pytest.mark.parametrize(
    "estimator",
    [
        LogisticPCA(ridge=1.0, binarize=0.5),  # the checks pass any numbers
        PoissonPCA(ridge=1.0, exposure="total"),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_scikit_learn_checks(estimator):
    results = estimator_checks.check_estimator(estimator, expected_failed_checks=EXPECTED, on_skip=None)
    failed = {result["check_name"] for result in results if result["status"] == "xfail"}
    assert failed == set(EXPECTED), "a check that was expected to fail passes: take it off the list"


def test_hidden_votes_are_told_better_than_by_squared_errors():
    path = DATA / "house-votes-84" / "house-votes-84.npz"
    if not path.exists():
        pytest.skip("house-votes-84 is not at hand: set BIFACTOR_DATA to the folder that holds it")
    with np.load(path) as file:
        X, democrat = np.where(file["votes"] < 0, np.nan, file["votes"]), file["democrat"]
    gains = []
    for seed in range(3):
        out = (np.random.default_rng(seed).random(X.shape) < 0.2) & ~np.isnan(X)
        rest = np.where(out, np.nan, X)
        model = LogisticPCA(random_state=0).fit(rest)
        ours = (model.inverse_transform(model.transform(rest))[out] > 0.5) == X[out]
        squared = (MatrixCompletion(n_components=2, random_state=0).fit(rest).predict(*np.nonzero(out)) > 0.5) == X[out]
        majority = (np.broadcast_to(np.nanmean(rest, axis=0), X.shape)[out] > 0.5) == X[out]
        assert ours.mean() > majority.mean() + 0.15
        gains.append(ours.mean() - squared.mean())
    assert np.mean(gains) > 0
    first = LogisticPCA(n_components=1, random_state=0).fit_transform(X)[:, 0] > 0
    assert max(np.mean(first == democrat), np.mean(first != democrat)) > 0.85


def test_hidden_counts_are_told_better_than_by_squared_errors_of_their_logarithms():
    path = DATA / "scrna-pbmc-small" / "scrna-pbmc-small.npz"
    if not path.exists():
        pytest.skip("scrna-pbmc-small is not at hand: set BIFACTOR_DATA to the folder that holds it")
    with np.load(path) as file:
        counts = sparse.csr_array((file["data"], file["indices"], file["indptr"]), shape=tuple(file["shape"]))
    X = counts.toarray()[:, :300].astype(float)
    out = np.random.default_rng(0).random(X.shape) < 0.1
    rest = np.where(out, np.nan, X)
    model = PoissonPCA(exposure="total", ridge=5.0, random_state=0).fit(rest)
    ours = (model.exposure_[:, None] * model.inverse_transform(model.transform(rest)))[out]
    logs = MatrixCompletion(n_components=2, random_state=0).fit(np.log1p(rest))
    known, squared = (np.maximum(np.expm1(logs.predict(*np.nonzero(part))), 0.01) for part in (~out, out))
    squared *= X[~out].sum() / known.sum()  # turned back they would be too low
    assert mean_poisson_deviance(X[out], ours) < mean_poisson_deviance(X[out], squared)


@each
def test_warm_start_begins_at_the_last_fit(tables, kind):
    model = kind(ridge=1.0, random_state=0, warm_start=True).fit(tables[kind])
    first, components = model.n_iter_, model.components_
    model.fit(tables[kind])
    assert model.n_iter_ < first
    np.testing.assert_allclose(model.components_, components, atol=0.02)
    assert model.set_params(n_components=3).fit(tables[kind]).components_.shape == (3, 15)


@each
def test_callbacks_see_every_iteration(tables, kind):
    pytest.importorskip("sklearn.callback", reason="callbacks came with scikit-learn 1.9")

    class Recorder:
        iterations = 0

        def setup(self, estimator, context):
            pass

        def on_fit_task_begin(self, estimator, context, *, X=None):
            pass

        def on_fit_task_end(self, estimator, context, *, X=None):
            self.iterations += context.task_name == "iteration"

        def teardown(self, estimator, context):
            pass

    recorder = Recorder()
    model = kind(ridge=1.0).set_callbacks(recorder).fit(tables[kind])
    assert recorder.iterations == model.n_iter_ > 3


@each
def test_sparse_tables_are_fitted_as_dense_ones(kind):
    X = np.nan_to_num(planted(kind, holes=0.0)[0])
    dense, thin = (kind(ridge=1.0, random_state=0).fit(form) for form in (X, sparse.csr_array(X)))
    np.testing.assert_allclose(thin.components_, dense.components_, atol=1e-8)
    np.testing.assert_allclose(thin.transform(sparse.csc_array(X)), dense.transform(X), atol=1e-8)
    assert thin.score(sparse.csr_array(X)) == pytest.approx(dense.score(X))


@each
def test_the_number_of_components_may_be_left_to_the_ridge(kind):
    X, _ = planted(kind, (300, 40), rank=2)
    model = kind("auto", random_state=0).fit(X)
    assert 2 <= model.n_components_ <= 3
    assert model.components_.shape == (model.n_components_, 40)
    assert model.explained_deviance_ratio_[:2].sum() > 0.9 * model.explained_deviance_ratio_.sum()


@each
@pytest.mark.parametrize("ridge", [0.001, 0.01, 1.0, 100.0, 1e5])
def test_what_components_explain_adds_up_under_any_ridge(tables, kind, ridge):
    """Both sums start from the null model; with a small ridge, components that are alone are too long."""
    model = kind(4, ridge=ridge, random_state=0).fit(tables[kind])
    ratio = model.explained_deviance_ratio_
    assert ratio.shape == (4,)
    assert np.all(ratio >= 0)
    assert ratio.sum() == pytest.approx(model.deviance_explained_, abs=1e-12)
    seen = ~np.isnan(tables[kind])
    told = model.inverse_transform(model.transform(tables[kind]))
    left, null = (
        deviance(kind, tables[kind][seen], p[seen])
        for p in (told, np.broadcast_to(np.nanmean(tables[kind], 0), told.shape))
    )
    assert model.deviance_explained_ >= max(1 - left / null, 0) - 1e-9  # the ridge on effects of columns costs little


@each
def test_the_first_component_explains_what_it_does_alone(tables, kind):
    """Its share is that of the best effects of columns and the best length up to that of the fit, found by L-BFGS."""
    X = tables[kind]
    seen, loss = ~np.isnan(X), LOSSES[kind]
    model = kind(3, ridge=0.01, random_state=0).fit(X)
    z = np.outer(model.transform(X)[:, 0], model.components_[0])
    y = np.where(seen, X, 0.0) if kind is PoissonPCA else np.where(X == 1, 1.0, -1.0)

    def value(x):
        at = x[0] * z + x[1:]
        slopes = np.where(seen, loss.gradient(at, y), 0)
        return float(loss.value(at, y)[seen].sum()), np.append((slopes * z).sum(), slopes.sum(axis=0))

    bounds = [(0, 1)] + [(-20, 20)] * X.shape[1]
    best = optimize.minimize(value, np.append(0, model.null_intercept_), jac=True, bounds=bounds, tol=1e-12)
    null, lowest = value(np.append(0, model.null_intercept_))[0], loss.saturated(y[seen]).sum()
    assert model.explained_deviance_ratio_[0] == pytest.approx((null - best.fun) / (null - lowest), abs=1e-5)


def test_dispersion_is_found_and_large_counts_weigh_less():
    rng = np.random.default_rng(0)
    mean = np.exp(0.5 * rng.standard_normal((300, 2)) @ rng.standard_normal((2, 40)) + 1)
    X = rng.negative_binomial(4.0, 4.0 / (4.0 + mean)).astype(float)
    model = PoissonPCA(2, dispersion="auto", random_state=0).fit(X)
    assert model.dispersion_ == pytest.approx(0.25, rel=0.3)
    errors = [
        np.mean((np.log(one.inverse_transform(one.fit_transform(X))) - np.log(mean)) ** 2)
        for one in (model, PoissonPCA(2, random_state=0))
    ]
    assert errors[0] < errors[1]
    nearly = PoissonPCA(2, dispersion=1e-7, ridge=1.0, random_state=0, tol=1e-10).fit(X)
    none = PoissonPCA(2, ridge=1.0, random_state=0, tol=1e-10).fit(X)
    np.testing.assert_allclose(nearly.transform(X), none.transform(X), atol=1e-2)
    assert (nearly.dispersion_, none.dispersion_) == (pytest.approx(1e-7), 0.0)
    with pytest.raises(InputError, match="dispersion=-1"):
        PoissonPCA(dispersion=-1).fit(X)


def test_the_ridge_of_a_large_table_is_chosen_on_some_of_its_rows(monkeypatch):
    X, _ = planted(LogisticPCA, (400, 30), holes=0.0)
    whole = LogisticPCA(random_state=0).fit(X)
    monkeypatch.setattr(pca, "CELLS", 100 * 30)
    monkeypatch.setattr(pca, "FEWEST_ROWS", 50)
    some = LogisticPCA(random_state=0).fit(X)
    assert len(some.transform(X)) == 400
    assert some.result_.U.shape[0] == 400
    assert 0.4 < some.ridge_ / whole.ridge_ < 2.5
    assert some.score(X) == pytest.approx(whole.score(X), abs=0.02)


def test_without_a_ridge_a_step_that_is_too_long_is_halved():
    """Few labels that can be separated: the objective overflows on the way."""
    known = {
        (0, 5): 0, (0, 7): 1, (1, 5): 0, (1, 6): 0, (1, 8): 0, (2, 0): 1, (2, 5): 0, (2, 6): 0, (3, 0): 0, (3, 2): 1,
        (3, 5): 1, (3, 6): 1, (3, 7): 1, (3, 8): 1, (4, 0): 1, (4, 4): 0, (5, 1): 0, (5, 2): 0, (5, 5): 1, (5, 6): 1,
        (6, 0): 0, (6, 1): 0, (6, 6): 0, (6, 8): 0, (7, 1): 1, (7, 6): 0, (7, 7): 1, (8, 0): 1, (8, 1): 0, (8, 3): 1,
    }  # fmt: skip
    X = np.full((9, 9), np.nan)
    for place, label in known.items():
        X[place] = label
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = bf.LogisticPCA(3, ridge=0, max_iter=20, tol=0.01, random_state=3).fit(X)
    assert np.all(np.isfinite(model.transform(X)))
