"""TableImputer: frames of three libraries come back whole, with their types; mistakes get a sentence."""

import datetime as dt
import decimal
import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import bifactor as bf
from bifactor.errors import InputError
from bifactor.models.factor_analysis.updates import BlockedTable
from bifactor.models.imputation.forests import Forests
from bifactor.models.imputation.stacking import Stack

N = 60


def holed(values, rng):
    return [None if rng.random() < 0.2 else value for value in values]


@pytest.fixture(scope="module")
def every():
    """A column of every type, all of which follow one number."""
    rng = np.random.default_rng(0)
    u = rng.standard_normal(N)
    thirds = np.digitize(u, [-0.5, 0.5])
    start, hours = dt.datetime(2020, 1, 1), [dt.timedelta(hours=float(x)) for x in u]
    columns = {
        "int8": (np.rint(30 * u).astype(int).tolist(), pl.Int8),
        "uint64": ([2**63 + int(1e6 * x) for x in u], pl.UInt64),
        "int64": ([2**60 + int(1e6 * x) for x in u], pl.Int64),
        "float32": (u.tolist(), pl.Float32),
        "decimal": ([decimal.Decimal(f"{x:.2f}") for x in u], pl.Decimal(10, 2)),
        "boolean": ((u > 0).tolist(), pl.Boolean),
        "date": ([dt.date(2020, 1, 1) + dt.timedelta(days=int(30 * x)) for x in u], pl.Date),
        "milliseconds": ([start + h for h in hours], pl.Datetime("ms")),
        "zone": ([start + h for h in hours], pl.Datetime("ns", "Asia/Tokyo")),
        "duration": (hours, pl.Duration("us")),
        "category": (np.array(["x", "y", "z"])[thirds].tolist(), pl.Categorical),
        "enum": (np.array(["p", "q", "r"])[thirds].tolist(), pl.Enum(["p", "q", "r", "unseen"])),
        "word": (np.array(["a", "b", "c"])[thirds].tolist(), pl.String),
        "constant": (["same"] * N, pl.String),
        "grade": (np.digitize(u, [-1, 0, 1]).tolist(), pl.Int32),
    }
    frame = pl.DataFrame({name: pl.Series(holed(values, rng), dtype=kind) for name, (values, kind) in columns.items()})
    return frame.with_columns(pl.Series("names", [f"n{k}" for k in range(N)]))


FORMS = {
    "polars": lambda frame: frame,
    "arrow": lambda frame: frame.to_arrow(),
    "pandas": lambda frame: frame.drop("decimal").to_pandas(),
    "pandas with arrow": lambda frame: frame.to_pandas(use_pyarrow_extension_array=True),
}


@pytest.fixture(params=FORMS)
def frame(request, every):
    return FORMS[request.param](every)


def columns_of(frame):
    names = getattr(frame, "column_names", None) or list(frame.columns)
    return {name: frame[name] for name in names}


def type_of(column):
    return column.type if hasattr(column, "type") else column.dtype


def cells_of(column):
    cells = column.to_pylist() if hasattr(column, "to_pylist") else column.to_list()
    return [None if cell is None or cell is pd.NaT or cell is pd.NA or cell != cell else cell for cell in cells]


def test_every_type_comes_back_without_holes(frame):
    model = bf.TableImputer(random_state=0).fit(frame)
    for full in (model.transform(frame), *model.sample(frame, 2, random_state=0)):
        assert type(full) is type(frame)
        before, after = columns_of(frame), columns_of(full)
        assert list(before) == list(after)
        for name in before:
            assert type_of(after[name]) == type_of(before[name]), name
            old, new = cells_of(before[name]), cells_of(after[name])
            assert None not in new, name
            assert all(a == b for a, b in zip(old, new, strict=True) if a is not None), name
    assert model.kinds_["names"] == "keep"
    assert model.kinds_["grade"] == "ordinal"
    assert all(score["error"] < 0.7 * score["baseline"] for score in model.scores_.values())


def test_times_and_integers_are_near_their_neighbours(every):
    full = bf.TableImputer(random_state=0).fit_transform(every)
    for name in ("int64", "uint64", "zone", "date"):
        assert full[name].min() >= every[name].min()
        assert full[name].max() <= every[name].max()
    assert str(full["zone"].dtype.time_zone) == "Asia/Tokyo"


