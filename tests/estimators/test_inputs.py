"""Every form in which users hold a table with holes says the same; mistakes are refused in a sentence."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator

from bifactor.errors import InputError
from bifactor.estimators.validation import frame_header, observations

TABLE = np.array([[1.0, np.nan, 0.0], [np.nan, np.nan, np.nan], [4.0, 5.0, np.nan], [np.nan, 6.0, 7.0]])
ROWS, COLS = np.nonzero(~np.isnan(TABLE))
VALUES = TABLE[ROWS, COLS]


def read(X, weights=None):
    return observations(BaseEstimator(), X, weights)


def as_table(data):
    table = np.full(data.shape, np.nan)
    table[data.rows, data.cols] = data.values
    return table


def stored(kind):
    """The table as a sparse matrix, its zero stored."""
    return kind(sparse.coo_array((VALUES, (ROWS, COLS)), shape=TABLE.shape))


def frozen(X):
    X = X.copy()
    X.flags.writeable = False
    return X


nullable = pd.DataFrame(TABLE, columns=list("abc")).convert_dtypes()

FORMS = {
    "array": TABLE,
    "list": TABLE.tolist(),
    "float32": TABLE.astype(np.float32),
    "float16": TABLE.astype(np.float16),
    "objects": np.where(np.isnan(TABLE), None, TABLE),
    "Fortran order": np.asfortranarray(TABLE),
    "strided": np.repeat(np.repeat(TABLE, 2, axis=0), 3, axis=1)[::2, ::3],
    "read-only": frozen(TABLE),
    "pandas": pd.DataFrame(TABLE, columns=list("abc")),
    "pandas, nullable": nullable,
    "pandas, numbers for names": pd.DataFrame(TABLE),
    "polars, NaN": pl.DataFrame(TABLE, schema=list("abc")),
    "polars, null": pl.DataFrame(TABLE, schema=list("abc")).fill_nan(None),
    "polars, integers and null": pl.DataFrame(TABLE, schema=list("abc")).fill_nan(None).cast(pl.Int64),
    "masked": np.ma.masked_invalid(TABLE),
    "masked integers": np.ma.array(np.nan_to_num(TABLE).astype(int), mask=np.isnan(TABLE)),
    "triples": (ROWS, COLS, VALUES),
    "triples, shuffled": tuple(part[[3, 0, 5, 1, 4, 2]] for part in (ROWS, COLS, VALUES)),
    "triples, uint8 and int16": (ROWS.astype(np.uint8), COLS.astype(np.int16), VALUES.astype(int)),
    "triples, lists": (ROWS.tolist(), COLS.tolist(), VALUES.tolist()),
    "triples, series": (pd.Series(ROWS), pl.Series(COLS), pd.Series(VALUES)),
    **{
        kind.__name__: stored(kind)
        for kind in (sparse.csr_array, sparse.csc_array, sparse.coo_array, sparse.csr_matrix, sparse.coo_matrix)
    },
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_says_the_same(form):
    data = read(FORMS[form])
    np.testing.assert_array_equal(as_table(data), TABLE)
    assert data.values.dtype == (np.float32 if form == "float32" else np.float64)


def test_integers_become_numbers():
    data = read(np.arange(6, dtype=np.int8).reshape(2, 3))
    assert data.values.dtype == np.float64
    np.testing.assert_array_equal(data.values, np.arange(6))


def test_single_precision_stays():
    for X in (np.ma.masked_invalid(TABLE.astype(np.float32)), stored(sparse.csr_array).astype(np.float32)):
        assert read(X).values.dtype == np.float32


@pytest.mark.parametrize("form", ["array", "csr_array", "pandas"])
def test_entries_of_weight_zero_are_missing(form):
    weights = np.ones(TABLE.shape)
    weights[2, 0] = 0
    for w in (weights, sparse.csr_array(weights), pd.DataFrame(weights)):
        data = read(FORMS[form], w)
        assert data.values.size == VALUES.size - 1
        assert np.isnan(as_table(data)[2, 0])


def test_weights_of_rows_and_of_triples():
    data = read(TABLE, [1.0, 2.0, 0.0, 3.0])
    assert set(data.rows) == {0, 3}
    np.testing.assert_array_equal(data.weights, np.where(data.rows == 0, 1.0, 3.0))
    data = read((ROWS, COLS, VALUES), np.arange(6))
    np.testing.assert_array_equal(data.weights, np.arange(1, 6))
    np.testing.assert_array_equal(data.values, VALUES[1:])


BAD = {
    "inf": (np.array([[1.0, np.inf]]), None, "infinity"),
    "inf in a sparse matrix": (sparse.csr_array([[1.0, np.inf]]), None, "infinity"),
    "words": (np.array([["a", "b"]]), None, "Column 0 of X contains 'a', which is not a number"),
    "complex": (np.array([[1j, 2]]), None, "Complex data not supported: column 0 of X contains 1j"),
    "one dimension": (np.arange(3.0), None, "X has 1 dimension, but a table has 2"),
    "no rows": (np.empty((0, 3)), None, "0 sample"),
    "no columns": (np.empty((3, 0)), None, "0 feature"),
    "weights of another length": (TABLE, np.ones(3), r"weights has shape \(3,\)"),
    "negative weights": (TABLE, [-1, 1, 1, 1], "negative"),
    "NaN weights": (TABLE, [1, 1, np.nan, 1], "NaN"),
    "no weight at all": (TABLE, np.zeros(4), "zero"),
    "weights of triples": ((ROWS, COLS, VALUES), np.ones(3), "6 values and 3 weights"),
    "no triples": (([], [], []), None, "no observed entries"),
    "NaN in triples": ((ROWS, COLS, np.full(6, np.nan)), None, "6 NaN"),
    "negative indices": ((ROWS - 1, COLS, VALUES), None, "Count indices from 0"),
    "floats as indices": ((ROWS + 0.5, COLS, VALUES), None, "integers"),
    "triples of unequal length": ((ROWS, COLS, VALUES[:-1]), None, "6 coordinates and 5 values"),
    "rows and cols of unequal length": ((ROWS[:-1], COLS, VALUES[:-1]), None, "one pair"),
    "an id that is a name": ((np.array([0, 10**9]), np.array([0, 1]), np.ones(2)), None, "1000000000.*fit_long"),
}


@pytest.mark.parametrize("case", BAD)
def test_mistakes_are_refused(case):
    X, weights, words = BAD[case]
    with pytest.raises(ValueError, match=words):
        read(X, weights)


def test_columns_are_noted_and_compared():
    estimator = BaseEstimator()
    observations(estimator, FORMS["pandas"])
    assert (estimator.n_features_in_, estimator.feature_names_in_.tolist()) == (3, ["a", "b", "c"])
    with pytest.raises(ValueError, match="now missing"):
        observations(estimator, FORMS["pandas"][["a", "b"]], reset=False)
    observations(estimator, (ROWS, COLS, VALUES))
    assert estimator.n_features_in_ == 3
    assert not hasattr(estimator, "feature_names_in_")
    assert observations(estimator, (ROWS[:1], COLS[:1], VALUES[:1]), reset=False).shape == (1, 3)
    with pytest.raises(InputError, match="There is a column 3, but the fit has 3"):
        observations(estimator, ([0], [3], [1.0]), reset=False)


LONG = {"user": ["ann", "bob"], "item": [1, 2], "rating": [3.0, 4.0]}


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_a_long_frame_is_not_a_table(make):
    with pytest.raises(InputError, match=r"one line per entry: user, item, rating\. Use fit_long"):
        read(make(LONG))
    with pytest.raises(InputError, match="user_id, movieId, rating"):
        read(make({"timestamp": [1, 2], "rating": [3.0, 4.0], "movieId": [1, 2], "user_id": [1, 2]}))


@pytest.mark.parametrize(
    "columns", [("a", "b", "c"), ("user", "item", "c"), ("score", "count", "item"), (0, 1, 2)], ids=str
)
def test_a_table_whose_columns_are_called_otherwise_is_one(columns):
    assert read(pd.DataFrame(TABLE, columns=columns)).shape == TABLE.shape


def test_headers_of_frames():
    assert frame_header(pd.DataFrame(TABLE)) == ["0", "1", "2"]
    assert frame_header(pl.DataFrame(LONG)) == ["user", "item", "rating"]
    assert frame_header(TABLE) is None
    assert frame_header(stored(sparse.csr_array)) is None
