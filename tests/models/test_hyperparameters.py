"""Rank and ridge, chosen together."""

import numpy as np
import pytest

import bifactor as bf
from bifactor.models import hyperparameters
from bifactor.models.hyperparameters import Family, PathState, RidgePathSearch, largest_ridge, select_rank_and_ridge
from bifactor.penalties import Ridge
from bifactor.running.holdout import Holdout


def problem(noise=1.0, rank=3, shape=(90, 60), offsets=True):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((shape[0], rank)) * 0.6 ** np.arange(rank) @ rng.standard_normal((rank, shape[1]))
    i, j = np.nonzero(rng.random(shape) < 0.4)
    y = X[i, j] + noise * rng.standard_normal(i.size)
    return bf.Problem("squared", bf.operators.Entries(i, j, shape), y, offsets=offsets)


@pytest.fixture
def walk():
    given = problem()
    holdout = Holdout(given, np.random.default_rng(0))
    start = given.zero(0)
    return RidgePathSearch(holdout, Family(Ridge, start, largest_ridge(given, start)), None), PathState(start)


def test_a_wider_path_begins_where_the_narrow_one_ran_out_of_columns(walk):
    walk, start = walk
    narrow, middle, _ = walk.to(2, start)
    assert 0 < len(middle.means) < len(narrow.ridges)
    assert middle.x.width < 2 + 2
    branched, *_ = walk.to(12, middle)
    whole, *_ = walk.to(12, start)
    shared = len(middle.means)
    np.testing.assert_array_equal(branched.held_out[:shared], narrow.held_out[:shared])
    np.testing.assert_array_equal(branched.ridges, whole.ridges)
    np.testing.assert_allclose(branched.held_out, whole.held_out, rtol=2e-3)
    assert branched.chosen == whole.chosen


def test_ridges_fall_and_end_after_the_best(walk):
    walk, start = walk
    path, *_ = walk.to(6, start)
    assert np.all(np.diff(path.ridges) < 0)
    best = int(np.argmin(path.held_out))
    assert (path.chosen, path.standard_error[best]) == (path.ridges[best], 0)
    assert len(path.ridges) == best + 1 + hyperparameters.PATIENCE
    assert not path.interrupted


def test_each_path_is_walked_once(monkeypatch):
    widths = []
    fitted = hyperparameters._fitted

    def counted(problem, x, columns):
        widths.append(columns)
        return fitted(problem, x, columns)

    monkeypatch.setattr(hyperparameters, "_fitted", counted)
    rank, ridge, path, *_ = select_rank_and_ridge(problem(offsets=False), None, None, np.random.default_rng(0))
    assert widths == sorted(widths)
    assert len(set(widths)) == 3
    assert ridge == path.chosen
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
    _, ridge, path, *_ = select_rank_and_ridge(problem(offsets=offsets), None, None, np.random.default_rng(0))
    assert path.interrupted
    assert (len(path.ridges), ridge) == (3, path.chosen)


def test_ctrl_c_during_the_choice_of_offsets_takes_one_ridge(monkeypatch):
    fitted = hyperparameters._fitted

    def stopped(problem, x, columns):
        if columns == 0:
            raise KeyboardInterrupt
        return fitted(problem, x, columns)

    monkeypatch.setattr(hyperparameters, "_fitted", stopped)
    _, ridge, path, _, offset_ridge = select_rank_and_ridge(problem(), 5, None, np.random.default_rng(0))
    assert path.interrupted
    assert (offset_ridge, ridge) == (None, path.chosen)


def test_ctrl_c_before_any_choice_is_raised(monkeypatch):
    def stopped(problem, x, columns):
        raise KeyboardInterrupt

    monkeypatch.setattr(hyperparameters, "_fitted", stopped)
    with pytest.raises(KeyboardInterrupt):
        select_rank_and_ridge(problem(), None, None, np.random.default_rng(0))