def test_days_stay_days_and_have_bounds():
    rng = np.random.default_rng(0)
    u = rng.standard_normal(60)
    days = pd.Series(pd.Timestamp("2020-01-01") + pd.to_timedelta(np.rint(50 * u), "D"))
    frame = pd.DataFrame({"day": days.where(u < 1), "u": u, "lasts": days - days.min()})
    ends = dt.datetime(2020, 1, 1), np.datetime64("2020-02-01")
    model = bf.TableImputer(bounds={"day": ends}, random_state=0).fit(frame)
    told = model.transform(frame)["day"][u >= 1]
    assert (told == told.dt.normalize()).all()
    assert told.between(*ends).all()
    assert model.scores_["day"]["metric"] == "rmse in days"
    known = frame["day"].dropna()
    apart = (known - max(known.mean(), pd.Timestamp(ends[0]))) / pd.Timedelta("1D")  # the mean within the bounds
    assert model.scores_["day"]["baseline"] == pytest.approx(np.sqrt(np.mean(apart**2)))
    bf.TableImputer(bounds={"lasts": (dt.timedelta(0), dt.timedelta(days=90))}).fit(frame)
    with pytest.raises(InputError, match=r"bounds of 'day' are .* Pass two increasing times"):
        bf.TableImputer(bounds={"day": ("a", "b")}).fit(frame)


def test_ordered_categories_are_grades_in_their_order():
    levels = ["low", "mid", "high"]
    rng = np.random.default_rng(0)
    u = rng.standard_normal(150)
    grade = np.array(levels)[np.digitize(u, [-0.5, 0.5])]
    frame = pd.DataFrame({"grade": pd.Categorical(grade, levels, ordered=True), "word": grade, "x": u})
    frame.loc[::4, ["grade", "word"]] = None
    model = bf.TableImputer(columns={"word": levels}, random_state=0).fit(frame)
    assert model.kinds_ == {"grade": "ordinal", "word": "ordinal", "x": "number"}
    assert model.levels_ == {"grade": levels, "word": levels}
    assert model.scores_["grade"]["metric"] == "mae"
    full = model.transform(frame)
    assert np.mean(full["grade"][::4] == grade[::4]) > 0.8
    assert full["grade"].cat.ordered


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(3)
    u = rng.standard_normal(200)
    city = np.array(["Bern", "Oslo", "Rome"])[np.digitize(u + 0.2 * rng.standard_normal(200), [-0.5, 0.5])]
    frame = pd.DataFrame({"city": city, "x": u, "flag": u > 0}).astype({"flag": "boolean"})
    frame.loc[::5, "city"] = None
    return frame, bf.TableImputer(random_state=0).fit(frame)


def test_probabilities(fitted):
    frame, model = fitted
    P = model.predict_proba(frame, "city")
    assert P.shape == (200, 3)
    np.testing.assert_allclose(P.sum(axis=1), 1)
    full = model.transform(frame)["city"].to_numpy()
    np.testing.assert_array_equal(np.array(model.levels_["city"])[P.argmax(axis=1)][::5], full[::5])
    both = model.predict_proba(frame)
    np.testing.assert_array_equal(both, np.hstack([P, model.predict_proba(frame, "flag")]))
    with pytest.raises(InputError, match=r"column='x' is not a column with levels\. Choose from 'city', 'flag'"):
        model.predict_proba(frame, "x")
    assert not hasattr(bf.TableImputer().fit(np.random.default_rng(0).random((20, 2))), "predict_proba")


def test_words_that_the_fit_had_not_stay_and_tell_nothing(fitted):
    _, model = fitted
    new = pd.DataFrame({"city": ["Paris", None], "x": [None, 2.0], "flag": [None, None]})
    full = model.transform(new.astype({"flag": "boolean", "x": float}))
    assert full["city"].tolist() == ["Paris", "Rome"]
    assert abs(full["x"][0]) < 0.7
    with pytest.raises(InputError, match="Column 'city' held text in the fit, but now numbers"):
        model.transform(pd.DataFrame({"city": [1.0], "x": [1.0], "flag": [True]}))
    with pytest.raises(InputError, match="Column 'x' held numbers in the fit, but now other cells"):
        model.transform(pd.DataFrame({"city": ["Rome"], "x": ["y"], "flag": [True]}))


def test_pickles_and_pipelines(fitted):
    frame, model = fitted
    pd.testing.assert_frame_equal(pickle.loads(pickle.dumps(model)).transform(frame), model.transform(frame))
    pipe = make_pipeline(bf.TableImputer(random_state=0), OneHotEncoder(handle_unknown="ignore"), LogisticRegression())
    y = frame["x"] + np.random.default_rng(0).standard_normal(200) > 0
    assert pipe.fit(frame[["city", "flag"]], y).score(frame[["city", "flag"]], y) > 0.7


