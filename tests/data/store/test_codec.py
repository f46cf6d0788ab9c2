"""Blocks are packed and unpacked without loss, by the reference and by the compiled loops alike."""

import numpy as np
import pytest

from bifactor.data import hash_reference
from bifactor.data.store import census_numba, census_reference, codec_numba, codec_reference
from bifactor.kernels.entry_layout import arrange

SHAPES = [
    (50, 30, 2000),
    (400, 9000, 50_000),
    (3000, 100, 3000),
    (1, 40, 300),
    (40, 1, 300),
    (1, 1, 1),
    (70, 70_000, 90),
]


def keys_of(outer, inner, rows, n_tiles, width):
    shift = (width - 1).bit_length()
    return (((inner // width) * rows + outer) << shift | inner % width).astype(np.uint64), shift


@pytest.mark.parametrize(("rows", "n_inner", "size"), SHAPES)
@pytest.mark.parametrize("codec", [codec_reference, codec_numba])
def test_entries_come_back_in_the_order_of_the_layout(codec, rows, n_inner, size):
    rng = np.random.default_rng(0)
    outer, inner = rng.integers(rows, size=size), rng.integers(n_inner, size=size)
    wanted, order = arrange(outer, inner, rows, n_inner)
    n_tiles = wanted.tiles.size - 1
    width = -(-n_inner // n_tiles)
    keys, shift = keys_of(outer, inner, rows, n_tiles, width)
    found, ordered = codec.order(keys.copy(), (n_tiles * rows - 1).bit_length() + shift)
    np.testing.assert_array_equal(found, np.arange(size) if order is None else order)
    np.testing.assert_array_equal(ordered, keys[found])
    columns = np.empty(size, np.uint16 if width <= 1 << 16 else np.uint32)
    runs = codec.runs(ordered, shift, n_tiles * rows, columns)
    i, j, sums = np.empty(size, np.int32), np.empty(size, np.int32), np.full(rows, np.nan)
    tiles = codec.decode(runs.reshape(n_tiles, rows).astype(np.uint16), columns, width, i, j, sums)
    np.testing.assert_array_equal(i, wanted.outer)
    np.testing.assert_array_equal(j, wanted.inner)
    np.testing.assert_array_equal(tiles, wanted.tiles)
    np.testing.assert_array_equal(sums, wanted.counts[0])


def test_values_are_looked_up():
    codes, table = np.arange(200, dtype=np.uint8), np.linspace(0, 1, 256)
    for codec in (codec_reference, codec_numba):
        y = np.empty(200)
        codec.look_up(codes, table, y)
        np.testing.assert_array_equal(y, table[:200])


def test_a_damaged_block_writes_nothing_beyond_its_memory():
    counts, room = np.full((1, 10), 255, np.uint8), np.full(64, -1, np.int32)
    found = codec_numba.decode(counts, np.zeros(20, np.uint16), 10, room[:20], np.empty(20, np.int32), np.zeros(10))
    assert found[-1] != 20
    assert np.all(room[20:] == -1)


@pytest.mark.parametrize("fraction", [1e-9, 0.001, 0.1, 0.5, 0.999])
@pytest.mark.parametrize("flipped", [False, True])
@pytest.mark.parametrize(("rows", "n_inner", "size"), SHAPES)
def test_marks_agree_with_the_reference_and_both_halves_are_all(rows, n_inner, size, flipped, fraction):
    rng = np.random.default_rng(1)
    first = 12_345
    layout, _ = arrange(rng.integers(rows, size=size), rng.integers(n_inner, size=size), rows, n_inner)
    n_tiles = layout.tiles.size - 1
    width = -(-n_inner // n_tiles)
    counts = np.bincount(layout.inner // width * rows + layout.outer, minlength=n_tiles * rows)
    counts = counts.reshape(n_tiles, rows).astype(np.uint16)
    columns = (layout.inner % width).astype(np.uint32)
    settings = counts, columns, width, first, flipped, 3, fraction
    (gaps, held, total), (same, also, _) = codec_numba.marked(*settings), codec_reference.marked(*settings)
    assert total == size
    np.testing.assert_array_equal(gaps, same)
    np.testing.assert_array_equal(held, also)
    sides = layout.outer + first, layout.inner
    aside = hash_reference.hashed(*(sides[::-1] if flipped else sides), 3) < fraction
    assert held.sum() == aside.sum()
    for dtype in (np.uint8, np.uint16, np.float32, np.float64):
        source = rng.integers(0, 200, size).astype(dtype)
        for codec in (codec_numba, codec_reference):
            for half, stay in ((True, aside), (False, ~aside)):
                out = np.full(int(stay.sum()) + codec_reference.COPIED + 1, 201, dtype)
                codec.sift(gaps, half, source, out[:-1])
                np.testing.assert_array_equal(out[: stay.sum()], source[stay])
                assert out[-1] == 201


@pytest.mark.parametrize("codec", [codec_reference, codec_numba])
def test_marks_of_a_damaged_block_tell_that_it_is_one(codec):
    counts, columns = np.full((1, 10), 255, np.uint8), np.zeros(20, np.uint16)
    assert codec.marked(counts, columns, 10, 0, False, 0, 0.5)[2] != 20


@pytest.mark.parametrize("census", [census_reference, census_numba])
def test_integers_are_counted_in_an_array_and_in_a_table(census):
    rng = np.random.default_rng(2)
    numbers, known = rng.integers(-50, 50, size=1000), rng.random(1000) < 0.7
    numbers[numbers == 7] = 8
    wanted = np.bincount(numbers[known] + 50, minlength=100)
    counts = np.full(100, census_reference.EMPTY)
    census.count(numbers, known, -50, counts)
    np.testing.assert_array_equal(np.maximum(counts, 0), wanted)
    assert counts[57] == census_reference.EMPTY
    keys, held = np.zeros(256, np.int64), np.full(256, census_reference.EMPTY)
    used, taken = census.enter(numbers * 10**15, known, keys, held, 0)
    assert taken == 1000
    assert used == np.unique(numbers).size
    found = np.empty(100, np.int64)
    census.find(np.arange(-50, 50) * 10**15, keys, held, found)
    np.testing.assert_array_equal(found, counts)


@pytest.mark.parametrize("census", [census_reference, census_numba])
def test_a_table_that_is_half_full_takes_no_more(census):
    keys, counts = np.zeros(16, np.int64), np.full(16, -1)
    used, taken = census.enter(np.arange(100) % 12, np.ones(100, bool), keys, counts, 0)
    assert (used, taken) == (8, 8)


@pytest.mark.parametrize("census", [census_reference, census_numba])
@pytest.mark.parametrize("distinct", [1, 10, 256, 257])
def test_values_are_described(census, distinct):
    rng = np.random.default_rng(3)
    values = rng.integers(distinct, size=5000) / 4.0 - 2
    values[:distinct], known = np.arange(distinct) / 4.0 - 2, np.ones(5000, bool)
    values[-10:], known[-10:] = np.nan, False
    about = np.zeros(7)
    about[[census_reference.LEAST, census_reference.MOST, census_reference.WHOLE]] = np.inf, -np.inf, 1
    levels = {}
    for part in (slice(0, 2000), slice(2000, 5000)):
        levels = census.tally(values[part], known[part], about, levels)
    y = values[known]
    want = [y.sum(), y @ y, y.min(), y.max(), 0, np.all(y % 1 == 0), y.size]
    np.testing.assert_allclose(about, np.array(want, float), rtol=1e-13)
    unique, times = np.unique(y, return_counts=True)
    wanted = dict(zip(unique.tolist(), times.tolist(), strict=True))
    assert levels == (wanted if distinct <= 256 else None)


def test_minus_zero_is_zero_and_rounding_is_told():
    for census in (census_reference, census_numba):
        about = np.zeros(7)
        assert census.tally(np.array([0.0, -0.0, 0.1]), np.ones(3, bool), about, {}) == {0.0: 2, 0.1: 1}
        assert about[census_reference.ERROR] == pytest.approx(abs(float(np.float32(0.1)) - 0.1))


def test_scattering_agrees_with_the_reference():
    rng = np.random.default_rng(4)
    cuts, n_inner, size = np.array([0, 30, 35, 100]), 50, 4000
    outer, inner = rng.integers(100, size=size).astype(np.int32), rng.integers(n_inner, size=size)
    owner = np.repeat(np.arange(3, dtype=np.uint16), np.diff(cuts))
    plan = np.column_stack([cuts[:-1], np.diff(cuts), [50, 25, 7], [6, 5, 3]]).astype(np.int64)
    found = [census.scatter(outer, inner, owner, plan, 3) for census in (census_reference, census_numba)]
    for a, b in zip(*found, strict=True):
        np.testing.assert_array_equal(a, b)
