"""Whatever is passed for a table, each estimator takes it, or says in a sentence which column is wrong."""

import re
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone

import bifactor as bf
from bifactor.errors import InputError, KindError

ESTIMATORS = {
    "MatrixCompletion": bf.MatrixCompletion(n_components=1, ridge=1.0),
    "OneBitCompletion": bf.OneBitCompletion(n_components=1, ridge=1.0),
    "FactorAnalysis": bf.FactorAnalysis(1, max_iter=5, tol=0),
    "LogisticPCA": bf.LogisticPCA(n_components=1, ridge=1.0),
    "PoissonPCA": bf.PoissonPCA(n_components=1, ridge=1.0),
}
each = pytest.mark.parametrize("estimator", ESTIMATORS.values(), ids=ESTIMATORS)

BITS = np.random.default_rng(0).integers(0, 2, (8, 3)).astype(float)
SPIKE = np.where(np.arange(24).reshape(8, 3) == 7, np.inf, BITS)
DAYS = pd.date_range("2020-01-01", periods=8)
NUMBER = "which is not a number. Leave such columns out, or encode them as numbers."
TIME = "contains dates or times, not numbers. Leave it out, or pass numbers such as days."
REAL = "Pass real and imaginary parts as separate columns."

WRONG = {
    "words in a frame": (
        pd.DataFrame({"a": BITS[:, 0], "city": ["Rome"] * 8}),
        f"Column 'city' of X contains 'Rome', {NUMBER}",
    ),
    "words in polars": (
        pl.DataFrame({"a": BITS[:, 0], "city": ["Rome"] * 8}),
        f"Column 'city' of X contains 'Rome', {NUMBER}",
    ),
    "text dtype": (pd.DataFrame({"a": pd.array(["x", None] * 4, "string")}), f"Column 'a' of X contains 'x', {NUMBER}"),
    "categories": (pd.DataFrame({"a": pd.Categorical(list("xyxyxyxy"))}), f"Column 'a' of X contains 'x', {NUMBER}"),
    "a decimal comma": (pd.DataFrame({"a": ["1", "1,5"]}), f"Column 'a' of X contains '1,5', {NUMBER}"),
    "an array of words": (np.array([["1", "b"]]), f"Column 1 of X contains 'b', {NUMBER}"),
    "objects": (np.array([[1.0, "long " * 99]], object), "contains 'long long long long long long long lon…, which is"),
    "complex": (BITS + 1j, f"Complex data not supported: column 0 of X contains (1+1j). {REAL}"),
    "a complex column": (
        pd.DataFrame({"a": BITS[:, 0], "b": BITS[:, 1] * 1j + 1}),
        "supported: column 'b' of X contains (1+",
    ),
    "dates": (pd.DataFrame({"a": BITS[:, 0], "when": DAYS}), f"Column 'when' of X {TIME}"),
    "dates alone": (pd.DataFrame({"when": DAYS}), f"Column 'when' of X {TIME}"),
    "an array of dates": (DAYS.to_numpy()[:, None], f"X {TIME}"),
    "dates in polars": (pl.DataFrame({"when": DAYS.to_numpy()}), f"Column 'when' of X {TIME}"),
    "times": (pd.DataFrame({"for": DAYS - DAYS[0]}), f"Column 'for' of X {TIME}"),
    "objects that are dates": (DAYS.astype(object).to_numpy()[:, None], "Column 0 of X contains Timestamp('2020-01-01"),
    "one dimension": (
        BITS[:, 0],
        "X has 1 dimension, but a table has 2. Reshape your data; a single row is X.reshape(1, -1).",
    ),
    "a series": (pd.Series(BITS[:, 0]), "X has 1 dimension, but a table has 2."),
    "three dimensions": (BITS.reshape(2, 4, 3), "X has 3 dimensions, but a table has 2."),
    "a number": (3.0, "X has 0 dimensions, but a table has 2."),
    "no rows": (np.empty((0, 3)), "0 sample(s) and 3 feature(s) (shape=(0, 3)) while a minimum of 1 is required."),
    "no columns": (np.empty((3, 0)), "0 feature(s) (shape=(3, 0)) while a minimum of 1 is required."),
    "no frame": (pd.DataFrame(), "(shape=(0, 0)) while a minimum of 1 is required."),
    "nothing": (None, "X is None, not a table. Pass an array or a frame"),
    "a file": ("ratings.csv", "X is 'ratings.csv', not a table. Pass an array or a frame"),
    "a dict": ({"a": [1, 0]}, "X is {'a': [1, 0]}, not a table. Pass an array or a frame"),
    "rows of several lengths": ([[1, 0], [1]], "The rows of X have different lengths. Pass a table of numbers."),
    "infinity": (SPIKE, "X contains infinity or a value too large in row 2, column 1. Pass NaN for missing entries."),
    "infinity in a frame": (
        pd.DataFrame(SPIKE, columns=list("abc")),
        "X contains infinity or a value too large in row 2, column 'b'.",
    ),
    "integers beyond floats": (
        np.array([[1, 10**400]], object),
        "X contains infinity or a value too large in row 0, column 1.",
    ),
    "columns of one name": (
        pd.DataFrame(BITS, columns=["a", "a", "b"]),
        "Some columns of X have the same name. Rename them.",
    ),
    "names of two kinds": (pd.DataFrame(BITS, columns=["a", 1, "b"]), "Some column names of X are not strings."),
    "no value": (np.full((4, 3), np.nan), "No entry of X is known. Pass at least one known entry"),
}