def test_draws_differ_where_there_are_holes_alone(fitted):
    frame, model = fitted
    draws = model.sample(frame, 8, random_state=0)
    known = frame["city"].notna()
    assert all((draw["city"][known] == frame["city"][known]).all() for draw in draws)
    assert len({tuple(draw["city"]) for draw in draws}) > 1
    assert tuple(model.sample(frame, 1, random_state=0)[0]["city"]) == tuple(draws[0]["city"])
    with pytest.raises(InputError, match="m=0 is not an integer"):
        model.sample(frame, 0)


def test_rubins_rules_cover_a_mean():
    """Means of columns of which the upper half is often missing, by 95 % intervals from five draws."""
    inside = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        x = rng.standard_normal(150)
        y = x + 0.5 * rng.standard_normal(150)
        X = np.column_stack([x, np.where(rng.random(150) < np.where(x > 0, 0.6, 0.1), np.nan, y)])
        draws = [
            draw[:, 1] for draw in bf.TableImputer(effort="fast", random_state=0).fit(X).sample(X, 5, random_state=seed)
        ]
        within, between = np.mean([d.var(ddof=1) / 150 for d in draws]), np.var([d.mean() for d in draws], ddof=1)
        inside.append(abs(np.mean(draws, axis=0).mean()) < 2.1 * np.sqrt(within + 1.2 * between))
    assert np.mean(inside) >= 0.8


def test_bounds_and_kinds_that_are_given():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(0, 10, 80), rng.integers(0, 3, 80)]).astype(float)
    X[:, 0] += 5 * X[:, 1]
    X[::4, 0] = np.nan
    told = bf.TableImputer(bounds={0: (0, 12)}, columns={1: "category"}, random_state=0).fit(X)
    assert told.transform(X)[::4, 0].max() <= 12
    assert told.kinds_ == {0: "number", 1: "category"}
    assert bf.TableImputer(columns={1: "keep"}).fit(X).kinds_[1] == "keep"


@pytest.mark.parametrize("mark", [-9, "?"])
def test_other_marks_of_holes(mark):
    frame = pd.DataFrame({"x": [1.5, 2.5, -9.0, 4.5, 1.0, 2.0], "w": ["a", "b", "?", "b", "a", "b"]})
    full = bf.TableImputer(missing_values=mark, random_state=0).fit_transform(frame)
    column = "x" if mark == -9 else "w"
    changed = full != frame
    assert changed.to_numpy().sum() == 1
    assert changed[column][2]
    if mark == -9:
        array = bf.TableImputer(missing_values=-9).fit_transform(frame[["x"]].to_numpy())
        assert array[2, 0] > 0


def test_marks_of_other_libraries_and_masked_arrays():
    X = np.random.default_rng(0).standard_normal((20, 3))
    X[::4, 1] = -9
    expected = bf.TableImputer(missing_values=-9, random_state=0).fit_transform(X)
    for mark in (np.int64(-9), np.float32(-9)):
        np.testing.assert_array_equal(bf.TableImputer(missing_values=mark, random_state=0).fit_transform(X), expected)
    masked = np.ma.masked_equal(X, -9)
    np.testing.assert_array_equal(bf.TableImputer(random_state=0).fit_transform(masked), expected)
    frame = pd.DataFrame({"x": pd.array([1, 5, None, 3], "Int64"), "w": pd.Categorical(["a", "b", None, "a"])})
    assert not bf.TableImputer(missing_values=pd.NA).fit_transform(frame).isna().any(axis=None)


def test_arrays_of_objects():
    rng = np.random.default_rng(0)
    u = rng.standard_normal(80)
    X = np.empty((80, 3), object)
    X[:, 0], X[:, 1], X[:, 2] = u, np.where(u > 0, "high", "low"), None
    X[::5, 0], X[1::5, 1] = np.nan, None
    with pytest.warns(UserWarning, match="dropped: 2"):
        full = bf.TableImputer(random_state=0, add_indicator=True).fit_transform(X)
    assert full.shape == (80, 5)
    assert full.dtype == object
    assert np.mean(full[1::5, 1] == np.where(u[1::5] > 0, "high", "low")) > 0.8
    assert all(isinstance(cell, float) for cell in full[:, 0])
    np.testing.assert_array_equal(full[:, 3].astype(bool), np.arange(80) % 5 == 1)


