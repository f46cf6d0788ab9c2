"""Counts in every form are one table; keys that mean nothing are named."""

from collections import Counter, OrderedDict

import numpy as np
import pytest

from bifactor.data.counts import bit_reversal, counts_of, outcome_place
from bifactor.errors import InputError

TABLE = np.array([[40, 3, 0, 57], [45, 0, 5, 50], [0, 50, 48, 2.0]])
SETTINGS = ["ZZ", "XX", "YZ"]
KEYS = {
    "bits": ["00", "01", "10", "11"],
    "registers": ["0 0", "0 1", "1 0", " 1 1 "],
    "hexadecimal": ["0x0", "0x1", "0X2", "0x03"],
    "integers": [0, 1, np.int64(2), np.uint8(3)],
    "a mixture": ["00", "0x1", 2, "1 1"],
}


@pytest.mark.parametrize("keys", KEYS.values(), ids=KEYS)
def test_all_keys_mean_the_same(keys):
    rows = [{key: count for key, count in zip(keys, row, strict=True) if count} for row in TABLE]
    for form in ((SETTINGS, rows), (tuple(SETTINGS), tuple(rows)), (dict(zip(SETTINGS, rows, strict=True)),)):
        settings, table = counts_of(*form)
        assert settings == SETTINGS
        np.testing.assert_array_equal(table, TABLE)


@pytest.mark.parametrize("counts", [TABLE, TABLE.tolist(), TABLE.astype(np.float32), TABLE.astype(np.uint16)])
def test_arrays_are_counts_in_double_precision(counts):
    for form in ((SETTINGS, counts), (OrderedDict(zip(SETTINGS, counts, strict=True)),)):
        _, table = counts_of(*form)
        assert table.dtype == np.float64
        np.testing.assert_array_equal(table, TABLE)


def test_keys_of_one_outcome_are_added_up():
    _, table = counts_of({"XX": Counter({"11": 2, "0x3": 3, 3: 4, "1 1": 1, "00": 5})})
    np.testing.assert_array_equal(table, [[5, 0, 0, 10]])


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_reversal_reverses_bit_strings(n):
    place = bit_reversal(n)
    assert [f"{k:0{n}b}"[::-1] for k in range(2**n)] == [f"{k:0{n}b}" for k in place]
    np.testing.assert_array_equal(place[place], np.arange(2**n))


@pytest.mark.parametrize("outcome", ["0", "000", "02", "", "0x", "0x4", "0xg", "0x_1", -1, 4, True, 1.0, None, (0, 1)])
def test_what_is_no_outcome_has_no_place(outcome):
    assert outcome_place(outcome, 2) is None


@pytest.mark.parametrize(
    ("settings", "counts", "message"),
    [
        ({"XX": {"00": 1, "02": 3}, "XY": {"000": 1}}, None, r"outcomes '02', '000'\. Each must have 2 bits.*0 to 3"),
        ({"XX": dict.fromkeys(range(3, 12), 1)}, None, "outcomes 4, 5, 6, 7, 8 and 3 more"),
        ({"XX": {"0x4": 1}}, None, "outcome '0x4'"),
        ({"XX": {"00": "many"}}, None, "'many' for the outcome '00'"),
        ({"XX": {"00": None}}, None, "None for the outcome"),
        ({"XX": {"00": -1}}, None, "negative"),
        ({"XX": {"00": np.nan}}, None, "NaN"),
        ({"XX": {"00": np.inf}}, None, "infinite"),
        ({"XX": {}}, None, "all zero"),
        ({"XX": {"00": 1}, "YY": [1, 2, 3, 4]}, None, "list as well as dict"),
        ({"XX": {"00": 1}, "X": {"0": 1}}, None, "'X'.*2 letters"),
        ({}, None, "settings is empty"),
        ({"XX": {"00": 1}}, [[1, 2, 3, 4]], "already holds the counts"),
        (["XX"], None, "counts is missing"),
        ("XX", [[1, 2, 3, 4]], "Pass a list of strings"),
        (["XX"], {"00": 1}, "counts"),
        (["XX"], [[1, 2, 3]], r"shape \(1, 3\)"),
        (["XX", "YY"], [{"00": 1}], "2 settings"),
        (["XX"], [[1, 2, 3, 4j]], "complex"),
    ],
)
def test_mistakes_are_named(settings, counts, message):
    with pytest.raises(InputError, match=message):
        counts_of(settings, counts)


def test_the_number_of_qubits_is_held_against_the_labels():
    assert counts_of(["XX"], [[1, 2, 3, 4]], 2)[0] == ["XX"]
    with pytest.raises(InputError, match="3 letters"):
        counts_of(["XX"], [[1, 2, 3, 4]], 3)
