"""Estimators fitted to data in blocks: the same fits as in memory, whose data nobody holds."""

import pickle
import shutil
import warnings

import numpy as np
import pytest
from sklearn.base import clone

import bifactor as bf
from bifactor.data import BlockStore, Observations, partition
from bifactor.data.store import partition as plan
from bifactor.errors import FileError, InputError


def entries(m=150, n=60, seed=0):
    """Entries of a matrix of rank 2 with offsets, in single precision as stores have them."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, 2)) @ rng.standard_normal((2, n)) + rng.standard_normal((m, 1)) + 3
    rows, cols = np.nonzero(rng.random((m, n)) < 0.4)
    return rows, cols, (X[rows, cols] + 0.1 * rng.standard_normal(rows.size)).astype(np.float32)


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch):
    monkeypatch.setattr(plan, "SMALL", 1)


@pytest.fixture(params=[False, True], ids=["rows", "columns"])
def data(request):
    rows, cols, y = entries()
    return (cols, rows, y) if request.param else (rows, cols, y)


@pytest.fixture
def store(data, tmp_path):
    found = partition(data, tmp_path / "blocks")
    assert len(found.parts) == 8
    return found


TIGHT = {"n_components": 2, "tol": 1e-7, "random_state": 0}


def same(a, b, rows, cols, tolerance):
    apart = np.abs(a.predict(rows, cols) - b.predict(rows, cols)).max()
    assert apart <= tolerance * np.abs(a.predict(rows, cols)).max()


RECODED = {"poisson": lambda y: np.abs(np.round(y)), "ordinal": lambda y: np.clip(np.round(y), 1, 5)}


@pytest.mark.parametrize("loss", ["squared", "huber", "poisson", "ordinal"])
def test_a_fit_of_blocks_is_that_in_memory(data, tmp_path, loss):
    rows, cols, y = data
    y = RECODED.get(loss, lambda y: y)(y)
    inside = bf.MatrixCompletion(loss=loss, ridge=1.0, **TIGHT).fit((rows, cols, y))
    blocks = bf.MatrixCompletion(loss=loss, ridge=1.0, **TIGHT).fit(partition((rows, cols, y), tmp_path / "b"))
    assert blocks.intercept_ == pytest.approx(inside.intercept_, abs=1e-5)
    assert blocks.clip_ == inside.clip_
    assert blocks.result_.objective == pytest.approx(inside.result_.objective, rel=1e-5)
    same(inside, blocks, rows, cols, 2e-3)


def test_weights_count_as_in_memory(data, tmp_path):
    rows, cols, y = data
    w = np.random.default_rng(1).integers(1, 4, y.size).astype(np.float32)
    held = Observations(rows, cols, y, (rows.max() + 1, cols.max() + 1), w)
    inside = bf.MatrixCompletion(ridge=1.0, **TIGHT).fit(data, sample_weight=w)
    blocks = bf.MatrixCompletion(ridge=1.0, **TIGHT).fit(partition(held, tmp_path / "b"))
    assert blocks.intercept_ == pytest.approx(inside.intercept_, rel=1e-6)
    same(inside, blocks, rows, cols, 1e-4)


def test_what_is_chosen_is_that_of_memory(tmp_path):
    data = rows, cols, _ = entries(80, 40)
    store = partition(data, tmp_path / "blocks")
    for options in ({"ridge": "auto"}, {"loss": "huber"}, {"implicit_features": False}):
        inside = bf.MatrixCompletion(random_state=0, n_components=2, **options).fit(data)
        options = {name: value for name, value in options.items() if name != "implicit_features"}
        blocks = bf.MatrixCompletion(random_state=0, n_components=2, **options).fit(store)
        for name in ("ridge_", "offset_ridge_"):
            known = getattr(inside, name)
            assert getattr(blocks, name) == (None if known is None else pytest.approx(known, rel=1e-6))
        same(inside, blocks, rows, cols, 0.02)
    assert blocks.noise_ == pytest.approx(inside.noise_, rel=0.05)


@pytest.mark.parametrize("options", [{"ridge": "auto"}, {"loss": "huber"}])
def test_the_unit_of_numbers_does_not_matter(tmp_path, options):
    rows, cols, y = entries(60, 30)
    found = []
    for c in (1, 1e-6, 1e6):
        store = partition((rows, cols, c * y), tmp_path / f"{c:g}")
        found.append(bf.MatrixCompletion(random_state=0, n_components=2, **options).fit(store).predict(rows, cols) / c)
    np.testing.assert_allclose(found, np.broadcast_to(found[0], np.shape(found)), rtol=1e-3, atol=1e-3)


def test_labels(data, store):
    rows, cols, _ = data
    inside = bf.OneBitCompletion(binarize=3.0, ridge=1.0, **TIGHT).fit(data)
    blocks = bf.OneBitCompletion(binarize=3.0, ridge=1.0, **TIGHT).fit(store)
    assert np.abs(inside.predict_proba(rows, cols) - blocks.predict_proba(rows, cols)).max() < 1e-3
    with pytest.raises(InputError, match="more than 256 different values"):
        bf.OneBitCompletion().fit(store)


def test_clicks_with_counts_and_pairs_that_come_twice(data, tmp_path):
    rows, cols, _ = (part[data[2] > 3] for part in data)
    counts = np.random.default_rng(2).poisson(0.7, rows.size).astype(np.float32) + 1
    twice = np.concatenate([rows, rows[:40]]), np.concatenate([cols, cols[:40]]), np.concatenate([counts, counts[:40]])
    settings = {"n_components": 4, "unobserved": 0.1, "ridge": 0.02, "item_share": 0, "tol": 1e-8, "random_state": 0}
    inside = bf.Recommender(**settings).fit(twice)
    blocks = bf.Recommender(**settings).fit(partition(twice, tmp_path / "b"))
    assert blocks.result_.objective == pytest.approx(inside.result_.objective, rel=1e-5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # rows that have chosen nothing
        assert np.mean(inside.recommend(n=5)[0] == blocks.recommend(n=5)[0]) > 0.99
    (ours, parts, _), (theirs, others, _) = (one.explain(rows[0], 5, n=3) for one in (inside, blocks))
    assert np.array_equal(ours, theirs)
    assert np.allclose(parts, others, atol=1e-4)
    assert np.array_equal(inside.fit_.seen.counts, blocks.fit_.seen.counts)
    with pytest.raises(InputError, match="Item-to-item"):
        bf.Recommender(item_share=0.3).fit(tmp_path / "b")


def test_weights_of_clicks_are_chosen_as_in_memory(tmp_path, monkeypatch):
    from bifactor.models.recommender import hyperparameters

    rows, cols, y = entries(320, 30)
    stay = y > 3.5
    monkeypatch.setattr(hyperparameters, "MOST", 3)
    inside = bf.Recommender(n_components=3, item_share=0, random_state=0).fit((rows[stay], cols[stay]))
    partition((rows[stay], cols[stay], np.ones(stay.sum())), tmp_path / "b")
    blocks = bf.Recommender(n_components=3, random_state=0).fit(tmp_path / "b")
    assert (blocks.ridge_, blocks.unobserved_) == (inside.ridge_, inside.unobserved_)
    assert blocks.weight_search_.score[0] == pytest.approx(inside.weight_search_.score[0], abs=0.02)


def test_what_was_seen_is_read_from_the_blocks(data, store):
    rows, cols, _ = data
    inside, blocks = (bf.MatrixCompletion(ridge=1.0, **TIGHT).fit(one) for one in (data, store))
    for asked in (None, [3], [59, 0, 7], np.arange(20, 30)):
        (a, first), (b, second) = (one.recommend(asked, n=4) for one in (inside, blocks))
        assert np.array_equal(a, b)
        assert np.allclose(first, second, atol=1e-3, equal_nan=True)
    assert np.array_equal(blocks.fit_.seen[3], np.sort(cols[rows == 3]))


def test_a_saved_fit_knows_where_its_blocks_are(data, store, tmp_path):
    blocks = bf.MatrixCompletion(ridge=1.0, **TIGHT).fit(store)
    (tmp_path / "home").mkdir()
    blocks.save(tmp_path / "home/fit")
    assert (tmp_path / "home/fit/seen.safetensors").stat().st_size < 8 * sum(store.shape) + 2000
    expected = blocks.recommend([5, 1], n=3)[0]
    assert np.array_equal(bf.load(tmp_path / "home/fit").recommend([5, 1], n=3)[0], expected)
    new = Observations(np.zeros(4, int), np.arange(4), np.ones(4, np.float32), (1, store.shape[1]))
    more = bf.load(tmp_path / "home/fit").fold_in(new)
    more.save(tmp_path / "home/more")
    for one in (more, bf.load(tmp_path / "home/more")):
        assert one.seen[len(more.rows) - 1].tolist() == [0, 1, 2, 3]
        assert not set(one.recommend([len(more.rows) - 1, 5], n=9)[0][0]) & {0, 1, 2, 3}
        assert np.array_equal(one.recommend([5, 1], n=3)[0], expected)
    moved = tmp_path / "moved"
    moved.mkdir()
    shutil.move(tmp_path / "home", moved / "home")
    shutil.move(tmp_path / "blocks", moved / "blocks")
    assert np.array_equal(bf.load(moved / "home/fit").recommend([5, 1], n=3)[0], expected)
    shutil.rmtree(moved / "blocks")
    left = bf.load(moved / "home/fit")
    assert left.recommend([5], n=3, filter_seen=False)[0].shape == (1, 3)
    with pytest.raises(FileError, match="needed to leave out known columns"):
        left.recommend([5], n=3)
    partition(entries(seed=5), moved / "blocks")
    with pytest.raises(FileError, match="does not contain the data of the fit"):
        bf.load(moved / "home/fit").recommend([5], n=3)


def test_error_bars_are_kept(store, data, tmp_path):
    rows, cols, _ = (part[:50] for part in data)
    blocks = bf.MatrixCompletion(n_components=2, noise="one", random_state=0).fit_long(store.folder)
    _, std = blocks.predict(rows, cols, return_std=True)
    blocks.save(tmp_path / "fit")
    assert np.allclose(bf.load(tmp_path / "fit").predict(rows, cols, return_std=True)[1], std, rtol=1e-3)


def test_new_rows_are_found(data, store):
    inside, blocks = (bf.MatrixCompletion(ridge=1.0, **TIGHT).fit(one) for one in (data, str(store.folder)))
    X = np.full((2, store.shape[1]), np.nan)
    X[0, :9], X[1, 4:30] = 2.0, 5.0
    assert np.allclose(inside.predict(X), blocks.predict(X), atol=1e-3)
    assert inside.score(data) == pytest.approx(blocks.score(data), abs=1e-4)


def test_entries_are_held_out_by_the_same_hash(data, store):
    rows, cols, y = data
    mask = bf.data.RandomCells(0.2, 7)
    held = mask(rows, cols)
    assert 0.1 < held.mean() < 0.3
    there = store.split(mask)[1].lines(np.ones(store.shape[0], bool))
    order = np.lexsort((there.cols, there.rows)), np.lexsort((cols[held], rows[held]))
    for ours, theirs in ((there.rows, rows), (there.cols, cols), (there.values, y)):
        assert np.array_equal(ours[order[0]], theirs[held][order[1]])


def test_an_executor_is_shared_by_copies(store):
    here = bf.executors.Streamed("1MB")
    estimator = bf.MatrixCompletion(ridge=1.0, executor=here, **TIGHT)
    assert clone(estimator).executor is here
    assert estimator.fit(store).model_.result.problem is None
    again = pickle.loads(pickle.dumps(estimator))
    assert again.executor.memory == here.memory
    assert np.array_equal(again.predict([0, 1], [2, 3]), estimator.predict([0, 1], [2, 3]))


@pytest.mark.parametrize(
    ("estimator", "options", "said"),
    [
        (bf.MatrixCompletion(user_features=np.ones((150, 1))), {}, "user_features needs data in memory"),
        (bf.MatrixCompletion(executor="here"), {}, "executor"),
        (bf.MatrixCompletion(noise="student"), {}, "needs all data in memory"),
        (bf.MatrixCompletion(implicit_features=True), {}, "implicit_features=True"),
        (bf.MatrixCompletion(loss="logistic"), {}, "Logistic"),
        (bf.MatrixCompletion(), {"sample_weight": np.ones(3)}, "A block store contains its own weights"),
    ],
)
def test_what_does_not_go_with_blocks_is_refused(estimator, options, said, tmp_path):
    store = partition(entries(), tmp_path / "blocks")
    with pytest.raises(InputError, match=said):
        estimator.fit(store, **options)


def test_what_needs_the_data_says_so(tmp_path):
    fit = bf.MatrixCompletion(ridge=1.0, **TIGHT).fit(partition(entries(), tmp_path / "blocks"))
    for call in (fit.complete, lambda: fit.partial_fit(np.ones((1, 60)))):
        with pytest.raises(InputError, match="are in blocks"):
            call()
    with pytest.raises(FileError, match="not a block store"):
        bf.MatrixCompletion().fit(tmp_path)
    path = BlockStore.open(tmp_path / "blocks").parts[3].path
    with open(path, "r+b") as file:
        file.truncate(100)
    with pytest.raises(FileError, match="block-00003"):
        bf.MatrixCompletion(ridge=1.0).fit(tmp_path / "blocks")