def test_numbers_of_numpy_among_objects_are_known():
    cells = [np.float64(k) for k in range(30)]
    cells[3] = None
    frame = pd.DataFrame({"x": pd.Series(cells, dtype=object), "y": np.arange(30.0)})
    full = bf.TableImputer(random_state=0).fit_transform(frame)
    assert full["x"].tolist()[:3] == [0, 1, 2]
    assert full["x"][3] == pytest.approx(3, abs=1)


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1.0, 1e160, 1e300])
def test_the_size_of_numbers_does_not_matter(scale):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 1)) + 0.1 * rng.standard_normal((40, 4))
    X[::4, 1] = np.nan
    expected = bf.TableImputer(random_state=0).fit_transform(X)
    units = np.array([1, scale, 1, 1])
    model = bf.TableImputer(random_state=0).fit(X * units)
    np.testing.assert_allclose(model.transform(X * units) / units, expected, rtol=1e-9)
    assert model.scores_[1]["error"] < 0.3 * model.scores_[1]["baseline"]


def test_new_rows_may_have_fewer_categories_and_no_integer():
    rng = np.random.default_rng(0)
    u = rng.standard_normal(90)
    words = np.array(["x", "y", "z"])[np.digitize(u, [-0.5, 0.5])]
    table = pl.DataFrame({"u": u, "w": words, "long": [2**60 + int(1e6 * x) for x in u]})
    table = table.with_columns(pl.col("w").cast(pl.Categorical))
    new = pl.DataFrame({"u": [-2.0, 2.0], "w": ["x", None], "long": [None, None]}, schema_overrides={"long": pl.Int64})
    new = new.with_columns(pl.col("w").cast(pl.Categorical))
    for turn in (lambda f: f, lambda f: f.to_arrow(), lambda f: f.to_pandas().astype({"long": "Int64"})):
        full = bf.TableImputer(random_state=0).fit(turn(table)).transform(turn(new))
        assert cells_of(full["w"]) == ["x", "z"]
        low, high = cells_of(full["long"])
        assert low < 2**60 < high
    frame = table.to_pandas()
    frame["w"] = pd.Categorical(words, ["x", "y", "z"], ordered=True)
    new = new.to_pandas().astype({"long": "Int64"}).assign(w=pd.Categorical(["x", None], ["x"], ordered=True))
    with pytest.raises(InputError, match="'w' of X lacks the level 'z' of the fit"):
        bf.TableImputer(random_state=0).fit(frame).transform(new)
    dates = pd.DataFrame({"d": pd.to_datetime(["2020-01-01", "2020-06-01", None] * 5), "x": np.arange(15.0)})
    assert not bf.TableImputer(columns={"d": "category"}).fit_transform(dates).isna().any(axis=None)


@pytest.mark.filterwarnings("ignore:Columns without any known cell", "ignore:Skipping features")
@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("indicator", [True, False])
def test_shape_and_names_are_those_of_the_simple_imputer(keep, indicator):
    table = np.random.default_rng(0).standard_normal((40, 5))
    table[::3, 1], table[:, 3] = np.nan, np.nan
    frame = pd.DataFrame(table, columns=list("abcde"), index=np.arange(40) + 7)
    settings = {"keep_empty_features": keep, "add_indicator": indicator}
    ours, theirs = bf.TableImputer(**settings).fit(frame), SimpleImputer(**settings).fit(frame)
    assert ours.get_feature_names_out().tolist() == theirs.get_feature_names_out().tolist()
    out, expected = ours.transform(frame), theirs.set_output(transform="pandas").transform(frame)
    assert out.columns.equals(expected.columns)
    assert out.index.equals(frame.index)
    marks = [name for name in out.columns if name.startswith("missingindicator")]
    np.testing.assert_array_equal(out[marks], expected[marks])
    array = bf.TableImputer(**settings).fit_transform(table)
    assert array.shape == out.shape
    if keep:
        assert not out["d"].any()


def test_single_precision_stays_and_integers_do():
    X = np.random.default_rng(3).standard_normal((40, 5)).astype(np.float32)
    X[::3, 2] = np.nan
    assert bf.TableImputer().fit_transform(X).dtype == np.float32
    integers = np.arange(20).reshape(5, 4)
    np.testing.assert_array_equal(bf.TableImputer().fit_transform(integers), integers)


def test_it_beats_other_imputers():
    rng = np.random.default_rng(0)
    truth = rng.standard_normal((200, 3)) @ rng.standard_normal((3, 10)) + 0.3 * rng.standard_normal((200, 10))
    hidden = rng.random(truth.shape) < 0.25
    shown = np.where(hidden, np.nan, truth)
    imputers = bf.TableImputer(random_state=0), KNNImputer(), SimpleImputer()
    ours, near, mean = (np.std((imputer.fit_transform(shown) - truth)[hidden]) for imputer in imputers)
    assert ours < 0.7 * near < mean


