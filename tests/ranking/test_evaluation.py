"""Intervals, comparisons, and the evaluation of models on splits."""

import numpy as np
import pytest
from scipy import sparse

import bifactor as bf
from bifactor import ranking
from bifactor.errors import InputError
from bifactor.ranking import evaluation


def some_positives(users=60, items=25, density=0.25, seed=0):
    rng = np.random.default_rng(seed)
    liked = rng.random((users, items)) < density * 2 * rng.random(items)
    return sparse.csr_array(liked.astype(float))


class Popular:
    """Items by their number of users; for the users it was fitted to, or by histories."""

    def __init__(self, train, filters=True):
        self.train, self.filters, self.asked = train, filters, []

    def recommend(self, rows, n):
        self.asked.append((rows, n))
        known = rows if sparse.issparse(rows) else self.train[rows]
        scores = np.tile(np.asarray(self.train.sum(axis=0), dtype=float), (known.shape[0], 1))
        if self.filters:
            scores[known.nonzero()] = -np.inf
        ids = np.argsort(-scores, axis=1, kind="stable")[:, :n]
        best = np.take_along_axis(scores, ids, axis=1)
        return np.where(np.isinf(best), -1, ids), best


def brute_force(split, n):
    """Lists for all users of a split by sorting each row, nothing that is known in them."""
    scores = np.tile(np.asarray(split.train.sum(axis=0), dtype=float), (split.test.shape[0], 1))
    scores[split.known.nonzero()] = -np.inf
    ids = np.argsort(-scores, axis=1, kind="stable")[:, :n]
    return np.where(np.isinf(np.take_along_axis(scores, ids, axis=1)), -1, ids)


SPLITS = {
    "entry": lambda data: ranking.by_entry(data),
    "two parts": lambda data: ranking.by_entry(data, (4, 1)),
    "user": lambda data: ranking.by_user(data, (10, 12)),
    "time": lambda data: ranking.by_time(data, np.random.default_rng(1).random(data.nnz)),
}


@pytest.mark.parametrize("name", SPLITS)
@pytest.mark.parametrize("n", [1, 5, (3, 25)])
@pytest.mark.parametrize("batch", [7, 10_000])
def test_evaluate_is_judging_all_lists_at_once(name, n, batch, monkeypatch):
    monkeypatch.setattr(evaluation, "BATCH", batch)
    split = SPLITS[name](some_positives())
    for part in filter(None, (split, split.validation)):
        model = Popular(part.train)
        found = ranking.evaluate(model, part, n)
        wanted = ranking.judge(brute_force(part, np.max(n)), part.test, n, known=part.train)
        assert found.means == pytest.approx(wanted.means)
        assert found.left_out == wanted.left_out
        np.testing.assert_array_equal(found.users, wanted.users)
        for key, each in wanted.values.items():
            np.testing.assert_array_equal(found.values[key], each)
        assert max(rows.shape[0] for rows, _ in model.asked) <= batch


@pytest.mark.parametrize("batch", [3, 10_000])
def test_shares_are_of_the_lists_of_all_users_who_are_served(batch, monkeypatch):
    """Also of those without held-out items; rows that are empty in the data are nobody."""
    monkeypatch.setattr(evaluation, "BATCH", batch)
    data = some_positives(30).tolil()
    data[7] = 0
    split = ranking.by_entry(data.tocsr())
    test = split.test.tolil()
    test[10:] = 0
    split = ranking.Split(split.train, split.known, test.tocsr(), split.users)
    model = Popular(split.train)
    found = ranking.evaluate(model, split, 2)
    people = np.delete(np.arange(30), 7)
    ids = brute_force(split, 2)[people]
    assert found["coverage@2"] == ranking.coverage(ids, 25, 2) > ranking.coverage(ids[:9], 25, 2)
    assert found["popularity_share@2"] == ranking.popularity_share(ids, split.train, 2)
    assert np.concatenate([rows for rows, _ in model.asked]).tolist() == people.tolist()
    judged = ranking.judge(ids, split.test[people], 2, known=split.train)
    assert judged.means == pytest.approx(found.means)
    assert (found.left_out, judged.left_out) == (21, 20)
    np.testing.assert_array_equal(people[judged.users], found.users)


def test_what_is_known_and_was_not_fitted_is_taken_out_of_the_lists():
    split = ranking.by_entry(some_positives())
    model = Popular(split.train)
    found = ranking.evaluate(model, split, 5)
    assert model.asked[0][1] > 5  # room for the validation part
    every = ranking.evaluate(Popular(split.train, filters=False), split, 5)
    assert every["ndcg@5"] < found["ndcg@5"]  # what was not left out took places of the list
    strangers = ranking.by_user(some_positives(), 10)
    model = Popular(strangers.train)
    ranking.evaluate(model, strangers, 5)
    rows, n = model.asked[0]
    assert n == 5
    assert sparse.issparse(rows)
    np.testing.assert_array_equal(rows.toarray(), strangers.known.toarray())


def test_lists_may_be_shorter_than_n():
    split = ranking.by_entry(some_positives(items=6))
    found = ranking.evaluate(Popular(split.train), split, 50)
    assert found["recall@50"] == 1
    assert found["coverage@50"] == 1


def test_an_estimator_with_recommend_is_evaluated():
    data = some_positives(40, 12, 0.5)
    rows, cols = data.nonzero()
    split = ranking.by_entry(sparse.csr_array((1 + (cols % 3) + 0.1 * (rows % 2), (rows, cols)), shape=data.shape))
    i, j = split.train.nonzero()
    model = bf.MatrixCompletion(n_components=2, ridge=1.0, random_state=0).fit((i, j, split.train.data))
    found = ranking.evaluate(model, split, 3)
    assert 0 <= found["ndcg@3"] <= 1


