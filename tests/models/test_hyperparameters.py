"""Rank and ridge, chosen together."""

import numpy as np
import pytest

import bifactor as bf
from bifactor.models import hyperparameters
from bifactor.models.hyperparameters import Family, PathState, RidgePathSearch, largest_ridge, select_rank_and_ridge
from bifactor.penalties import Ridge
from bifactor.running.holdout import Holdout
from bifactor.running.search import Trials


def problem(noise=1.0, rank=3, shape=(90, 60), offsets=True):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((shape[0], rank)) * 0.6 ** np.arange(rank) @ rng.standard_normal((rank, shape[1]))
    i, j = np.nonzero(rng.random(shape) < 0.4)
    y = X[i, j] + noise * rng.standard_normal(i.size)
    return bf.Problem("squared", bf.operators.Entries(i, j, shape), y, offsets=offsets)


@pytest.fixture
def walk():
    given = problem()
    holdout = Holdout.at_random(given, np.random.default_rng(0))
    start = given.zero(0)
    return RidgePathSearch(holdout, Family(Ridge, start, largest_ridge(given, start)), Trials()), PathState(start)


def test_a_wider_path_begins_where_the_narrow_one_ran_out_of_columns(walk):
    walk, start = walk
    middle, narrow = walk.to(2, start)
    assert 0 < len(middle.means) < len(narrow.ridges)
    assert middle.x.width < 2 + 2
    _, branched = walk.to(12, middle)
    _, whole = walk.to(12, start)
    shared = len(middle.means)
    np.testing.assert_array_equal(branched.means[:shared], narrow.means[:shared])
    np.testing.assert_array_equal(branched.ridges, whole.ridges)
    np.testing.assert_allclose(branched.means, whole.means, rtol=2e-3)
    assert branched.best == whole.best


def test_ridges_fall_and_end_after_the_best(walk):
    walk, start = walk
    _, path = walk.to(6, start)
    assert np.all(np.diff(path.ridges) < 0)
    assert len(path.ridges) == path.best + 1 + hyperparameters.PATIENCE
    assert walk.trials.tried == list(path.ridges)
    assert not walk.trials.interrupted


def test_each_path_is_walked_once(monkeypatch):
    widths = []
    fitted = hyperparameters._fitted

    def counted(problem, x, columns):
        widths.append(columns)
        return fitted(problem, x, columns)

    monkeypatch.setattr(hyperparameters, "_fitted", counted)
    rank, ridge, search, *_ = select_rank_and_ridge(problem(offsets=False), None, None, np.random.default_rng(0))
    assert widths == sorted(widths)
    assert len(set(widths)) == 3
    assert search.chosen == {"ridge": ridge}
    assert (search.index, search.standard_error[search.index]) == (np.argmin(search.score), 0)
    assert rank in widths
    alone = widths.count(max(widths))
    widths.clear()
    select_rank_and_ridge(problem(offsets=False), 40, None, np.random.default_rng(0))
    assert alone < len(widths)  # the beginning was there


@pytest.mark.parametrize("offsets", [True, False])
def test_ctrl_c_takes_the_best_so_far(monkeypatch, offsets):
    fitted, count = hyperparameters._fitted, 0

    def stopped(problem, x, columns):
        nonlocal count
        count += 1
        if count == 4:
            raise KeyboardInterrupt
        return fitted(problem, x, columns)

    monkeypatch.setattr(hyperparameters, "_fitted", stopped)
    _, ridge, search, *_ = select_rank_and_ridge(problem(offsets=offsets), None, None, np.random.default_rng(0))
    assert search.interrupted
    assert (search.score.size, {"ridge": ridge}) == (3, search.chosen)


def test_ctrl_c_during_the_choice_of_offsets_takes_one_ridge(monkeypatch):
    fitted = hyperparameters._fitted

    def stopped(problem, x, columns):
        if columns == 0:
            raise KeyboardInterrupt
        return fitted(problem, x, columns)

    monkeypatch.setattr(hyperparameters, "_fitted", stopped)
    _, ridge, search, _, offset_ridge = select_rank_and_ridge(problem(), 5, None, np.random.default_rng(0))
    assert search.interrupted
    assert (offset_ridge, search.chosen) == (None, {"ridge": ridge})


def test_ctrl_c_before_any_choice_is_raised(monkeypatch):
    def stopped(problem, x, columns):
        raise KeyboardInterrupt

    monkeypatch.setattr(hyperparameters, "_fitted", stopped)
    with pytest.raises(KeyboardInterrupt):
        select_rank_and_ridge(problem(), None, None, np.random.default_rng(0))


@pytest.mark.parametrize(("ends", "kind"), [(True, bf.data.RowTails), (False, type(None))])
def test_entries_are_held_out_in_the_shape_of_the_holes(monkeypatch, ends, kind):
    """The ridge and the noise for a panel are chosen by the ends of rows, and at random for other data."""
    rng, masks, like = np.random.default_rng(0), [], hyperparameters.holes_like
    monkeypatch.setattr(hyperparameters, "holes_like", lambda *given: masks.append(like(*given)) or masks[-1])
    X = rng.standard_normal((40, 2)) @ rng.standard_normal((2, 30)) + 0.3 * rng.standard_normal((40, 30))
    last = np.where(rng.random(40) < 0.5, rng.integers(8, 30, 40), 30)
    known = np.arange(30) < last[:, None] if ends else rng.random((40, 30)) < 0.8
    for options in ({"ridge": "auto"}, {"n_components": 2}):
        bf.MatrixCompletion(random_state=0, **options).fit(np.where(known, X, np.nan))
        assert type(masks.pop()) is kind


def test_what_is_held_out_are_the_known_cells_of_the_mask():
    i, j = np.nonzero(np.arange(30) < np.r_[np.full(20, 30), np.arange(10, 30)][:, None])
    weights = np.where(np.arange(i.size) % 60 == 0, 0.0, 2.0)
    given = bf.Problem("squared", bf.operators.Entries(i, j, (40, 30)), np.cos(i + j), weights)
    holdout, known = hyperparameters.hold_out(given, np.random.default_rng(0)), weights > 0
    held = (holdout.train.weights == 0) & known
    mask = bf.data.holes_like(i[known], j[known], (40, 30), hyperparameters.SHAPED_FRACTION, np.random.default_rng(0))
    np.testing.assert_array_equal(held, mask(i, j) & known)
    np.testing.assert_array_equal(holdout.weights, weights[held])
    U, V = np.ones((40, 1)), np.ones((30, 1))
    np.testing.assert_allclose(holdout.losses(U, V), (1 - given.y[held]) ** 2 / 2)
    unlucky = given.reweighted(np.where(np.arange(i.size) < 60, 1.0, 0.0))  # two rows, without holes
    assert hyperparameters.hold_out(unlucky, np.random.default_rng(0)).weights.size == 6