def test_columns_of_one_value_and_of_none():
    frame = pl.DataFrame({"x": [1.5, 2.0, None, 4.0], "one": ["a", None, "a", "a"], "none": [None] * 4})
    with pytest.warns(UserWarning, match="dropped: none"):
        full = bf.TableImputer().fit_transform(frame)
    assert full["one"].to_list() == ["a"] * 4
    assert full.columns == ["x", "one"]
    kept = bf.TableImputer(keep_empty_features=True).fit_transform(frame)
    assert kept["none"].null_count() == 4


WRONG = {
    "no rows": ({}, pl.DataFrame({"x": [1.0], "w": ["a"]}).head(0), r"\(shape=\(0, 2\)\) while a minimum of 1"),
    "lists": ({}, pl.DataFrame({"x": [1.0, 2.0], "w": [[1], [2]]}), "Column 'w' of X holds List"),
    "times of day": ({}, pd.DataFrame({"w": [dt.time(1), None]}, dtype=object), "'w' of X holds time"),
    "arrays": ({}, pd.DataFrame({"x": [1.0, 2.0], "w": [np.zeros(2)] * 2}), "'w' of X holds ndarray"),
    "times with zones and without": (
        {},
        pd.DataFrame({"w": [dt.datetime(2020, 1, 1), dt.datetime(2020, 1, 2, tzinfo=dt.UTC)]}, dtype=object),
        "Column 'w' of X holds times with zones and times without",
    ),
    "infinity": ({}, pl.DataFrame({"x": [1.0, np.inf, 2.5]}), "infinity, or nearly, in row 1, column 'x'"),
    "names alone": ({}, pl.DataFrame({"x": ["a", "b", "c"]}), "All columns of X are kept"),
    "nothing known": ({}, pl.DataFrame({"x": [None, None]}, schema={"x": pl.Float64}), "No entry of X is known"),
    "lists in an array": ({}, np.array([["a", 1.0], [b"b", 2.0]], object), "Column 0 of X holds bytes"),
    "wide integers": ({}, pl.DataFrame({"x": [1, 2, 3]}, schema={"x": pl.Int128}), "Column 'x' of X holds Int128"),
    "huge numbers": ({}, np.array([[1e308], [1.0]]), "as large as 1e\\+308, whose differences"),
    "two marks of holes": ({"missing_values": [1, 2]}, None, r"missing_values=\[1, 2\] is not a single number or word"),
    "another name": ({"columns": {"z": "number"}}, None, "columns names 'z', which is not a column of X"),
    "another kind": ({"columns": {"x": "big"}}, None, "Column 'x' has the unknown kind 'big'. Choose number"),
    "levels that are few": ({"columns": {"w": ["a"]}}, None, "Pass a kind, or distinct levels in order"),
    "a level that is missing": ({"columns": {"w": ["a", "c"]}}, None, "Column 'w' has 'b', which is not among"),
    "words as numbers": ({"columns": {"w": "number"}}, None, "'w' is declared as numbers, but has 'a'"),
    "three booleans": ({"columns": {"x": "boolean"}}, None, "declared as boolean, but has 4 levels"),
    "no dict": ({"columns": 3}, None, "columns=3 is not a dict"),
    "bounds of words": ({"bounds": {"w": (0, 1)}}, None, "bounds names 'w', which is not a column of numbers"),
    "bounds that fall": ({"bounds": {"x": (2, 1)}}, None, r"bounds of 'x' are \(2, 1\)"),
    "bounds without an integer": (
        {"bounds": {"x": (0.2, 0.8)}},
        pl.DataFrame({"x": [1, 20, 300]}),
        r"Column 'x' holds integers, none of which is within its bounds \(0.2, 0.8\). Widen them",
    ),
    "bounds beyond all integers": (
        {"bounds": {"x": (1e30, 1e31)}},
        pl.DataFrame({"x": [1, 20, 300]}),
        "Column 'x' holds integers, none of which is within its bounds",
    ),
    "bounds within a day": (
        {"bounds": {"x": (dt.datetime(2020, 1, 1, 3), dt.datetime(2020, 1, 1, 9))}},
        pl.DataFrame({"x": [dt.date(2020, 1, 1), dt.date(2021, 1, 1)]}),
        "Column 'x' holds whole days, none of which is within its bounds",
    ),
    "effort": ({"effort": "none"}, None, "effort='none' is unknown"),
    "flag": ({"add_indicator": 1}, None, "add_indicator=1 is not a boolean"),
    "rounds": ({"max_iter": 0}, None, "max_iter=0"),
    "tolerance": ({"tol": -1}, None, "tol=-1"),
    "seed": ({"random_state": "x"}, None, "random_state='x'"),
}


