"""Splits of positives: nothing is lost, nothing is in two parts, and the shares are those asked for."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from bifactor import ranking
from bifactor.errors import InputError


def some_counts(users=80, items=30, density=0.3, seed=0):
    rng = np.random.default_rng(seed)
    counts = np.where(rng.random((users, items)) < density * 2 * rng.random((users, 1)), rng.integers(1, 9, items), 0)
    return sparse.csr_array(counts)


def same(a, b):
    return np.array_equal(a.toarray(), b.toarray())


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([(8, 1, 1), (0.5, 0.25, 0.25), (9, 1), (1, 1, 98)]))
def test_entries_are_all_in_one_part_and_every_user_keeps_one(seed, shares):
    data = some_counts(seed=seed)
    split = ranking.by_entry(data, shares, seed)
    assert same(split.known + split.test, data)
    assert split.known.multiply(split.test).nnz == 0
    counts, kept, tested = (np.diff(part.indptr) for part in (data, split.train, split.test))
    assert np.all(kept[counts > 0] >= 1)
    assert np.all(tested[counts > 1] >= 1)
    wanted = np.floor(counts * shares[-1] / sum(shares) + 1e-9)
    assert np.all((tested == np.clip(wanted, 1, None)) | (kept == 1) | (counts == 0))
    if len(shares) == 3:
        validation = split.validation
        assert same(validation.known, split.train)
        assert same(split.train + validation.test, split.known)
        assert validation.train is split.train
    else:
        assert split.validation is None
        assert same(split.known, split.train)


def test_shares_of_entries_are_those_of_the_usual_protocol():
    """Ten positives are eight, one and one; twenty-five are twenty-one, two and two."""
    for count, parts in ((10, (8, 1, 1)), (25, (21, 2, 2)), (3, (1, 1, 1)), (2, (1, 0, 1)), (1, (1, 0, 0))):
        split = ranking.by_entry(sparse.csr_array(np.ones((4, count))))
        sizes = [np.diff(part.indptr).tolist() for part in (split.train, split.validation.test, split.test)]
        assert sizes == [[size] * 4 for size in parts]


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([0.1, 0.5, 0.8, 0.99, 1e-9]))
def test_strangers_are_not_in_train_and_all_of_them_can_be_judged(seed, known):
    data = some_counts(seed=seed)
    split = ranking.by_user(data, (7, 9), known, seed)
    strangers = (split.validation.known + split.validation.test, split.known + split.test)
    rows = [tuple(row) for part in (split.train, *strangers) for row in part.toarray()]
    assert sorted(rows) == sorted(tuple(row) for row in data.toarray())
    assert [part.shape[0] for part in strangers] == [7, 9]
    for part in (split, split.validation):
        assert part.users is None
        assert part.known.multiply(part.test).nnz == 0
        folded, looked_for = np.diff(part.known.indptr), np.diff(part.test.indptr)
        assert folded.min() >= 1
        assert looked_for.min() >= 1
        wanted = np.floor((1 - known) * (folded + looked_for) + 1e-9)
        assert np.all((looked_for == np.maximum(wanted, 1)) | (folded == 1))


def test_users_are_counted_or_are_a_share():
    data = some_counts(100, density=0.5)
    split = ranking.by_user(data)
    assert split.test.shape[0] == split.validation.test.shape[0] == 10
    assert split.train.shape[0] == 80
    alone = ranking.by_user(data, 0.25)
    assert alone.validation is None
    assert alone.test.shape[0] == 25
    fifth = ranking.by_user(sparse.csr_array(np.ones((9, 5))), 3)
    assert np.diff(fifth.test.indptr).tolist() == [1, 1, 1]


@pytest.mark.parametrize("kind", [float, "datetime64[s]", np.uint32])
def test_time_runs_forward(kind):
    rng = np.random.default_rng(0)
    rows, cols = rng.integers(0, 20, 300), rng.integers(0, 15, 300)  # some pairs come several times
    times = rng.integers(0, 60, 300).astype(np.int64)
    split = ranking.by_time((rows, cols), times.astype(kind))
    first = {}
    for pair in sorted(zip(times, rows, cols, strict=True)):
        first.setdefault(pair[1:], pair[0])

    def span(matrix, users):
        i, j = matrix.nonzero()
        found = [first[users[a], b] for a, b in zip(i, j, strict=True)]
        return min(found), max(found), len(found)

    parts = [(split.train, np.arange(20)), (split.validation.test, split.users), (split.test, split.users)]
    (_, end, _), (begin, stop, _), (last, _, _) = (span(*part) for part in parts)
    assert end < begin <= stop < last
    assert split.known.multiply(split.test).nnz == 0
    assert same(split.known, split.train[split.users] + split.validation.test)
    assert split.train.sum() == np.sum(times <= end)  # events are added up
    assert 0.8 <= split.train.sum() / 300 <= 0.85
    assert np.array_equal(split.users, np.flatnonzero(np.diff(split.train.indptr)))


def test_equal_times_stay_together():
    split = ranking.by_time((np.arange(10) % 2, np.arange(10)), np.zeros(10))
    assert split.train.nnz == 10
    assert split.test.nnz == 0
    for shares in ((8, 1, 1), (1, 2, 7)):  # 0.1 + 0.2 is a little more than 0.3
        tens = ranking.by_time((np.zeros(10, int), np.arange(10)), np.arange(10.0), shares)
        assert tuple(part.nnz for part in (tens.train, tens.validation.test, tens.test)) == shares


def test_a_seed_fixes_a_split_and_the_order_of_pairs_does_not_matter():
    data = some_counts()
    rows, cols = data.nonzero()
    shuffle = np.random.default_rng(1).permutation(rows.size)
    for make in (ranking.by_entry, ranking.by_user):
        one, two, other = make(data, seed=3), make(data, seed=3), make(data, seed=4)
        assert same(one.test, two.test)
        assert not same(one.test, other.test)
        plain, mixed = make((rows, cols), seed=3), make((rows[shuffle], cols[shuffle]), seed=3)
        assert same(plain.test, mixed.test)
        assert same(plain.test, one.test != 0)
    times = np.random.default_rng(2).random(rows.size)
    assert same(
        ranking.by_time((rows, cols), times).test, ranking.by_time((rows[shuffle], cols[shuffle]), times[shuffle]).test
    )


def test_the_data_are_left_as_they_were_in_any_format():
    data = some_counts()
    before = data.copy()
    for kind in (sparse.csr_array, sparse.csc_array, sparse.coo_array, sparse.csr_matrix, sparse.lil_matrix):
        split = ranking.by_entry(kind(data))
        assert isinstance(split.train, sparse.csr_array)
        assert same(split.test, ranking.by_entry(data).test)
    assert same(data, before)
    assert repr(ranking.by_user(data, 5)).startswith("Split(train ")


DATA = some_counts()
ONES = sparse.csr_array(np.eye(4))
BAD = {
    "data has type ndarray": lambda: ranking.by_entry(np.eye(3)),
    "data contains no positives": lambda: ranking.by_entry(sparse.csr_array((3, 3))),
    "a negative value": lambda: ranking.by_user(-DATA),
    "shares=\\(8,\\)": lambda: ranking.by_entry(DATA, (8,)),
    "shares=\\(8, 1, 0\\)": lambda: ranking.by_entry(DATA, (8, 1, 0)),
    "shares=0.8": lambda: ranking.by_time(DATA, np.ones(DATA.nnz), 0.8),
    "known=1": lambda: ranking.by_user(DATA, known=1),
    "users=0": lambda: ranking.by_user(DATA, 0),
    "users=1.5": lambda: ranking.by_user(DATA, (0.1, 1.5)),
    "3 numbers": lambda: ranking.by_user(DATA, (1, 2, 3)),
    "81 users should be held out, but": lambda: ranking.by_user(DATA, 81),
    "2 users should be held out, but 0 have two": lambda: ranking.by_user(ONES, (1, 1)),
    "some must stay": lambda: ranking.by_user(sparse.csr_array(np.ones((4, 4))), 4),
    "seed=None": lambda: ranking.by_entry(DATA, seed=None),
    "seed=-1": lambda: ranking.by_user(DATA, seed=-1),
    "times has dtype float64 and shape \\(3,\\) for": lambda: ranking.by_time(DATA, np.ones(3)),
    "times has dtype <U1": lambda: ranking.by_time(ONES, np.array(list("abcd"))),
    "missing": lambda: ranking.by_time(ONES, np.array([1, 2, np.nan, 3])),
    "missing values": lambda: ranking.by_time(ONES, np.array(["2020", "NaT", "2021", "2022"], "datetime64[D]")),
    "have shapes \\(4, 4\\), \\(4, 4\\) and \\(3, 4\\)": lambda: ranking.Split(ONES, ONES, ONES[:3]),
    "2 users for 4 rows": lambda: ranking.Split(ONES, ONES, ONES, np.array([0, 1])),
    "users runs from 0 to 4": lambda: ranking.Split(ONES, ONES, ONES, np.arange(1, 5) - np.array([1, 0, 0, 0])),
}


@pytest.mark.parametrize("message", BAD)
def test_mistakes_get_one_clear_error(message):
    with pytest.raises(InputError, match=message):
        BAD[message]()
