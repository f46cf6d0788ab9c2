"""Names of any kind are places from 0, and 7 and "7" are one name."""

import datetime as dt
import time
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest

from bifactor.data import Names
from bifactor.errors import InputError


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
    "moments": dates(4).astype("M8[us]")[[3, 0, 1, 0, 3]],
    "nanoseconds": dates(4).astype("M8[ns]")[[3, 0, 1, 0, 3]],
    "durations": np.array([3, 0, 1, 0, 3]).astype("m8[s]"),
    "strings": np.array(["b", "ä", "c", "ä", "b"]),
    "objects": np.array(["b", 3, ("a", 1), 3, "b"], dtype=object),
}


@pytest.mark.parametrize("kind", NAMES)
def test_names_have_places(kind):
    values = NAMES[kind]
    names, places = Names.of(values, "row")
    assert names.values.dtype == values.dtype
    assert len(set(names.values.tolist())) == names.values.size
    np.testing.assert_array_equal(names.values[places], values)
    np.testing.assert_array_equal(names.indices(values), places)
    if kind not in ("strings", "objects"):
        assert np.all(names.values[1:] > names.values[:-1])


def test_new_names_go_to_the_end():
    names, _ = Names.of(np.array([5, 3]), "row")
    more, places = names.extended(np.array([4, 5, 1, 4]), "row")
    assert more.values.tolist() == [3, 5, 1, 4]
    assert places.tolist() == [3, 1, 2, 3]
    assert names.values.tolist() == [3, 5]
    with pytest.raises(InputError, match="one kind"):
        names.extended(np.array(["x"]), "row")


def test_names_that_are_not_known():
    numbers, _ = Names.of(np.array([5, 3, 2**60]), "row")
    assert numbers.indices([3, 4, 5.0, np.nan, 2**60]).tolist()[:3] == [0, -1, 1]
    assert numbers.indices(["x", "05", "5.0", "+5", ""]).tolist() == [-1] * 5
    assert numbers.indices(pd.array([5, 3], dtype="Int64")).tolist() == [1, 0]
    assert numbers.indices(np.array([2**60, 2**60 + 1], np.uint64)).tolist() == [2, -1]
    words, _ = Names.of(np.array(["a", "b"], dtype=object), "row")
    assert words.indices(pl.Series(["b", "z"])).tolist() == [1, -1]
    assert words.indices([1, 2]).tolist() == [-1, -1]
    days, _ = Names.of(dates(3), "row")
    assert days.indices([dt.date(2020, 1, 2), dt.date(2021, 1, 1)]).tolist() == [1, -1]
    assert days.indices(["2020-01-03"]).tolist() == [2]
    assert days.indices(["never"]).tolist() == [-1]


def test_a_word_among_dates_is_not_known_and_hides_none_of_them():
    days, _ = Names.of(dates(3), "row")
    assert days.indices(["2020-01-03", "never"]).tolist() == [2, -1]


@pytest.mark.parametrize("kind", NAMES)
def test_names_are_a_sequence(kind):
    values = NAMES[kind]
    names, _ = Names.of(values, "row")
    assert len(names) == len(list(names)) == len(set(values.tolist()))
    assert all(name in names for name in names)
    assert names[0] == next(iter(names))
    np.testing.assert_array_equal(names[[1, 0]], names.values[[1, 0]])
    assert "nobody" not in names
    assert repr(names).startswith(f"Names({len(names)}: ")


def test_no_names_at_all():
    names, places = Names.of(np.empty(0, np.int64), "row")
    assert (len(names), places.size, list(names)) == (0, 0, [])
    assert names.indices([1, "a"]).tolist() == [-1, -1]
    assert 1 not in names
    more, places = names.extended(np.array([2, 1]), "row")
    assert (list(more), places.tolist()) == ([1, 2], [1, 0])


def test_numbered_names():
    assert list(Names.numbered(3)) == [0, 1, 2]
    assert list(Names.numbered(2, 1)) == [1, 2]


def test_names_that_occur():
    names, used = Names(np.array([5, 7, 9])).used(np.array([2, 0, 2]))
    assert list(names) == [5, 9]
    assert used.tolist() == [1, 0, 1]


def objects(*values):
    array = np.empty(len(values), object)
    array[:] = values
    return array