@pytest.mark.parametrize("case", WRONG)
def test_mistakes_get_a_sentence(case):
    settings, X, words = WRONG[case]
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.5, 7.0], "w": ["a", "b", "a", None]}) if X is None else X
    with pytest.raises(InputError, match=words):
        bf.TableImputer(**settings).fit(frame)


def test_columns_that_hold_anything_can_be_kept():
    frame = pl.DataFrame({"x": [1.0, None, 2.5], "w": [[1], [2], None]})
    full = bf.TableImputer(columns={"w": "keep"}).fit_transform(frame)
    assert full["w"].to_list() == [[1], [2], None]
    assert full["x"].null_count() == 0


def followed(value, holes=True):
    """A value for each of 60 numbers u, as `value` gives it, and for every fifth None."""
    u = np.random.default_rng(0).standard_normal(N)
    return u, [None if holes and k % 5 == 0 else value(x) for k, x in enumerate(u.tolist())]


START = dt.datetime(2020, 1, 1)
OBJECTS = {
    "decimals": lambda x: decimal.Decimal(f"{x:.2f}"),
    "dates": lambda x: (START + dt.timedelta(days=round(300 * x))).date(),
    "times": lambda x: START + dt.timedelta(days=x),
    "times with a zone": lambda x: (START + dt.timedelta(days=x)).replace(tzinfo=dt.timezone(dt.timedelta(hours=9))),
    "durations": lambda x: dt.timedelta(days=x),
    "times of pandas": lambda x: pd.Timestamp(START + dt.timedelta(days=x)),
    "durations of pandas": lambda x: pd.Timedelta(dt.timedelta(days=x)),
    "times of NumPy": lambda x: np.datetime64(START + dt.timedelta(days=x), "s"),
    "integers": lambda x: round(100 * x),
}


def test_not_a_number_among_decimals_is_missing():
    u, cells = followed(OBJECTS["decimals"])
    for name in ("NaN", "sNaN"):
        holes = pd.DataFrame({"u": u, "c": pd.Series([decimal.Decimal(name) if c is None else c for c in cells])})
        full = bf.TableImputer(random_state=0).fit_transform(holes)["c"].tolist()
        assert all(cell.is_finite() for cell in full)


@pytest.mark.parametrize("kind", OBJECTS)
@pytest.mark.parametrize("form", ["pandas", "polars", "array"])
def test_objects_are_numbers_or_times_and_are_filled_with_their_like(kind, form):
    u, cells = followed(OBJECTS[kind])
    if form == "array":
        table = np.empty((N, 3), object)
        table[:, 0], table[:, 1], table[:, 2] = u, cells, np.where(u > 0, "high", "low")
        take, new = (lambda full: full[:, 1].tolist()), table[[0, 5]]
    elif form == "polars":
        table = pl.DataFrame({"u": u, "c": pl.Series(cells, dtype=pl.Object)})
        take, new = (lambda full: full["c"].to_list()), table[[0, 5]]
    else:
        table = pd.DataFrame({"u": u, "c": pd.Series(cells, dtype=object)})
        take, new = (lambda full: full["c"].tolist()), table.iloc[[0, 5]]
    model = bf.TableImputer(random_state=0).fit(table)
    assert list(model.kinds_.values())[1] == "number"
    found, first = take(model.transform(table)), cells[1]
    assert {type(cell) for cell in found} == {type(first)}
    assert all(a == b for a, b in zip(cells, found, strict=True) if a is not None)
    assert all(type(cell) is type(first) for cell in take(model.transform(new)))  # none of these rows is known
    truth = [OBJECTS[kind](x) for x in u.tolist()]
    apart = [abs(float((a - b) / (max(truth) - min(truth)))) for a, b in zip(found, truth, strict=True)]
    assert max(apart) < 0.2
    if kind == "decimals":
        assert {cell.as_tuple().exponent for cell in found} == {-2}
    if kind == "times with a zone":
        assert {cell.tzinfo for cell in found} == {first.tzinfo}


SPARSE = {
    "numbers": (lambda x: float(x), pd.SparseDtype("float64", np.nan)),
    "mostly zeros": (lambda x: float(max(x, 0)), pd.SparseDtype("float64", 0.0)),
    "integers": (lambda x: 3 * (x > 0), pd.SparseDtype("int64", 0)),
    "booleans": (lambda x: x > 0, pd.SparseDtype("bool", False)),
}