class Wrong:
    def __init__(self, answer):
        self.answer = answer

    def recommend(self, rows, n):
        return self.answer(rows, n)


BAD = {
    "has no method `recommend`": lambda split: ranking.evaluate(object(), split),
    "(?s)split is .*, not a Split": lambda split: ranking.evaluate(Popular(split.train), split.train),
    "returned ndarray. It must return \\(ids, scores\\)": lambda split: ranking.evaluate(
        Wrong(lambda rows, n: np.zeros((rows.size, n), int)), split
    ),
    "returned shape \\(1, 1\\) instead of 10 lists of up to 10": lambda split: ranking.evaluate(
        Wrong(lambda rows, n: (np.zeros((1, 1), int), None)), split
    ),
    "recommended has dtype float64": lambda split: ranking.evaluate(
        Wrong(lambda rows, n: (np.full((rows.shape[0], n), np.nan), None)), split
    ),
    "item 25, but there are 25 items": lambda split: ranking.evaluate(
        Wrong(lambda rows, n: (np.full((rows.shape[0], 1), 25), None)), split
    ),
    "n=0": lambda split: ranking.evaluate(Popular(split.train), split, 0),
    "denominator=None": lambda split: ranking.evaluate(Popular(split.train), split, denominator=None),
    "The test part of this split is empty": lambda split: ranking.evaluate(
        Popular(split.train), ranking.Split(split.train, split.known, 0 * split.test)
    ),
}


@pytest.mark.parametrize("message", BAD)
def test_mistakes_get_one_clear_error(message):
    with pytest.raises(InputError, match=message):
        BAD[message](ranking.by_user(some_positives(), 10))


@pytest.mark.parametrize("distinct", [2, 10_000])
def test_an_interval_covers_the_mean_as_often_as_it_says(distinct):
    """Both ways to draw users; the true mean is in 90 % of 200 intervals, up to four standard errors."""
    rng, inside = np.random.default_rng(0), 0
    for draw in range(200):
        values = rng.integers(0, distinct, 200) / (distinct - 1)
        low, high = ranking.interval(values, 0.9, draws=300, seed=draw)
        inside += low <= 0.5 <= high
    assert abs(inside / 200 - 0.9) < 4 * np.sqrt(0.9 * 0.1 / 200)


def test_both_ways_to_draw_users_have_the_same_spread(monkeypatch):
    values = np.random.default_rng(0).integers(0, 3, 400) / 2
    few = ranking.interval(values, draws=20_000)
    monkeypatch.setattr(evaluation, "FEW", 1e9)
    np.testing.assert_allclose(ranking.interval(values, draws=20_000), few, atol=0.003)
    error = values.std() / 20
    np.testing.assert_allclose(few, values.mean() + 1.96 * error * np.array([-1, 1]), atol=0.1 * error + 1 / 800)


def test_an_interval_is_repeatable_and_refuses_what_is_no_mean_over_users():
    values = np.random.default_rng(0).random(50)
    assert ranking.interval(values, seed=3) == ranking.interval(values, seed=3) != ranking.interval(values, seed=4)
    low, high = ranking.interval(values)
    assert low < values.mean() < high
    assert ranking.interval([0.25] * 4) == (0.25, 0.25)
    for bad, message in (
        (lambda: ranking.interval(np.eye(2)), "2 dimensions"),
        (lambda: ranking.interval([np.nan]), "NaN"),
        (lambda: ranking.interval(values, 95), "level=95"),
        (lambda: ranking.interval(values, draws=0), "draws=0"),
        (lambda: ranking.interval(values, seed=0.5), "seed=0.5"),
    ):
        with pytest.raises(InputError, match=message):
            bad()


def test_differences_are_taken_user_by_user():
    split = ranking.by_entry(some_positives(200))
    popular = ranking.evaluate(Popular(split.train), split, (5, 10))
    same = popular.difference(ranking.evaluate(Popular(split.train), split, 5), "ndcg@5")
    assert same == (0, 0, 0)
    every = ranking.evaluate(Popular(split.train, filters=False), split, 5)
    mean, low, high = popular.difference(every, "ndcg@5")
    assert mean == pytest.approx(popular["ndcg@5"] - every["ndcg@5"])
    assert 0 < low < mean < high
    other = ranking.by_user(some_positives(200), 20)
    with pytest.raises(InputError, match="different users"):
        popular.difference(ranking.evaluate(Popular(other.train), other), "ndcg@10")
    with pytest.raises(InputError, match="different denominators"):
        popular.difference(ranking.evaluate(Popular(split.train), split, denominator="k"), "recall@10")
    with pytest.raises(InputError, match="not a per-user metric"):
        popular.difference(every, "coverage@5")


def test_an_evaluation_prints_as_a_table():
    split = ranking.by_entry(some_positives(30))
    found = ranking.evaluate(Popular(split.train), split, denominator="k")
    text = str(found)
    low, high = found.interval("ndcg@10")
    assert f"ndcg@10              {found['ndcg@10']:.4f}  {low:.4f} to {high:.4f}" in text
    assert f"coverage@10          {found['coverage@10']:.4f}\n" in text
    assert text.endswith("users evaluated. Recall is hits/min(k, |T|).")
    with pytest.raises(InputError, match=r".auc. is not a metric of this evaluation"):
        found["auc"]
