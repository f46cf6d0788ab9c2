"""Every form in which users hold a table with holes says the same; mistakes are refused in a sentence."""

import datetime as dt
import time

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator

from bifactor.errors import InputError
from bifactor.tables.labels import Labels
from bifactor.tables.observations import LARGEST_SIDE, is_triples, long_form, observations

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


def test_repeated_coordinates():
    rows, cols, values = np.array([0, 0, 1]), np.array([1, 1, 0]), np.array([2.0, 5.0, 1.0])
    summed = read(sparse.coo_array((values, (rows, cols)), shape=(2, 2)))
    assert sorted(summed.values) == [1, 7]
    assert sorted(read((rows, cols, values)).values) == [1, 2, 5]


def test_an_unstored_zero_is_missing_and_a_stored_nan_too():
    X = sparse.csr_array(([np.nan, 0.0], ([0, 1], [0, 1])), shape=(2, 2))
    data = read(X)
    assert (data.rows.tolist(), data.cols.tolist(), data.values.tolist()) == ([1], [1], [0.0])


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
    "words": (np.array([["a", "b"]]), None, "convert"),
    "complex": (np.array([[1j, 2]]), None, "[Cc]omplex"),
    "one dimension": (np.arange(3.0), None, "2D"),
    "no rows": (np.empty((0, 3)), None, "0 sample"),
    "no columns": (np.empty((3, 0)), None, "0 feature"),
    "weights of another length": (TABLE, np.ones(3), r"weights has shape \(3,\)"),
    "negative weights": (TABLE, [-1, 1, 1, 1], "negative"),
    "NaN weights": (TABLE, [1, 1, np.nan, 1], "NaN"),
    "no weight at all": (TABLE, np.zeros(4), "zero"),
    "weights of triples": ((ROWS, COLS, VALUES), np.ones(3), "6 values and 3 weights"),
    "no triples": (([], [], []), None, "no observed entries"),
    "NaN in triples": ((ROWS, COLS, np.full(6, np.nan)), None, "6 NaN"),
    "negative indices": ((ROWS - 1, COLS, VALUES), None, "count from 0"),
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


def test_many_triples_may_have_large_indices():
    assert read((np.array([LARGEST_SIDE - 1]), np.array([0]), np.ones(1))).shape == (LARGEST_SIDE, 1)


def test_what_are_triples():
    assert is_triples(([0], [0], [1.0]))
    assert not is_triples([[0], [0], [1.0]])
    assert not is_triples((np.eye(2), np.eye(2), np.eye(2)))


# Names


def dates(count):
    return np.datetime64("2020-01-01") + np.arange(count)


NAMES = {
    "integers": np.array([30, 10, 20, 10, 30]),
    "wide integers": np.array([2**62, -5, 7, -5, 2**62]),
    "small integers": np.array([127, -128, 0, -128, 127], np.int8),
    "unsigned": np.array([2**64 - 1, 2**64 - 3, 2**64 - 2, 2**64 - 3, 2**64 - 1], np.uint64),
    "floats": np.array([0.5, -1.0, 3.25, -1.0, 0.5]),
    "booleans": np.array([True, False, True, False, True]),
    "dates": dates(4)[[3, 0, 1, 0, 3]],
    "strings": np.array(["b", "ä", "c", "ä", "b"]),
    "objects": np.array(["b", 3, ("a", 1), 3, "b"], dtype=object),
}


@pytest.mark.parametrize("kind", NAMES)
def test_names_have_places(kind):
    values = NAMES[kind]
    labels, places = Labels.of(values, "row")
    assert labels.names.dtype == values.dtype
    assert len(set(labels.names.tolist())) == labels.names.size
    np.testing.assert_array_equal(labels.names[places], values)
    np.testing.assert_array_equal(labels.indices(values), places)
    if kind not in ("strings", "objects"):
        assert np.all(labels.names[1:] > labels.names[:-1])


def test_new_names_go_to_the_end():
    labels, _ = Labels.of(np.array([5, 3]), "row")
    more, places = labels.extended(np.array([4, 5, 1, 4]), "row")
    assert more.names.tolist() == [3, 5, 1, 4]
    assert places.tolist() == [3, 1, 2, 3]
    with pytest.raises(InputError, match="one kind"):
        labels.extended(np.array(["4"]), "row")


