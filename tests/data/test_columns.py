"""Frames of every library, parquet and JSON lines say what a csv says; mistakes are refused in a sentence."""

import datetime as dt
import decimal
import gzip
import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from bifactor.data import read
from bifactor.errors import BifactorError, InputError

LINES = {
    "user": ["u2", "u1", "u2", "u3", "u3"],
    "item": [10, 11, 11, 10, 12],
    "stars": [4.0, None, 1.5, 2.0, 3.0],
    "trust": [1.0, 1.0, 2.0, 0.0, 3.0],
}
STARS = {("u2", 10): (4.0, 1.0), ("u2", 11): (1.5, 2.0), ("u3", 12): (3.0, 3.0)}
"""Without the line that has no stars, and the one of no trust."""

FRAMES = {
    "pandas": pd.DataFrame,
    "pandas, nullable": lambda lines: pd.DataFrame(lines).convert_dtypes(),
    "pandas, arrow": lambda lines: pd.DataFrame(lines).convert_dtypes(dtype_backend="pyarrow"),
    "pandas, objects": lambda lines: pd.DataFrame(lines).astype(object),
    "pandas, another index": lambda lines: pd.DataFrame(
        lines, index=[7, 7, 3, 1, 0][: len(next(iter(lines.values())))]
    ),
    "polars": pl.DataFrame,
    "polars, lazy": pl.LazyFrame,
    "pyarrow": pa.table,
}


@pytest.fixture(params=FRAMES)
def make(request):
    return FRAMES[request.param]


def pairs(data):
    """The names of each entry."""
    assert data.shape == (len(data.row_names), len(data.column_names))
    return list(zip(data.row_names[data.rows].tolist(), data.column_names[data.cols].tolist(), strict=True))


def entries(data):
    """Names to values."""
    return dict(zip(pairs(data), data.values.tolist(), strict=True))


def test_columns_that_are_named(make):
    data = read(make(LINES), row="user", col="item", value="stars", weight="trust")
    found = zip(data.values.tolist(), data.weights.tolist(), strict=True)
    assert dict(zip(pairs(data), found, strict=True)) == STARS
    assert data.values.dtype == data.weights.dtype == np.float64
    assert data.shape == (2, 3)  # names that are only in lines left out are gone
    assert data.origin.header == ("user", "item", "stars")
    assert (data.origin.missing, data.origin.wide) == (2, False)


def test_columns_are_found_by_their_names_numbers_and_order(make):
    lines = {"rating": [1.0, 2.0], "day": [5, 6], "movieId": ["x", "y"], "User": [7, 8]}
    wanted = {(7, "x"): 1.0, (8, "y"): 2.0}
    assert entries(read(make(lines))) == wanted
    assert entries(read(make(lines), row="User", col="movieId", value="rating")) == wanted
    assert entries(read(make(lines), row="4", col="3", value="1")) == wanted
    assert entries(read(make({"a": [7, 8], "b": ["x", "y"], "c": [1, 2]}))) == wanted
    assert read(make({"a": [7, 8], "b": ["x", "y"], "c": [1, 2]})).origin.header == ("a", "b", "c")


def test_wide_frames(make):
    lines = {"name": ["ann", "bob"], "a": [1.0, None], "b": [2.5, 3.5], "c": [None, 1.0], "kind": ["x", "y"]}
    wanted = {("ann", "a"): 1, ("ann", "b"): 2.5, ("bob", "b"): 3.5, ("bob", "c"): 1}
    for told in ({}, {"wide": True}):
        data = read(make(lines), **told)
        assert entries(data) == wanted
        assert (data.origin.wide, data.origin.missing) == (True, 2)
    with pytest.raises(InputError, match="not clear which"):
        read(make(dict.fromkeys("pqrst", lines["b"])))


def test_wide_frames_keep_rows_and_columns_without_an_entry():
    data = read(pd.DataFrame({2001: [1.0, None], 2002: [None, None], 2003: [3.0, None]}), wide=True)
    assert data.shape == (2, 3)
    assert (list(data.row_names), list(data.column_names)) == ([1, 2], [2001, 2002, 2003])