@pytest.mark.parametrize("case", WRONG)
@each
def test_what_is_wrong_is_said_in_a_sentence(estimator, case):
    X, sentence = WRONG[case]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(InputError) as caught:
            estimator.fit(X)
    assert sentence in str(caught.value)
    assert len(str(caught.value)) < 250
    assert "\n" not in str(caught.value)


@each
def test_a_cell_that_is_no_value_is_an_error_of_kind_too(estimator):
    with pytest.raises(KindError, match=r"Column 1 of X contains \{'a': 1\}, which is not a number .*not 'dict'"):
        estimator.fit(np.array([[1.0, {"a": 1}]], object))


@each
def test_other_columns_than_those_of_the_fit(estimator):
    frame, name = pd.DataFrame(BITS, columns=list("abc")), type(estimator).__name__
    estimator.fit(BITS)
    with pytest.raises(InputError, match=f"X has 2 features, but {name} is expecting 3 .* Pass the columns of the fit"):
        estimator.transform(BITS[:, :2])
    estimator.fit(frame)
    for X, words in (
        (frame[["c", "b", "a"]], "must be in the same order"),
        (frame[["a", "b"]], "now missing:\n- c"),
        (frame.assign(d=1.0), "unseen at fit time:\n- d"),
        (frame.rename(columns={"a": "z"}), "unseen at fit time:\n- z"),
    ):
        with pytest.raises(InputError, match=f"(?s){words}.*\nPass the columns of the fit, in the same order"):
            estimator.transform(X)


HOLES = np.where(np.arange(24).reshape(8, 3) % 7 == 3, np.nan, BITS)
frame = pd.DataFrame(HOLES, columns=list("abc"))
RIGHT = {
    "array": HOLES,
    "objects": np.where(np.isnan(HOLES), None, HOLES),
    "text of numbers": pd.DataFrame(HOLES).astype(object).map(lambda cell: cell if np.isnan(cell) else f"{cell:g}"),
    "nullable": frame.convert_dtypes(),
    "nullable booleans": frame.astype("Int64").astype("boolean"),
    "categories of numbers": frame.apply(lambda column: column.astype("category")),
    "polars": pl.DataFrame(HOLES),
    "polars, null": pl.DataFrame(HOLES).fill_nan(None),
    "polars, booleans": pl.DataFrame(HOLES).fill_nan(None).cast(pl.Boolean),
    "polars, lazy": pl.DataFrame(HOLES).lazy(),
}


@pytest.mark.parametrize("form", RIGHT)
@each
def test_every_form_of_a_table_gives_the_same_fit(estimator, form):
    wanted = estimator.fit(HOLES).transform(HOLES)
    np.testing.assert_array_equal(estimator.fit(RIGHT[form]).transform(RIGHT[form]), wanted)


@pytest.mark.filterwarnings("ignore:All 4 known entries are 1")
@pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil", "dok", "dia", "bsr"])
@each
def test_every_form_of_a_sparse_matrix(estimator, form):
    X = getattr(sparse, f"{form}_array")(np.eye(4))
    if isinstance(estimator, bf.FactorAnalysis):
        with pytest.raises(InputError, match="X is a sparse matrix, but FactorAnalysis needs a table with NaN"):
            estimator.fit(X)
        return
    table = np.eye(4) if "PCA" in type(estimator).__name__ else np.where(np.eye(4) > 0, 1.0, np.nan)
    np.testing.assert_array_equal(estimator.fit(X).transform(X), estimator.fit(table).transform(table))
    for Y, sentence in (
        (X * 1j, "Complex data not supported"),
        (type(X)(np.diag([1.0, np.inf, 1.0, 1.0])), "X contains infinity"),
        (type(X)((4, 0)), r"\(shape=\(4, 0\)\) while a minimum of 1 is required"),
    ):
        with pytest.raises(InputError, match=sentence):
            estimator.fit(Y)


def test_settings_of_qubits_that_are_no_list():
    for settings in (None, 3):
        with pytest.raises(InputError, match=f"settings is {settings}, not a list. Pass a list of strings"):
            bf.StateTomography().fit_counts(settings, [[1, 2]])
    with pytest.raises(InputError, match=re.escape("For 1 setting of 1 qubit pass (1, 2)")):
        bf.StateTomography().fit_counts(["X"], [[1, 2, 3]])


WRONG_FACTORS = {
    "NaN": (lambda Z: Z * np.nan, "Z holds 8 NaN or infinite values. Pass the result of transform."),
    "complex": (lambda Z: Z * 1j, "dtype complex128, but transform returns"),
    "too many": (lambda Z: np.hstack([Z, Z]), "of real numbers. Pass its result."),
    "a vector": (lambda Z: Z[:, 0], "Z has shape (8,) and dtype float64, but transform returns"),
    "words": (lambda Z: Z.astype(str), "Z has dtype <U32"),
}


@pytest.mark.parametrize("case", WRONG_FACTORS)
@each
def test_factors_that_transform_does_not_give(estimator, case):
    change, sentence = WRONG_FACTORS[case]
    offsets = {"offsets": False} if hasattr(estimator, "offsets") else {}
    factors = clone(estimator).set_params(**offsets).fit(BITS).transform(BITS)
    with pytest.raises(InputError) as caught:
        clone(estimator).set_params(**offsets).fit(BITS).inverse_transform(change(factors))
    assert sentence in str(caught.value)


def test_names_without_a_hash_are_refused():
    frame = pd.DataFrame({"user": ["a", "b"], "item": [1, 2], "rating": [1.0, 2.0]})
    model = bf.MatrixCompletion(n_components=1, ridge=1.0).fit_long(frame)
    for rows in ({"a"}, {"a": 1}):
        with pytest.raises(InputError, match="Some row names are not hashable"):
            model.predict(rows, 1)