@pytest.mark.parametrize("kind", SPARSE)
def test_sparse_columns_of_pandas_stay_sparse(kind):
    value, dtype = SPARSE[kind]
    u, cells = followed(value, holes=dtype.subtype.kind == "f")
    plain = pd.DataFrame({"u": u, "c": pd.Series(cells, dtype=dtype.subtype)}).set_index(np.arange(N) + 7)
    frame = plain.astype({"c": dtype})
    frame.iloc[3, 0] = plain.iloc[3, 0] = np.nan
    full = bf.TableImputer(random_state=0, add_indicator=True).fit_transform(frame)
    expected = bf.TableImputer(random_state=0, add_indicator=True).fit_transform(plain)
    assert full["c"].dtype == dtype
    assert full.index.equals(frame.index)
    pd.testing.assert_frame_equal(full.astype({"c": dtype.subtype}), expected)


def test_rows_of_a_mixed_column_may_hold_only_its_numbers():
    u, cells = followed(lambda x: "low" if x < -0.5 else float(x > 0.5))
    frame = pd.DataFrame({"u": u, "c": pd.Series(cells, dtype=object)})
    for columns in ("auto", {"c": ["low", 0.0, 1.0]}):
        model = bf.TableImputer(columns=columns, random_state=0).fit(frame)
        full, some = model.transform(frame), frame.index[u >= -0.5]
        assert full["c"].notna().all()
        part = frame.loc[some].assign(c=frame["c"][some].astype(float))  # numbers, as in a file without "low"
        assert np.mean(model.transform(part)["c"].astype(str) == full["c"][some].astype(str)) > 0.9
        np.testing.assert_array_equal(part["c"].dropna(), model.transform(part)["c"][part["c"].notna()])


def test_integers_are_filled_within_bounds_and_have_levels_that_are_integers():
    u, cells = followed(lambda x: round(10 * x))
    frame = pd.DataFrame({"u": u, "c": pd.array(cells, "Int64"), "g": pd.array(np.digitize(u, [-1, 0, 1]), "Int64")})
    model = bf.TableImputer(bounds={"c": (0.6, 4.5)}, random_state=0).fit(frame)
    told = model.transform(frame)["c"][::5]
    assert set(told) >= {1, 4}
    assert told.between(1, 4).all()
    assert model.levels_["g"] == [0, 1, 2, 3]
    assert all(type(level) is int for level in model.levels_["g"])


@pytest.mark.parametrize("form", ["objects", "polars", "pyarrow"])
def test_decimals_are_filled_within_bounds_with_as_many_places(form):
    u, cells = followed(lambda x: decimal.Decimal(f"{10 * x:.1f}"))
    typed = pl.DataFrame({"u": u, "c": pl.Series(cells, dtype=pl.Decimal(10, 1))})
    objects = pd.DataFrame({"u": u, "c": pd.Series(cells, dtype=object)})
    table = {"objects": objects, "polars": typed, "pyarrow": typed.to_arrow()}[form]
    full = bf.TableImputer(bounds={"c": (0.51, 3.57)}, random_state=0).fit_transform(table)["c"]
    told = np.array((full.to_pylist() if form == "pyarrow" else full.to_list())[::5], float)
    assert (told.min(), told.max()) == (0.6, 3.5)
    exact = bf.TableImputer(bounds={"c": (0.7, 3.3)}, random_state=0).fit_transform(table)["c"]
    told = np.array((exact.to_pylist() if form == "pyarrow" else exact.to_list())[::5], float)
    assert (told.min(), told.max()) == (0.7, 3.3)
    with pytest.raises(InputError, match=r"'c' holds decimals like .*, none of which is within its bounds"):
        bf.TableImputer(bounds={"c": (0.51, 0.59)}).fit(table)
    bf.TableImputer(bounds={"c": (-1e30, 1e300)}).fit(table)


def test_holes_of_text_that_is_kept_get_a_warning_unless_it_was_declared():
    u, cells = followed(lambda x: f"name {x}")
    frame = pd.DataFrame({"u": u, "c": cells})
    with pytest.warns(UserWarning, match=r"rarely repeats stay empty: c \(12\)"):
        assert bf.TableImputer().fit_transform(frame)["c"].isna().sum() == 12
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bf.TableImputer(columns={"c": "keep"}).fit(frame)
        bf.TableImputer().fit(frame.dropna())


