"""Metrics of ranked lists against other computations, by hand and by laws."""

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.metrics import ndcg_score

from bifactor import ranking
from bifactor.errors import InputError

OF_USERS = (
    ranking.ndcg,
    ranking.recall,
    ranking.precision,
    ranking.average_precision,
    ranking.reciprocal_rank,
    ranking.hit_rate,
)


@st.composite
def lists_and_truth(draw):
    """Lists with gaps at their ends, and what is held out; some users have nothing."""
    users, items = draw(st.integers(1, 8)), draw(st.integers(1, 12))
    places = draw(st.integers(1, items))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    ids = np.stack([rng.permutation(items)[:places] for _ in range(users)])
    ids[np.arange(places) >= rng.integers(0, places + 1, users)[:, None]] = -1
    test = sparse.csr_array((rng.random((users, items)) < rng.random()).astype(float))
    return ids, test


def naive(name, ids, truth, k):
    """One list by the textbook."""
    ids, hits = ids[:k], [int(item in truth) for item in ids[:k]]
    ideal = min(k, len(truth))
    if name == "ndcg":
        gain = sum(hit / np.log2(place + 2) for place, hit in enumerate(hits))
        return gain / sum(1 / np.log2(place + 2) for place in range(ideal))
    if name == "average_precision":
        return sum(hit * sum(hits[: p + 1]) / (p + 1) for p, hit in enumerate(hits)) / ideal
    if name == "reciprocal_rank":
        return next((1 / (p + 1) for p, hit in enumerate(hits) if hit), 0.0)
    return {"recall": sum(hits) / len(truth), "precision": sum(hits) / k, "hit_rate": float(any(hits))}[name]


@settings(max_examples=60, deadline=None)
@given(lists_and_truth(), st.data())
def test_every_metric_is_that_of_the_textbook(case, data):
    ids, test = case
    k = data.draw(st.integers(1, ids.shape[1]))
    truths = [set(test[[i]].indices.tolist()) for i in range(ids.shape[0])]
    for metric in OF_USERS:
        wanted = [naive(metric.__name__, row, truth, k) for row, truth in zip(ids, truths, strict=True) if truth]
        np.testing.assert_allclose(metric(ids, test, k), wanted, rtol=1e-12)
        assert np.all((metric(ids, test, k) >= 0) & (metric(ids, test, k) <= 1))


@settings(max_examples=40, deadline=None)
@given(lists_and_truth())
def test_users_may_come_in_any_order_and_items_have_any_names(case):
    ids, test = case
    rng = np.random.default_rng(0)
    users, names = rng.permutation(ids.shape[0]), rng.permutation(test.shape[1])
    renamed = sparse.csr_array(test[:, np.argsort(names)])
    other = np.where(ids >= 0, names[ids], -1)
    for k in {1, ids.shape[1]}:
        for metric in OF_USERS:
            plain = np.full(ids.shape[0], np.nan)
            plain[np.diff(test.indptr) > 0] = metric(ids, test, k)
            moved = plain[users]
            np.testing.assert_array_equal(metric(ids[users], test[users], k), moved[~np.isnan(moved)])
            np.testing.assert_array_equal(metric(other, renamed, k), metric(ids, test, k))
        assert ranking.coverage(other, test.shape[1], k) == ranking.coverage(ids, test.shape[1], k)


def test_ndcg_is_that_of_scikit_learn():
    rng = np.random.default_rng(0)
    scores, truth = rng.standard_normal((50, 30)), rng.random((50, 30)) < 0.2
    ids = np.argsort(-scores, axis=1)
    some = truth.any(axis=1)
    for k in (1, 5, 30):
        ours = ranking.ndcg(ids, sparse.csr_array(truth), k)
        assert ours.mean() == pytest.approx(ndcg_score(truth[some], scores[some], k=k), rel=1e-12)


