"""Sets of cells that are held out, and the choice of their shape by that of the holes."""

import pickle
import re

import numpy as np
import pytest

from bifactor.data import RandomCells, RandomLines, Rectangles, RowTails, holes_like
from bifactor.data.holes import _share_in_rectangles, _share_in_tails
from bifactor.errors import InputError

MASKS = [
    lambda seed: RandomCells(0.2, seed),
    lambda seed: RandomLines(0.2, seed),
    lambda seed: RandomLines(0.2, seed, side=1),
    lambda seed: RowTails(0.2, seed, 40, first=16),
    lambda seed: RowTails(0.2, seed, 40, first=24, last=24),
    lambda seed: Rectangles(0.2, seed),
    lambda seed: Rectangles(0.2, seed, 3, rows=0.3),
    lambda seed: Rectangles(0.2, seed, rows=0.2),
]


def cells(mask, shape=(60, 40)):
    rows, cols = (index.ravel() for index in np.indices(shape))
    return mask(rows, cols).reshape(shape)


@pytest.mark.parametrize("make", MASKS, ids=lambda make: repr(make(0)))
def test_the_expected_share_is_the_fraction(make):
    shares = np.array([cells(make(seed)).mean() for seed in range(200)])
    assert abs(shares.mean() - 0.2) < 4 * shares.std() / 200**0.5 + 1e-3


@pytest.mark.parametrize("make", MASKS, ids=lambda make: repr(make(0)))
def test_a_mask_is_its_repr_and_depends_on_indices_alone(make):
    mask, shape = make(3), (60, 40)
    whole = cells(mask)
    for again in (eval(repr(mask)), pickle.loads(pickle.dumps(mask))):
        assert again == mask
        np.testing.assert_array_equal(cells(again), whole)
    rows, cols = (index[np.random.default_rng(0).permutation(2400)] for index in np.divmod(np.arange(2400), 40))
    for kind in (np.int64, np.int32, np.uint32):
        np.testing.assert_array_equal(mask(rows.astype(kind), cols.astype(kind)), whole[rows, cols])
    assert mask(rows[:0], cols[:0]).shape == (0,)
    assert not np.array_equal(cells(make(4), shape), whole)


def test_tails_are_the_ends_of_some_rows():
    inside = cells(RowTails(0.2, 1, 40, first=16, last=30), (4000, 40))
    assert np.all(np.diff(inside.astype(int), axis=1) >= 0)
    drawn = inside.any(axis=1)
    begins = inside[drawn].argmax(axis=1)
    assert (begins.min(), begins.max()) == (16, 30)
    assert np.bincount(begins)[16:].min() > 0.5 * drawn.sum() / 15
    assert RowTails(0.2, 1, 40, first=16, last=30).share == pytest.approx(drawn.mean(), abs=0.03)


def test_a_rectangle_is_a_group_of_rows_times_a_group_of_columns():
    mask = Rectangles(0.2, 1, rows=0.5)
    inside = cells(mask, (2000, 1000))
    rows, cols = inside.any(axis=1), inside.any(axis=0)
    np.testing.assert_array_equal(inside, np.outer(rows, cols))
    assert mask.shares == pytest.approx((rows.mean(), cols.mean()), abs=0.05)
    assert Rectangles(0.19, 0).shares == pytest.approx((0.19**0.5, 0.19**0.5))
    assert Rectangles(0.19, 0, rows=1.0).shares == pytest.approx((1.0, 0.19))
    union = cells(Rectangles(0.2, 1, count=4), (500, 500))
    assert 4 < len(np.unique(union, axis=0)) <= 2**4  # which of the four rectangles have the row


@pytest.mark.parametrize(
    ("message", "make"),
    [
        ("between 0 and 1", lambda: RowTails(1.0, 0, 40)),
        ("between 0 and 1", lambda: Rectangles(0, 0)),
        ("seed=-1", lambda: RowTails(0.1, -1, 40)),
        ("seed=0.5", lambda: Rectangles(0.1, 0.5)),
        ("columns=1 ", lambda: RowTails(0.1, 0, 1)),
        ("columns=40.0", lambda: RowTails(0.1, 0, 40.0)),
        ("first=0 and last=39", lambda: RowTails(0.1, 0, 40, first=0)),
        ("first=30 and last=20", lambda: RowTails(0.1, 0, 40, first=30, last=20)),
        ("first=20 and last=40", lambda: RowTails(0.1, 0, 40, last=40)),
        ("fraction=0.5 is more than all tails from columns 20 to 39 of 40", lambda: RowTails(0.5, 0, 40)),
        ("count=0", lambda: Rectangles(0.1, 0, 0)),
        ("rows=0.05 is not a share of the rows from 0.1", lambda: Rectangles(0.1, 0, rows=0.05)),
        ("rows=1", lambda: Rectangles(0.1, 0, rows=1)),
    ],
)
def test_what_is_no_mask_is_said(message, make):
    with pytest.raises(InputError, match=message):
        make()


