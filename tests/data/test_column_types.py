"""What columns are taken for, by a look at them."""

import numpy as np
import pytest

from bifactor.data.column_types import ColumnHint, ColumnSpec, Declared
from bifactor.errors import InputError

RNG = np.random.default_rng(0)


def objects(cells):
    found = np.empty(len(cells), object)
    found[:] = cells
    return found


CASES = {
    "fractions": (RNG.random(50), "number"),
    "many whole numbers": (np.arange(50.0), "number"),
    "grades": (RNG.integers(1, 6, 50).astype(float), "ordinal"),
    "few cells": (np.array([1.0, 2.0, 3.0, np.nan]), "number"),
    "bits": (np.array([0.0, 1.0, np.nan]), "boolean"),
    "two numbers": (np.array([1.0, 2.0] * 5), "boolean"),
    "nothing": (np.full(4, np.nan), "number"),
    "booleans": (objects([True, None, False]), "boolean"),
    "two words": (objects(["a", "b", None, "a"]), "boolean"),
    "words": (objects(["a", "b", "c"] * 4), "category"),
    "names": (objects([f"n{k}" for k in range(20)]), "keep"),
}


@pytest.mark.parametrize("case", CASES)
def test_kinds(case):
    cells, kind = CASES[case]
    form = ColumnSpec.of("c", cells)
    assert form.kind == kind
    codes = form.codes(cells)
    if kind not in ("keep", "number"):
        known = ~np.isnan(codes)
        assert form.values(codes[known]).tolist() == [c for c, k in zip(cells.tolist(), known, strict=True) if k]


def test_declared_levels_come_in_their_order():
    cells = objects(["low", None, "high"])
    form = ColumnSpec.of("c", cells, None, Declared(["low", "mid", "high"], True))
    assert (form.kind, form.levels) == ("ordinal", ("low", "mid", "high"))
    np.testing.assert_array_equal(form.codes(cells), [0, np.nan, 2])
    assert ColumnSpec.of("c", cells, None, Declared(["low", "mid", "high"])).kind == "category"


@pytest.mark.parametrize(("unit", "step"), [("D", 86_400_000_000), ("m", 60_000_000), ("s", 1_000_000), ("us", 1)])
def test_times_are_as_fine_as_those_that_are_known(unit, step):
    times = np.array(["2020-01-01", "2020-05-01", "2021-01-01"], "M8[us]").astype(float)
    times[2] += np.timedelta64(1, unit) / np.timedelta64(1, "us")
    form = ColumnSpec.of("c", np.append(times, np.nan), None, Declared(like=np.datetime64("2020-01-01", "us")))
    assert (form.kind, form.step) == ("number", step)
    told = form.values(np.array([times.mean() + 0.3]))
    assert told[0] % step == 0
    assert abs(told[0] - times.mean()) <= step


def test_what_is_told_goes_first():
    numbers = RNG.integers(1, 4, 30).astype(float)
    assert ColumnSpec.of("c", numbers, ColumnHint.of("c", "category")).kind == "category"
    assert ColumnSpec.of("c", numbers, ColumnHint.of("c", "number")).kind == "number"
    assert ColumnSpec.of("c", numbers, ColumnHint.of("c", [3, 1, 2])).levels == (3, 1, 2)
    with pytest.raises(InputError, match="distinct levels in order"):
        ColumnHint.of("c", [1, 1])


def test_grades_between_levels_are_taken_for_the_nearest():
    form = ColumnSpec.of("c", np.array([1.0, 2.0, 5.0] * 4))
    np.testing.assert_array_equal(form.codes(np.array([1.4, 4.0, 9.0, np.nan])), [0, 2, 2, np.nan])