def test_a_perfect_ranking_gives_1():
    rng = np.random.default_rng(1)
    truth = rng.random((40, 20)) < 0.3
    truth[:, 0] = True
    ids = np.argsort(~truth, axis=1, kind="stable")
    test = sparse.csr_array(truth)
    for metric in (ranking.ndcg, ranking.average_precision, ranking.reciprocal_rank, ranking.hit_rate):
        for k in (1, 3, 20):
            np.testing.assert_allclose(metric(ids, test, k), 1, rtol=1e-12)
    np.testing.assert_array_equal(ranking.recall(ids, test, 3, "k"), 1)
    np.testing.assert_array_equal(ranking.recall(ids, test, 20), 1)
    worst = ids[:, ::-1]
    few = truth.sum(axis=1) <= 10
    for metric in OF_USERS:
        np.testing.assert_array_equal(metric(worst, test, 10)[few], 0)


def test_by_hand():
    """A user with three positives, of which the first and the third place are hits; and one without a hit."""
    ids = np.array([[7, 1, 5, 2], [0, 1, -1, -1], [3, 4, 5, 6]])
    pair = (np.array([0, 0, 0, 1]), np.array([7, 5, 9, 8]))
    ideal = 1 + 1 / np.log2(3) + 0.5
    np.testing.assert_allclose(ranking.ndcg(ids, pair, 4), [1.5 / ideal, 0])
    np.testing.assert_allclose(ranking.recall(ids, pair, 2), [1 / 3, 0])
    np.testing.assert_allclose(ranking.recall(ids, pair, 2, denominator="k"), [1 / 2, 0])
    np.testing.assert_allclose(ranking.precision(ids, pair, 4), [2 / 4, 0])
    np.testing.assert_allclose(ranking.average_precision(ids, pair, 4), [(1 + 2 / 3) / 3, 0])
    np.testing.assert_allclose(ranking.reciprocal_rank(ids, pair, 4), [1, 0])
    np.testing.assert_allclose(ranking.hit_rate(ids, pair, 4), [1, 0])
    assert ranking.coverage(ids, 10, 4) == 8 / 10
    assert ranking.coverage(ids, 10, 1) == 3 / 10


def test_popularity_share_is_half_where_lists_are_like_the_data():
    known = sparse.csr_array(np.array([[1, 1, 0, 0], [1, 0, 1, 0], [1, 0, 0, 1]]))  # item 0 holds half
    assert ranking.popularity_share(np.array([[0, 1], [0, 2], [0, 3]]), known, 2) == 0.5
    assert ranking.popularity_share(np.array([[0, 1], [0, 2], [0, 3]]), known, 1) == 1.0
    assert ranking.popularity_share(np.array([[1, -1], [2, -1]]), known, 2) == 0.0
    assert np.isnan(ranking.popularity_share(np.array([[-1]]), known, 1))
    rows, cols = known.nonzero()
    assert ranking.popularity_share(np.array([[0, 3]]), (rows, cols), 2) == 0.5
    assert ranking.popularity_share(np.array([[1, 2]]), (rows, cols), 2) == 0.0


def test_a_stored_zero_is_no_positive_and_repeats_are_one():
    test = sparse.csr_array((np.array([0.0, 2.0]), (np.array([0, 1]), np.array([0, 1]))), shape=(2, 2))
    found = ranking.judge(np.array([[0, 1], [1, 0]]), test, 1)
    assert found.left_out == 1
    assert found["recall@1"] == 1
    twice = (np.array([0, 0, 0]), np.array([1, 1, 0]))
    assert ranking.recall(np.array([[1]]), twice, 1).tolist() == [0.5]


def test_nothing_held_out_gives_no_values():
    ids, nothing = np.array([[0, 1], [1, 0]]), sparse.csr_array((2, 3))
    for metric in OF_USERS:
        assert metric(ids, nothing, 2).shape == (0,)
    found = ranking.judge(ids, nothing, 2)
    assert found.left_out == 2
    assert np.isnan(found["ndcg@2"])
    assert all(np.isnan(end) for end in found.interval("ndcg@2"))
    assert "0 users evaluated; 2 without held-out items skipped" in str(found)
    assert ranking.ndcg(np.empty((0, 3), int), sparse.csr_array((0, 4)), 3).size == 0