def test_unfitted_and_unconverged():
    X = np.random.default_rng(0).standard_normal((50, 6))
    X[::4, 1] = np.nan
    with pytest.raises(NotFittedError):
        bf.TableImputer().transform(X)
    with pytest.warns(ConvergenceWarning, match="max_iter=1 rounds"):
        model = bf.TableImputer(max_iter=1, tol=1e-9).fit(X)
    assert model.status_ is bf.Status.MAX_ITER


def pressed(owner, name, at):
    """The function of this name, during whose `at`-th call Ctrl-C is pressed."""
    function, calls = getattr(owner, name), []

    def interrupted(*arguments):
        calls.append(arguments)
        if len(calls) == at:
            raise KeyboardInterrupt
        return function(*arguments)

    return interrupted


@pytest.mark.parametrize(
    ("owner", "name", "at", "factors"),
    [
        (BlockedTable, "collect", 4, 1),
        (Forests, "of", 1, 2),
        (Stack, "of", 1, 2),
    ],
    ids=["rounds", "forests", "stack"],
)
def test_ctrl_c_keeps_what_there_is(owner, name, at, factors, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 2)) @ rng.standard_normal((2, 6)) + 0.1 * rng.standard_normal((300, 6))
    shown = np.where(rng.random(X.shape) < 0.2, np.nan, X)
    monkeypatch.setattr(owner, name, pressed(owner, name, at))
    with pytest.warns(ConvergenceWarning, match="interrupted from the keyboard"):
        model = bf.TableImputer(random_state=0).fit(shown)
    assert model.status_ is bf.Status.INTERRUPTED
    assert len(model.results_) == factors
    assert sum(result.n_iter for result in model.results_) == model.n_iter_
    full = model.transform(shown)
    assert np.sqrt(np.mean((full - X)[np.isnan(shown)] ** 2)) < 0.5
    assert np.all(np.isfinite(model.sample(shown, 2, random_state=0)))


def test_ctrl_c_before_the_second_model_has_a_round_keeps_the_first(monkeypatch):
    X = np.random.default_rng(0).standard_normal((60, 5))
    X[::4, 1] = np.nan
    plain = bf.TableImputer(effort="fast", random_state=0).fit(X)
    monkeypatch.setattr(BlockedTable, "collect", pressed(BlockedTable, "collect", plain.n_iter_ + 2))
    with pytest.warns(ConvergenceWarning, match="interrupted from the keyboard"):
        model = bf.TableImputer(random_state=0).fit(X)
    assert model.status_ is bf.Status.INTERRUPTED
    np.testing.assert_array_equal(model.transform(X), plain.transform(X))


def test_ctrl_c_before_the_first_round_is_raised(monkeypatch):
    monkeypatch.setattr(BlockedTable, "collect", pressed(BlockedTable, "collect", 1))
    with pytest.raises(KeyboardInterrupt):
        bf.TableImputer().fit(np.random.default_rng(0).standard_normal((20, 3)))


def test_draws_have_the_zeros_that_a_column_has():
    rng = np.random.default_rng(0)
    u = rng.standard_normal(400)
    x = np.where(u + rng.standard_normal(400) < 0, 0.0, np.exp(u + 0.5 * rng.standard_normal(400)))
    hidden = rng.random(400) < 0.3
    table = np.column_stack([u, np.where(hidden, np.nan, x)])
    draws = np.array([draw[hidden, 1] for draw in bf.TableImputer(random_state=0).fit(table).sample(table, 20)])
    assert np.mean(draws < x[x > 0].min()) == pytest.approx(np.mean(x == 0), abs=0.2)
    inside = (draws.min(axis=0) <= x[hidden]) & (x[hidden] <= draws.max(axis=0))
    assert inside.mean() > 0.85


@pytest.mark.parametrize("unit", [1e-6, 1e6])
@pytest.mark.parametrize("zero", [0.0, 1e6])
def test_units_and_zeros_of_numbers_do_not_matter(unit, zero):
    """Up to rounding, which is 10⁶ times larger if the zero is 10⁶ standard deviations away."""
    rng = np.random.default_rng(0)
    u = rng.standard_normal(90)
    frame = pd.DataFrame({"u": u, "v": np.exp(u + 0.3 * rng.standard_normal(90)), "w": np.where(u > 0.3, "a", "b")})
    frame = frame.mask(rng.random(frame.shape) < 0.2)
    other = frame.assign(v=(frame["v"] + zero) * unit)
    one, two = (bf.TableImputer(random_state=0).fit_transform(table) for table in (frame, other))
    np.testing.assert_allclose(two["v"] / unit - zero, one["v"], atol=1e-7)
    np.testing.assert_allclose(two["u"], one["u"], atol=1e-7)
    assert two["w"].tolist() == one["w"].tolist()