def test_pairs_need_no_value(make):
    frame = make({"what": ["x", "y", "x"], "who": ["ann", "bob", "ann"], "note": ["p", "q", "r"]})
    data = read(frame, values=False, hints=("who", "what"))
    assert pairs(data) == [("ann", "x"), ("bob", "y"), ("ann", "x")]
    assert (data.values.size, data.weights) == (0, None)
    assert pairs(read(make({"a": ["x", "y"], "b": [1, 2]}), values=False, hints=("who", "what"))) == [
        ("x", 1),
        ("y", 2),
    ]


def test_two_lines_of_the_same_names_are_two_entries(make):
    data = read(make({"user": [1, 1, 1], "item": [2, 2, 3], "rating": [4, 5, 6]}))
    assert pairs(data) == [(1, 2), (1, 2), (1, 3)]
    assert data.values.tolist() == [4, 5, 6]


# Kinds of columns


def days(count):
    return np.datetime64("2020-01-01") + np.arange(count)


@pytest.mark.parametrize("name", ["pandas", "polars", "polars, lazy", "pyarrow"])
def test_dates_and_numbers_are_names(name):
    moments = days(3).astype("M8[us]")
    frame = FRAMES[name]({"d": moments, "f": [0.5, 1.5, 0.5], "y": np.ones(3, np.float32)})
    data = read(frame, row="d", col="f", value="y")
    assert data.row_names.values.dtype.kind == "M"
    np.testing.assert_array_equal(data.row_names[data.rows], moments)
    assert data.column_names[data.cols].tolist() == [0.5, 1.5, 0.5]
    assert (data.values.dtype, data.weights) == (np.float32, None)


@pytest.mark.parametrize("name", ["pandas", "polars", "pyarrow"])
def test_dates_of_python_are_names(name):
    frame = FRAMES[name]({"d": [dt.date(2020, 1, 2), dt.date(2020, 1, 1)], "c": [True, False], "y": [1, 2]})
    data = read(frame, row="d", col="c", value="y")
    assert data.row_names.indices([dt.date(2020, 1, 2), dt.date(2020, 1, 1)]).tolist() == data.rows.tolist()
    assert data.row_names.indices(["2020-01-02", "2020-01-01"]).tolist() == data.rows.tolist()
    assert data.column_names[data.cols].tolist() == [True, False]


def test_categories_are_their_names():
    for frame in (
        pd.DataFrame({"c": pd.Categorical(["x", "y", "x"]), "d": [1, 2, 3], "y": [1, 2, 3]}),
        pl.DataFrame({"c": pl.Series(["x", "y", "x"], dtype=pl.Categorical), "d": [1, 2, 3], "y": [1, 2, 3]}),
        pl.DataFrame({"c": pl.Series(["x", "y", "x"], dtype=pl.Enum(["y", "x"])), "d": [1, 2, 3], "y": [1, 2, 3]}),
        pa.table({"c": pa.array(["x", "y", "x"]).dictionary_encode(), "d": [1, 2, 3], "y": [1, 2, 3]}),
    ):
        assert pairs(read(frame)) == [("x", 1), ("y", 2), ("x", 3)]


def test_categories_of_integers_are_integers():
    frame = pd.DataFrame({"c": pd.Categorical([30, 10, 30]), "d": [1, 2, 3], "y": [1, 2, 3]})
    assert pairs(read(frame)) == [(30, 1), (10, 2), (30, 3)]
    assert 10 in read(frame).row_names
    assert "10" in read(frame).row_names


def test_integers_for_the_names_of_columns():
    frame = pd.DataFrame([[7, 8, 1.5], [9, 8, 2.5]])
    assert entries(read(frame)) == {(7, 8): 1.5, (9, 8): 2.5}
    assert entries(read(frame, row=1, col=0, value=2)) == {(8, 7): 1.5, (8, 9): 2.5}