@pytest.mark.parametrize("index", [np.int8, np.uint16, np.int32, np.int64])
def test_ids_are_of_any_integer_type_and_unsigned_ones_have_no_gaps(index):
    ids = np.array([[2, 0], [1, 2]]).astype(index)
    assert ranking.recall(ids, (np.array([0, 1]), np.array([2, 0])), 2).tolist() == [1, 0]


TEST = sparse.csr_array(np.eye(2, 3))
BAD = {
    "recommended has dtype float64": lambda: ranking.ndcg([[0.0]], TEST),
    "and shape \\(2,\\)": lambda: ranking.ndcg([0, 1], TEST),
    "shape \\(2, 0\\)": lambda: ranking.ndcg(np.empty((2, 0), int), TEST),
    "contains -2": lambda: ranking.ndcg([[0], [-2]], TEST, 1),
    "List 1 contains an item twice": lambda: ranking.ndcg([[0, 1], [2, 2]], TEST, 2),
    "item 3, but there are 3 items": lambda: ranking.ndcg([[0], [3]], TEST, 1),
    "1 lists for 2 rows": lambda: ranking.ndcg([[0]], TEST, 1),
    "k=3 is not possible for lists of 2": lambda: ranking.ndcg([[0, 1], [1, 2]], TEST, 3),
    "k=0": lambda: ranking.recall([[0, 1], [1, 2]], TEST, 0),
    "k=1.5": lambda: ranking.recall([[0, 1], [1, 2]], TEST, 1.5),
    "denominator='T'": lambda: ranking.recall([[0], [1]], TEST, 1, "T"),
    "held_out has type ndarray": lambda: ranking.ndcg([[0], [1]], np.eye(2), 1),
    "2 rows and 1 columns": lambda: ranking.ndcg([[0], [1]], ([0, 1], [0]), 1),
    "rows runs from 0 to 2": lambda: ranking.ndcg([[0], [1]], ([0, 2], [0, 0]), 1),
    "a negative value": lambda: ranking.ndcg([[0], [1]], -TEST, 1),
    "NaN or infinite": lambda: ranking.ndcg([[0], [1]], TEST * np.nan, 1),
    "damaged": lambda: ranking.ndcg([[0], [1]], damaged(), 1),
    "values of type complex128": lambda: ranking.ndcg([[0], [1]], TEST * 1j, 1),
    "items=0": lambda: ranking.coverage([[0]], 0, 1),
    "known contains no positives": lambda: ranking.popularity_share([[0]], sparse.csr_array((1, 2)), 1),
    "known has 4 items, not 3": lambda: ranking.judge([[0], [1]], TEST, 1, known=sparse.csr_array(np.eye(4))),
    "n='10'": lambda: ranking.judge([[0], [1]], TEST, "10"),
    "seed='a'": lambda: ranking.judge([[0], [1]], TEST, 1, seed="a"),
    "n is empty": lambda: ranking.judge([[0], [1]], TEST, []),
}


def damaged():
    matrix = sparse.csr_array(np.eye(2, 3))
    matrix.indices[0] = 7
    return matrix


@pytest.mark.parametrize("message", BAD)
def test_mistakes_get_one_clear_error(message):
    with pytest.raises(InputError, match=message):
        BAD[message]()


def test_a_million_users_take_seconds():
    """A bound with much room: it fails where a loop over users has come in."""
    rng = np.random.default_rng(0)
    users, items = 1_000_000, 50_000
    ids = (rng.integers(0, items, (users, 1)) + 37 * np.arange(10)) % items
    rows = np.repeat(np.arange(users), 5)
    test = sparse.csr_array((np.ones(rows.size), (rows, rng.integers(0, items, rows.size))), shape=(users, items))
    started = time.process_time()
    found = ranking.judge(ids, test, known=test)
    assert time.process_time() - started < 30
    assert found.users.size == users
