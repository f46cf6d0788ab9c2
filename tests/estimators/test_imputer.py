"""LowRankImputer: what is known stays, what is not is told better than by the simple imputers, in any units."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.impute import KNNImputer, SimpleImputer

from bifactor.errors import InputError
from bifactor.estimators.imputer import LowRankImputer

SHAPE = (150, 12)
UNITS = 10.0 ** np.arange(-6, 6)


@pytest.fixture(scope="module")
def truth():
    rng = np.random.default_rng(0)
    low = rng.standard_normal((SHAPE[0], 2)) @ rng.standard_normal((2, SHAPE[1]))
    return (low + 0.1 * rng.standard_normal(SHAPE) + 5) * UNITS


@pytest.fixture(scope="module")
def table(truth):
    return np.where(np.random.default_rng(1).random(SHAPE) < 0.75, truth, np.nan)


def make(**kwargs):
    return LowRankImputer(**{"n_components": 2, "alpha": 0.5, "random_state": 0} | kwargs)


def error(filled, truth, table):
    """In standard deviations of each column."""
    hole = np.isnan(table)
    return float(np.sqrt(np.mean(((filled - truth) / np.std(truth, axis=0))[hole] ** 2)))


@pytest.mark.parametrize("settings", [{}, {"n_components": "auto", "alpha": "auto"}], ids=["given", "chosen"])
def test_it_fills_holes_and_nothing_else(truth, table, settings):
    before = table.copy()
    filled = make(**settings).fit_transform(table)
    np.testing.assert_array_equal(table, before)
    known = ~np.isnan(table)
    np.testing.assert_array_equal(filled[known], table[known])
    ours = error(filled, truth, table)
    assert ours < 0.25
    assert ours < 0.7 * error(KNNImputer().fit_transform(table), truth, table)


def test_unseen_rows(truth, table):
    imputer = make().fit(table[:100])
    assert error(imputer.transform(table[100:]), truth[100:], table[100:]) < 0.25
    one = imputer.transform(table[100:101])
    np.testing.assert_allclose(one, imputer.transform(table[100:])[:1], rtol=1e-10)


def test_a_row_without_anything_gets_the_means(table):
    imputer = make().fit(table)
    row = imputer.transform(np.full((1, SHAPE[1]), np.nan))[0]
    assert np.all(np.abs(row - np.nanmean(table, axis=0)) < 0.2 * np.nanstd(table, axis=0))


def test_rows_of_the_fit_get_what_the_fit_says(table):
    for tol, allowed in ((1e-5, 2e-2), (1e-9, 2e-4)):
        imputer = make(tol=tol).fit(table)
        model = imputer.model_
        own = (model.U @ model.V.T + model.intercept) * imputer.scale_ + imputer.center_
        hole = np.isnan(table)
        assert np.abs((imputer.transform(table) - own) / imputer.scale_)[hole].max() < allowed


def test_units_do_not_matter(table):
    plain = make().fit_transform(table / UNITS) * UNITS
    np.testing.assert_allclose(make().fit_transform(table), plain, rtol=1e-4)


def test_without_standardization(truth, table):
    imputer = make(standardize=False).fit(table / UNITS)
    assert error(imputer.transform(table / UNITS), truth / UNITS, table) < 0.2
    assert np.all(imputer.scale_ == 1)
    assert np.all(imputer.center_ == 0)


def test_a_new_hole_in_a_column_that_had_none():
    rng = np.random.default_rng(2)
    X = np.outer(rng.standard_normal(60), [1.0, 2.0, -1.0])
    imputer = make(n_components=1, alpha=0.01).fit(X)
    told = imputer.transform([[np.nan, 4.0, -2.0]])
    np.testing.assert_allclose(told, [[2.0, 4.0, -2.0]], atol=0.05)


def empty(table):
    return np.where(np.arange(SHAPE[1]) == 3, np.nan, table)


def test_columns_of_which_nothing_is_known(table):
    with pytest.warns(UserWarning, match="dropped: x3"):
        imputer = make().fit(empty(table))
    assert imputer.transform(table).shape == (SHAPE[0], SHAPE[1] - 1)
    assert "x3" not in imputer.get_feature_names_out()
    kept = make(keep_empty_features=True).fit(empty(table))
    filled = kept.transform(empty(table))
    assert filled.shape == SHAPE
    assert not filled[:, 3].any()
    np.testing.assert_array_equal(np.delete(filled, 3, axis=1), imputer.transform(empty(table)))
    # As in SimpleImputer: what is known of such a column later stays, nothing else is known about it.
    np.testing.assert_array_equal(kept.transform(table)[:, 3], np.nan_to_num(table[:, 3]))


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.filterwarnings("ignore:Columns of which nothing is known", "ignore:Skipping features")
def test_shape_and_names_are_those_of_the_simple_imputer(table, keep):
    frame = pd.DataFrame(empty(table), columns=[f"c{j}" for j in range(SHAPE[1])])
    for indicator in (True, False):
        settings = {"keep_empty_features": keep, "add_indicator": indicator}
        ours, theirs = make(**settings).fit(frame), SimpleImputer(**settings).fit(frame)
        assert ours.get_feature_names_out().tolist() == theirs.get_feature_names_out().tolist()
        out = ours.set_output(transform="pandas").transform(frame)
        expected = theirs.set_output(transform="pandas").transform(frame)
        assert out.columns.equals(expected.columns)
        if indicator:
            marks = [name for name in out.columns if name.startswith("missingindicator")]
            np.testing.assert_array_equal(out[marks], expected[marks])


def test_frames(table):
    columns = {f"c{j}": table[:, j] for j in range(SHAPE[1])}
    array = make().fit_transform(table)
    null = pl.DataFrame(columns).fill_nan(None)
    nullable = pd.DataFrame(columns).convert_dtypes()
    for frame, kind in ((pd.DataFrame(columns), "pandas"), (null, "polars"), (nullable, "pandas")):
        out = make().set_output(transform=kind).fit_transform(frame)
        assert type(out) is type(frame)
        np.testing.assert_array_equal(np.asarray(out), array)


def test_single_precision_stays():
    X = np.random.default_rng(3).standard_normal((40, 5)).astype(np.float32)
    X[::3, 2] = np.nan
    assert make().fit_transform(X).dtype == np.float32
    integers = np.arange(20).reshape(5, 4)
    np.testing.assert_array_equal(make().fit_transform(integers), integers)


@pytest.mark.parametrize(
    "X",
    [
        np.array([[1.0, np.nan, 2.0]]),
        np.array([[1.0], [np.nan], [3.0]]),
        np.full((4, 3), 7.0),
        np.array([[np.nan, 0.1], [0.1, np.nan], [0.1, 0.1]]),
    ],
    ids=["one row", "one column", "constant", "constant with holes"],
)
def test_small_tables(X):
    imputer = make(n_components="auto", alpha="auto", keep_empty_features=True)
    assert np.all(np.isfinite(imputer.fit_transform(X)))
    assert np.all(np.isfinite(imputer.transform(np.full_like(X, np.nan))))


def test_a_constant_column_stays_constant(table):
    X = table.copy()
    X[:, 4] = 0.1
    X[::5, 4] = np.nan
    np.testing.assert_allclose(make().fit_transform(X)[:, 4], 0.1, rtol=1e-12)


def test_one_seed_one_answer(table):
    first = make(alpha="auto").fit_transform(table)
    np.testing.assert_array_equal(make(alpha="auto").fit_transform(table), first)


@pytest.mark.parametrize(
    ("X", "settings", "words"),
    [
        (np.full((3, 2), np.nan), {}, "No entry of X is known"),
        (np.array([[1.0, np.inf]]), {}, "infinity"),
        (np.array([["a", "b"]]), {}, "Column 0 of X holds .a., which is not a number"),
        (np.eye(3), {"standardize": 1}, "standardize=1"),
        (np.eye(3), {"add_indicator": "yes"}, "add_indicator='yes'"),
        (np.eye(3), {"n_components": -1}, "n_components=-1"),
        (np.eye(3), {"alpha": "none"}, "alpha='none'"),
    ],
)
def test_mistakes_are_refused(X, settings, words):
    with pytest.raises(ValueError, match=words):
        make(**settings).fit(X)


def test_settings_are_refused_before_data_are_looked_at():
    with pytest.raises(InputError, match="tol=0"):
        make(tol=0).fit(None)


def test_unfitted_and_unconverged(table):
    with pytest.raises(NotFittedError):
        make().transform(table)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        make(max_iter=1).fit(table)


def measured(folder, file, name):
    beside = Path(__file__).resolve().parents[2].parent / "shared" / "data"
    path = Path(os.environ.get("BIFACTOR_DATA", beside)) / folder / file
    if not path.is_file():
        pytest.skip(f"{path} is not there: point BIFACTOR_DATA to the folder of measured data")
    with np.load(path) as stored:
        return stored[name].astype(float)


@pytest.mark.parametrize(
    "source",
    [("khan-microarray-missing", "khanmiss.npz", "expr"), ("metabolite-missing", "metabolite.npz", "data")],
    ids=["khan", "metabolites"],
)
def test_it_beats_other_imputers_on_measured_data(source):
    X = measured(*source)[:400]
    hidden = ~np.isnan(X) & (np.random.default_rng(0).random(X.shape) < 0.1)
    shown = np.where(hidden, np.nan, X)
    imputers = LowRankImputer(random_state=0), KNNImputer(), SimpleImputer()
    ours, near, mean = (float(np.mean((i.fit_transform(shown) - X)[hidden] ** 2)) for i in imputers)
    assert ours < 0.85 * near < mean