def test_integers_with_holes_are_still_integers():
    frame = pd.DataFrame({"user": [7.0, 8.0, 9.0], "item": pd.array([1, 2, 3], dtype="Int64"), "rating": [1, 2, 3]})
    data = read(frame)
    assert pairs(data) == [(7, 1), (8, 2), (9, 3)]
    assert {data.row_names.values.dtype.kind, data.column_names.values.dtype.kind} == {"i"}


def test_integers_too_long_for_a_double_are_exact(make):
    ids = [2**53, 2**53 + 1, 2**62 + 1]
    data = read(make({"user": ids, "item": [1, 2, 3], "rating": [1, 2, 3]}))
    assert data.row_names[data.rows].tolist() == ids


@pytest.mark.parametrize("kind", [pl.Decimal(10, 2), pl.Int8, pl.UInt16, pl.Float32, pl.Float64])
@pytest.mark.parametrize("lazy", [False, True])
def test_numbers_of_any_kind_are_values(kind, lazy):
    frame = pl.DataFrame({"user": ["a", "b", "c"], "item": [1, 2, 3], "rating": pl.Series([3, None, 4]).cast(kind)})
    data = read(frame.lazy() if lazy else frame)
    assert entries(data) == {("a", 1): 3, ("c", 3): 4}
    assert data.values.dtype == (np.float32 if kind == pl.Float32 else np.float64)


def test_decimals_of_python_are_values():
    frame = pd.DataFrame({"user": [1, 2], "item": [1, 2], "rating": [decimal.Decimal("1.5"), decimal.Decimal(2)]})
    assert read(frame).values.tolist() == [1.5, 2.0]


def test_booleans_are_values(make):
    data = read(make({"user": ["a", "b", "c"], "item": [1, 2, 3], "rating": [True, None, False]}))
    assert entries(data) == {("a", 1): 1, ("c", 3): 0}


def test_times_are_not_values():
    moments = [dt.datetime(2020, 1, 1, 12), dt.datetime(2021, 1, 1)]
    for frame in (pl.DataFrame, pd.DataFrame, pa.table):
        with pytest.raises(InputError, match="Column 'rating' of the frame does not hold numbers"):
            read(frame({"user": ["a", "b"], "item": [1, 2], "rating": moments}))


# One table, many dresses

TABLE = {"user": [12, 7, 12, 9], "film": ["x", "y", "y", "ä z"], "score": [4.0, 2.5, -1.0, 3.0], "w": [1, 2, 1, 3]}
COLUMNS = {"row": "user", "col": "film", "value": "score", "weight": "w"}


def dressed(kind, tmp_path):
    frame, path = pd.DataFrame(TABLE), tmp_path / f"data.{kind}"
    lines = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in frame.to_dict("records"))
    match kind:
        case "csv":
            frame.to_csv(path, index=False)
        case "csv.gz":
            frame.to_csv(path, index=False, compression="gzip")
        case "parquet":
            frame.to_parquet(path)
        case "jsonl":
            path.write_text(lines, encoding="utf-8")
        case "ndjson.gz":
            path.write_bytes(gzip.compress(lines.encode()))
        case "npz":
            np.savez(path, **{name: np.array(column) for name, column in TABLE.items()})
        case _:
            return FRAMES[kind](TABLE)
    return path


@pytest.mark.parametrize("kind", ["csv.gz", "parquet", "jsonl", "ndjson.gz", "npz", *FRAMES])
def test_every_dress_is_the_same_table(kind, tmp_path):
    told = COLUMNS if kind != "npz" else {name: column for name, column in COLUMNS.items() if name != "weight"}
    wanted, found = read(dressed("csv", tmp_path), **told), read(dressed(kind, tmp_path), **told)
    assert pairs(found) == pairs(wanted)
    np.testing.assert_array_equal(found.values, wanted.values)
    assert found.shape == wanted.shape == (3, 3)
    assert list(found.row_names) == list(wanted.row_names) == [7, 9, 12]
    assert found.row_names.values.dtype.kind == "i"
    assert set(found.column_names) == set(wanted.column_names)
    assert (found.origin.header, found.origin.missing) == (wanted.origin.header, 0)
    if kind != "npz":
        np.testing.assert_array_equal(found.weights, wanted.weights)


