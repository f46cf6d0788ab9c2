"""The order that entries are kept in."""

import numpy as np
import pytest

from bifactor.kernels import entry_layout


@pytest.mark.parametrize(
    ("outer", "inner", "size"),
    [
        (50, 30, 1000),
        (3000, 9000, 60_000),
        (10**6, 10**6, 1000),
        (7, 1, 40),
        (30, 50, 0),
        (1, 1, 3),
        (9000, 5000, 50_000),
    ],
)
def test_entries_are_sorted_by_tile_row_and_column_and_repeated_ones_stay_in_order(outer, inner, size):
    rng = np.random.default_rng(0)
    i, j = rng.integers(outer, size=size), rng.integers(inner, size=size)
    found, order = entry_layout.arrange(i, j, outer, inner)
    order = np.arange(size) if order is None else order
    np.testing.assert_array_equal(found.outer, i[order])
    np.testing.assert_array_equal(found.inner, j[order])
    assert np.all(np.diff(found.tiles) >= 0)
    assert (found.tiles[0], found.tiles[-1]) == (0, size)
    for start, stop in zip(found.tiles[:-1], found.tiles[1:], strict=True):
        part = slice(start, stop)
        key = i[order][part] * inner + j[order][part]
        assert np.all(np.diff(key) >= 0)
        assert np.all(np.diff(order[part])[np.diff(key) == 0] > 0)


def test_counting_and_sorting_agree():
    rng = np.random.default_rng(1)
    i, j = rng.integers(200, size=5000), rng.integers(100, size=5000)
    counted = entry_layout.arrange(i, j, 200, 100)[1]
    np.testing.assert_array_equal(counted, np.lexsort((j, i)))