def test_the_largest_fraction_that_is_advised_is_possible():
    for columns in (2, 3, 40, 1001):
        with pytest.raises(InputError, match="Pass at most") as told:
            RowTails(0.7, 0, columns)
        most = float(re.search(r"at most (\S+),", str(told.value))[1])
        assert 0.97 < RowTails(most, 0, columns).share <= 1


# Patterns of known cells


def at_random(m, n, rng):
    return rng.random((m, n)) < rng.uniform(0.25, 0.99)


def by_popularity(m, n, rng):
    """Active rows and popular columns have more entries, and popular columns come first."""
    rate = np.outer(rng.pareto(1.5, m) + 0.2, np.sort(rng.pareto(1.5, n) + 0.2)[::-1])
    return rng.random((m, n)) < 1 - np.exp(-rate * rng.uniform(0.5, 5))


def staggered(m, n, rng):
    """Units of a panel leave it one after the other."""
    ends = np.where(rng.random(m) < 0.5, rng.integers(n // 4, n, m), n)
    return np.arange(n) < ends[:, None]


def treated(m, n, rng):
    """The outcome without a treatment is unknown for some units from the same time on."""
    known = np.ones((m, n), bool)
    known[rng.permutation(m)[: m // 5], n - n // 3 :] = False
    return known


def joined(m, n, rng):
    """Some rows come from a survey without some of the questions."""
    known = np.ones((m, n), bool)
    known[np.ix_(rng.permutation(m)[: m // 3], rng.permutation(n)[: n // 2])] = False
    return known


SHAPES = (30, 20), (60, 40), (40, 200), (1000, 12)


def mask_for(known, fraction=0.1, seed=0):
    return holes_like(*np.nonzero(known), known.shape, fraction, seed)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize(
    ("pattern", "kind"),
    [
        (at_random, None),
        (by_popularity, None),
        (staggered, RowTails),
        (treated, RowTails),
        (joined, Rectangles),
    ],
)
def test_the_mask_has_the_shape_of_the_holes(pattern, kind, shape):
    held = []
    for seed in range(10):
        known = pattern(*shape, np.random.default_rng(seed))
        mask = mask_for(known, seed=seed)
        assert type(mask) is (kind or type(None))
        if mask is not None:
            held.append(np.mean(cells(mask, shape)[known]))
    assert not held or 0.05 < np.mean(held) < 0.15


def test_both_statistics_are_1_for_one_shape_and_about_0_at_random():
    rng = np.random.default_rng(0)
    assert _share_in_tails(staggered(60, 40, rng)) == 1
    assert _share_in_rectangles(joined(60, 40, rng)) == pytest.approx(1)
    noise = [rng.random((60, 40)) < share for share in np.linspace(0.2, 0.95, 20)]
    assert max(abs(_share_in_tails(known)) for known in noise) < 0.2
    assert max(abs(_share_in_rectangles(known)) for known in noise) < 0.2


def test_order_and_repetition_of_entries_change_no_mask():
    known = staggered(60, 40, np.random.default_rng(0))
    rows, cols = np.nonzero(known)
    order = np.random.default_rng(1).permutation(np.r_[np.arange(rows.size), :50])
    assert holes_like(rows[order], cols[order], known.shape, 0.1, 3) == mask_for(known, seed=3)


def test_no_seed_is_drawn_where_holes_are_random():
    rng, same = (np.random.default_rng(5) for _ in range(2))
    known = at_random(60, 40, np.random.default_rng(0))
    assert holes_like(*np.nonzero(known), known.shape, 0.1, rng) is None
    assert rng.random() == same.random()


@pytest.mark.parametrize(
    "known",
    [
        np.ones((40, 30), bool),
        np.zeros((40, 30), bool),
        np.tri(9, dtype=bool),
        np.eye(200, dtype=bool),
        np.arange(30) < np.where(np.arange(40) == 3, 28, 30)[:, None],  # two holes
    ],
    ids=["full", "empty", "small", "sparse", "few holes"],
)
def test_where_there_is_too_little_to_see_holes_are_random(known):
    assert mask_for(known) is None


def test_rows_without_entries_and_columns_after_the_last_do_not_matter():
    known = staggered(60, 40, np.random.default_rng(0))
    wide = np.zeros((70, 45), bool)
    wide[:60, :40] = known
    assert type(mask_for(wide)) is RowTails
    assert mask_for(wide).starts == mask_for(known).starts