@pytest.mark.parametrize("kind", ["csv", "parquet", "jsonl", "npz", *FRAMES])
def test_what_the_columns_are_is_found_alike(kind, tmp_path):
    data = read(dressed(kind, tmp_path), row="user", col="film", value="score")
    assert data.weights is None
    assert entries(data) == {(12, "x"): 4, (7, "y"): 2.5, (12, "y"): -1, (9, "ä z"): 3}


# Mistakes


def test_columns_that_are_not_there(make):
    with pytest.raises(InputError, match=r"no column 'film' for the column. Pass one of user, item, stars, trust"):
        read(make(LINES), row="user", col="film", value="stars")
    with pytest.raises(InputError, match="no column 'much' for the weight"):
        read(make(LINES), row="user", col="item", value="stars", weight="much")
    with pytest.raises(InputError, match=r"has two columns and no values\. .* --implicit"):
        read(make({"user": [1], "item": [2]}))


def test_values_that_are_not_numbers(make):
    with pytest.raises(InputError, match="Column 'user' of the frame does not hold numbers"):
        read(make(LINES), row="item", col="stars", value="user")
    with pytest.raises(InputError, match="Column 'who' of the frame does not hold numbers"):
        read(make(LINES | {"who": LINES["user"]}), row="user", col="item", value="stars", weight="who")


def test_a_column_with_two_parts(make):
    with pytest.raises(InputError, match="one column cannot be two"):
        read(make(LINES), row="item", col="item", value="stars")
    with pytest.raises(InputError, match="one column cannot be two"):
        read(make(LINES), row="user", col="item", value="stars", weight="stars")


def test_names_that_are_missing(make):
    holes = [None, "a", "b", "c", "d"]
    with pytest.raises(InputError, match="row names are missing in 'user'"):
        read(make(LINES | {"user": holes}), row="user", col="item", value="stars")
    with pytest.raises(InputError, match="column names are missing in 'item'"):
        read(make(LINES | {"item": [1, 2, None, 3, 4]}), row="user", col="item", value="stars")
    with pytest.raises(InputError, match="row names are missing"):
        read(make({"user": holes, "item": LINES["item"]}), values=False)


def test_a_line_without_a_value_needs_no_names(make):
    lines = {"user": ["a", None, "b"], "item": [1, 2, 3], "rating": [1.0, None, 2.0]}
    assert entries(read(make(lines))) == {("a", 1): 1, ("b", 3): 2}


@pytest.mark.filterwarnings("ignore:invalid value encountered in cast:RuntimeWarning")  # of pandas 2, in `make`
def test_infinite_values(make):
    with pytest.raises(InputError, match="Column 'stars' of the frame holds infinite values"):
        read(make(LINES | {"stars": [1.0, np.inf, 2.0, 3.0, 4.0]}), row="user", col="item", value="stars")


def test_weights_that_are_none(make):
    with pytest.raises(InputError, match="negative"):
        read(make(LINES | {"trust": [-1.0, 1.0, 1.0, 1.0, 1.0]}), row="user", col="item", value="stars", weight="trust")
    with pytest.raises(InputError, match="negative, NaN or infinite"):
        read(make(LINES | {"trust": [None, 1.0, 1.0, 1.0, 1.0]}), row="user", col="item", value="stars", weight="trust")
    with pytest.raises(InputError, match=r"no entry|Every weight is zero"):
        read(make(LINES | {"trust": [0.0] * 5}), row="user", col="item", value="stars", weight="trust")


def test_frames_without_an_entry(make):
    with pytest.raises(InputError, match="the frame has no rows"):
        read(make({name: column[:0] for name, column in LINES.items()}))
    with pytest.raises(BifactorError, match="no entry"):
        read(make({"user": [1, 2], "item": [1, 2], "rating": [None, None]}), row="user", col="item", value="rating")


@pytest.mark.parametrize("source", [LINES, [1, 2], 7, None, np.eye(3)], ids=lambda source: type(source).__name__)
def test_what_is_neither_a_frame_nor_a_file(source):
    with pytest.raises(InputError, match="neither a data frame nor the name of a file"):
        read(source)