@pytest.mark.parametrize("sought", [[7, 12, 9], ["7", "12", "9"], objects(7, "12", 9), np.array([7.0, 12.0, 9.0])])
def test_integers_find_their_text(sought):
    names = Names(np.array([12, 7, -3]))
    assert names.indices(sought).tolist() == [1, 0, -1]
    assert names.indices(["-3", "--3", "-03"]).tolist() == [2, -1, -1]


@pytest.mark.parametrize("values", [objects("12", "7", "ann"), np.array(["12", "7", "ann"])], ids=["objects", "text"])
def test_text_finds_its_integers(values):
    names = Names(values)
    assert names.indices([7, 12, 9]).tolist() == [1, 0, -1]
    assert names.indices(np.array([7, 12], np.uint8)).tolist() == [1, 0]
    assert names.indices(objects(7, "ann")).tolist() == [1, 2]
    assert 7 in names
    assert 70 not in names


def test_long_integers_find_their_text():
    """Keys of 19 digits are common, and a file holds them as text."""
    names, _ = Names.of(np.array([1212092628029698048, 2**63 - 1]), "row")
    assert names.indices(["1212092628029698048", str(2**63 - 1), str(2**63)]).tolist() == [0, 1, -1]


def test_an_integer_and_its_text_are_one_name_in_one_column():
    names, places = Names.of(objects(7, "7", "ann"), "row")
    assert len(names) == 2
    assert places.tolist() == [0, 0, 1]


def test_new_names_are_of_the_kind_of_the_old():
    numbers, places = Names(np.array([3, 5])).extended(objects("5", "8"), "row")
    assert numbers.values.tolist() == [3, 5, 8]
    assert (numbers.values.dtype, places.tolist()) == (np.dtype(np.int64), [1, 2])
    words, places = Names(objects("a", "5")).extended(np.array([8, 5]), "row")
    assert words.values.tolist() == ["a", "5", "8"]
    assert sorted(places.tolist()) == [1, 2]
    twice, places = Names(np.array([3])).extended(objects("5", 5), "row")
    assert twice.values.tolist() == [3, 5]
    assert places.tolist() == [1, 1]


@pytest.mark.parametrize("values", [[1.0, np.nan], [None, "a"], np.array(["NaT"], "M8[D]")], ids=str)
def test_missing_names_are_refused(values):
    with pytest.raises(InputError, match="missing"):
        Names.of(np.array(values, dtype=object) if None in values else np.array(values), "row")


def test_names_without_a_hash_are_refused():
    values = np.empty(2, object)
    values[:] = [[1], [2]]
    with pytest.raises(InputError, match="hash"):
        Names.of(values, "row")


def test_a_million_names_are_quick():
    numbers = np.random.default_rng(0).integers(0, 100_000, 1_000_000)
    for values, seconds in ((numbers, 1.0), (numbers[:200_000].astype(str).astype(object), 3.0)):
        started = time.process_time()
        names, places = Names.of(values, "row")
        assert np.array_equal(names.indices(values), places)
        assert time.process_time() - started < seconds


@pytest.mark.parametrize("order", range(4))
def test_equal_numbers_are_one_name_also_beside_text(order):
    ones = [1, "1", 1.0, True, np.int32(1), np.float32(1), np.bool_(True), Decimal(1), Decimal("1.00")]
    mixed = np.roll(np.array(ones, object), order)
    for column in (mixed, np.array([*mixed, "x", 2.5, -0.0, Decimal("2.50"), Decimal("1E+2"), "100"], object)):
        names, places = Names.of(column, "row")
        assert names.values.tolist() == (["1"] if column is mixed else ["1", "x", "2.5", "0", "100"])
        assert set(places[: mixed.size].tolist()) == {0}
        for one in (1, "1", 1.0, True, np.int64(1)):
            assert one in names
        assert names.indices(np.array([1.0, 7.0])).tolist() == [0, -1]


def test_numbers_alone_stay_numbers():
    assert Names.of(np.array([3, 1.5, 3.0], object), "row")[0].values.tolist() == [3, 1.5]
    assert Names.of(np.array([2, 1]), "row")[0].values.tolist() == [1, 2]


def test_names_as_text_are_found_by_number_or_text():
    names = Names.of(np.array([30, 7, -2]), "row")[0].as_text()
    assert names.values.tolist() == ["-2", "7", "30"]
    assert names.indices([7, -2]).tolist() == names.indices(["7", "-2"]).tolist() == [1, 0]
    longer, places = names.extended(np.array(["u1", "7"], object), "row")
    assert longer.values.tolist() == ["-2", "7", "30", "u1"]
    assert places.tolist() == [3, 1]