def test_names_that_are_not_known():
    numbers, _ = Labels.of(np.array([5, 3, 2**60]), "row")
    assert numbers.indices([3, 4, 5.0, np.nan, 2**60]).tolist()[:3] == [0, -1, 1]
    assert numbers.indices(["5", "x"]).tolist() == [-1, -1]
    assert numbers.indices(pd.array([5, 3], dtype="Int64")).tolist() == [1, 0]
    assert numbers.indices(np.array([2**60, 2**60 + 1], np.uint64)).tolist() == [2, -1]
    words, _ = Labels.of(np.array(["a", "b"], dtype=object), "row")
    assert words.indices(pl.Series(["b", "z"])).tolist() == [1, -1]
    assert words.indices([1, 2]).tolist() == [-1, -1]
    days, _ = Labels.of(dates(3), "row")
    assert days.indices([dt.date(2020, 1, 2), dt.date(2021, 1, 1)]).tolist() == [1, -1]
    assert days.indices(["2020-01-03"]).tolist() == [2]
    assert days.indices(["never"]).tolist() == [-1]


@pytest.mark.parametrize("values", [[1.0, np.nan], [None, "a"], np.array(["NaT"], "M8[D]")], ids=str)
def test_missing_names_are_refused(values):
    with pytest.raises(InputError, match="missing"):
        Labels.of(np.array(values, dtype=object) if None in values else np.array(values), "row")


def test_names_without_a_hash_are_refused():
    values = np.empty(2, object)
    values[:] = [[1], [2]]
    with pytest.raises(InputError, match="hash"):
        Labels.of(values, "row")


def test_a_million_names_are_quick():
    numbers = np.random.default_rng(0).integers(0, 100_000, 1_000_000)
    for values, seconds in ((numbers, 1.0), (numbers[:200_000].astype(str).astype(object), 3.0)):
        started = time.process_time()
        labels, places = Labels.of(values, "row")
        assert np.array_equal(labels.indices(values), places)
        assert time.process_time() - started < seconds


# Long frames

LINES = {
    "user": ["u2", "u1", "u2", "u3", "u3"],
    "item": [10, 11, 11, 10, 12],
    "stars": [4.0, None, 1.5, 2.0, 3.0],
    "trust": [1.0, 1.0, 2.0, 0.0, 3.0],
}


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, lambda d: pd.DataFrame(d).convert_dtypes()])
def test_long_frames(make):
    long = long_form(make(LINES), "user", "item", "stars", "trust")
    assert long.rows.tolist() == ["u2", "u2", "u3"]  # without the one that has no stars, and the one of no trust
    assert long.cols.tolist() == [10, 11, 12]
    assert long.values.tolist() == [4.0, 1.5, 3.0]
    assert long.weights.tolist() == [1.0, 2.0, 3.0]
    assert long.values.dtype == np.float64


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_kinds_of_names_in_long_frames(make):
    frame = make({"d": dates(3).astype("M8[us]"), "f": [0.5, 1.5, 0.5], "y": np.ones(3, np.float32)})
    long = long_form(frame, "d", "f", "y", None)
    assert long.rows.dtype.kind == "M"
    assert (long.cols.dtype, long.values.dtype, long.weights) == (np.float64, np.float32, None)


def test_categories_are_their_names():
    for frame in (
        pd.DataFrame({"c": pd.Categorical(["x", "y", "x"]), "y": [1, 2, 3]}),
        pl.DataFrame({"c": pl.Series(["x", "y", "x"], dtype=pl.Categorical), "y": [1, 2, 3]}),
    ):
        long = long_form(frame, "c", "c", "y", None)
        assert long.rows.tolist() == ["x", "y", "x"]


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_mistakes_in_long_frames(make):
    with pytest.raises(InputError, match=r"no column 'film'.*user, item, stars, trust"):
        long_form(make(LINES), "user", "film", "stars", None)
    with pytest.raises(InputError, match="not numbers"):
        long_form(make(LINES), "item", "item", "user", None)
    with pytest.raises(InputError, match="row names are missing in 'user'"):
        long_form(make(LINES | {"user": [None, "a", "b", "c", "d"]}), "user", "item", "stars", None)
    with pytest.raises(InputError, match="infinite"):
        long_form(make(LINES | {"stars": [np.inf] * 5}), "user", "item", "stars", None)
    with pytest.raises(InputError, match="not a data frame"):
        long_form(LINES, "user", "item", "stars", None)
