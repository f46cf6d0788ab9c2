"""What held-out entries decide: noise, features, the pattern of entries, and when a fit with features ends."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

import bifactor as bf
from bifactor.errors import InputError
from bifactor.models.completion import noise_selection
from bifactor.models.completion.noise_selection import (
    EarlyStopping,
    NoiseContest,
    NoiseTrial,
    candidates,
    harmful_features,
    lines_held_out,
)
from bifactor.running.holdout import Holdout
from bifactor.solvers import Variational

M, N, COLD = 60, 40, 5
BASE = (0.5, 0.4, 0.6, 0.7)
"""Losses of candidates, features aside."""


@pytest.fixture(scope="module")
def problem():
    i, j = np.nonzero(np.random.default_rng(0).random((M, N)) < 0.5)
    noise = np.random.default_rng(1).standard_normal(i.size)
    return bf.Problem("squared", bf.operators.Entries(i, j, (M, N)), noise, offsets=True)


@pytest.fixture(scope="module")
def told():
    """A table of rows that features tell much of; the last ones have no entries."""
    rng = np.random.default_rng(0)
    F = rng.standard_normal((M, 3))
    table = F @ rng.standard_normal((3, N)) + 0.3 * rng.standard_normal((M, N))
    table[rng.random((M, N)) < 0.6] = np.nan
    table[M - COLD :] = np.nan
    return table, F


def completion(**options):
    usual = {"n_components": 2, "noise": "one", "implicit_features": False, "random_state": 0}
    return bf.MatrixCompletion(**usual | options)


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize(
    ("without", "pattern", "taken"),
    [
        (-3.0, 1.0, (True, False)),
        (1.0, 3.0, (True, True)),  # features do no harm that is clear
        (3.0, 1.0, (False, False)),
        (3.0, 3.0, (False, True)),
        (None, 3.0, (False, True)),
        (-3.0, None, (True, False)),
    ],
)
def test_features_stay_unless_they_do_harm_and_the_pattern_is_taken_where_it_helps(
    problem, monkeypatch, without, pattern, taken, keep
):
    """By how many standard errors it is better to go without features, and then with the pattern."""
    tried, rng = candidates(None, 3, (M, N)), np.random.default_rng(0)
    told, signs = without is not None, np.where(np.arange(problem.y.size // 10) % 2, 1.0, -1.0)
    unit = Holdout.at_random(problem, rng).standard_error(signs)

    def enter(self, one):
        """The second noise is the best."""
        tried = self.trials.tried
        if len(tried) < len(BASE):
            losses = np.full(signs.size, BASE[len(tried)])
        else:
            first = len(tried) == len(BASE) or one.features == told
            losses = tried[1 if first else -1].losses - (pattern if one.solver.implicit else without) * unit + signs
        tried.append(NoiseTrial(one, losses))

    monkeypatch.setattr(NoiseContest, "enter", enter)
    given = (np.ones((M, 1)) if told else None, None)
    choice = noise_selection.select_noise_model(problem, tried, rng, None, given, pattern is not None, keep)
    wanted = (taken[0] or (keep and told), taken[1])
    assert (choice.chosen.features, choice.chosen.solver.implicit) == wanted
    assert choice.chosen.solver.noise == tried[1].solver.noise
    assert choice.search.score.size == 4 + (told and not keep) + (pattern is not None)
    assert choice.search.chosen["noise"] == choice.chosen.solver.noise


def test_a_candidate_that_falls_behind_is_given_up(problem):
    holdout = Holdout.at_random(problem, np.random.default_rng(0))
    watches = (EarlyStopping(holdout, best, turning=False) for best in (0.0, np.inf))
    behind, ahead = (noise_selection._fitted(watch, Variational(tol=0), 3) for watch in watches)
    assert behind.status is bf.Status.CALLBACK
    assert behind.n_iter < noise_selection.SWEEPS == ahead.n_iter


class Losses:
    """Held-out losses that are told one after the other."""

    def __init__(self, *means):
        self.means = list(means)

    def losses(self, U, V):
        return np.full(3, self.means.pop(0))

    def mean(self, losses):
        return losses.mean()


@pytest.mark.parametrize(
    ("looks", "end", "sweeps", "loss"),
    [
        ((3.0, 2.0, 4.0, 5.0), 5.0, 20, 2.0),
        ((3.0, 4.0, 2.0), 1.0, None, 1.0),
        ((3.0, 2.0, 2.5), 2.4, 20, 2.0),
        ((), 1.0, None, 1.0),
    ],
)
def test_a_fit_with_features_counts_as_it_was_at_its_best(problem, looks, end, sweeps, loss):
    watch, state = EarlyStopping(Losses(*looks, end), best=0.0, turning=True), bf.solve(problem, 1, max_iter=1, rng=0)
    stopped = [watch(sweep, state) for sweep in range(1, 10 * len(looks) + 1)]
    assert stopped.index(True) == 39 if len(looks) == 4 else not any(stopped)
    losses, best = watch.ended(state)
    assert (losses.mean(), best) == (loss, sweeps)


def test_features_that_tell_much_are_used(told):
    table, F = told
    model = completion(user_features=F).fit(table)
    assert model.features_used_
    assert model.noise_search_["features"].tolist() == [True, True, False]
    assert min(model.noise_search_.score[:2]) < 0.9 * model.noise_search_.score[2]
    assert not completion().fit(table[:3, :9]).features_used_
    assert completion(user_features=F, noise="auto", ridge=1.0).fit(table).features_used_
    assert completion(user_features=F[:3, :1]).fit(table[:3, :9]).features_used_  # too few entries for a choice


def test_a_model_without_the_features_that_do_harm_is_that_of_a_fit_without(told, monkeypatch):
    table, F = told
    monkeypatch.setattr(noise_selection, "CLEAR", -np.inf)  # whatever they gain
    model = completion(user_features=F).fit(table)
    assert not model.features_used_
    plain = completion(noise="auto", solver=model.model_.choice.chosen.solver).fit(table)
    np.testing.assert_array_equal(model.complete(), plain.complete())
    np.testing.assert_array_equal(model.transform(table[:4], features=F[:4]), plain.transform(table[:4]))
    value, std = model.predict([M - 1], [3], return_std=True)  # a row without entries
    assert np.isfinite(value)
    assert std > plain.predict([0], [3], return_std=True)[1]
    entries = (np.array([M - 1, 0]), np.array([0, 1]), np.array([1.0, 2.0]))
    again = model.partial_fit(entries).predict([M - 1], [3])
    assert again == plain.partial_fit(entries).predict([M - 1], [3])
    with pytest.raises(InputError, match="features has 2 lines"):
        model.transform(table[:4], features=F[:2])
    assert completion(user_features=F, keep_features=True).fit(table).features_used_


@pytest.mark.parametrize("side", [0, 1])
def test_features_are_for_rows_without_entries_if_they_predict_whole_rows(problem, side):
    """They mislead about the rows that are held out as a whole, though not about held-out entries of others."""
    rng, operator = np.random.default_rng(2), problem.operator
    F, G = rng.standard_normal((M, 2)), rng.standard_normal((N, 2))
    y = (F @ [1.0, -1.0])[operator.rows] + (G @ [1.0, 1.0])[operator.cols] + 0.3 * problem.y
    told = bf.Problem("squared", operator, y, offsets=True)
    masks = lines_held_out(told, np.random.default_rng(0))
    one = replace(candidates("one", 2, (M, N))[0], features=True)
    assert harmful_features(told, masks, one, (F, G)) == (False, False)
    wrong = [F.copy(), G.copy()]
    hidden = np.unique((operator.rows, operator.cols)[side][masks[side]])
    wrong[side][hidden] *= -1
    assert harmful_features(told, masks, one, tuple(wrong)) == (side == 0, side == 1)


def test_where_no_entries_would_be_left_features_are_used():
    rows, cols = np.r_[np.zeros(20, int), np.arange(1, 11)], np.r_[np.arange(20), np.zeros(10, int)]
    entries = bf.operators.Entries(rows, cols, (11, 20))
    star = bf.Problem("squared", entries, np.ones(30), np.where(np.arange(30) < 20, 1.0, 0.0))
    for seed in range(30):  # in some, the row with all entries is held out
        one = replace(candidates("one", 1, (11, 20))[0], features=True)
        masks = lines_held_out(star, np.random.default_rng(seed))
        assert not any(harmful_features(star, masks, one, (np.ones((11, 1)), None)))


def test_rows_without_entries_are_like_unknown_ones_where_features_do_not_predict_them(told, monkeypatch, tmp_path):
    table, F = told
    monkeypatch.setattr(noise_selection, "harmful_features", lambda *_: (True, False))
    model = completion(user_features=F).fit(table)
    assert model.features_used_
    assert model.model_.choice.blind == (True, False)
    found = model.row_factors_[M - COLD :]
    np.testing.assert_allclose(found, found[:1].repeat(COLD, axis=0))
    assert np.ptp(model.transform(table[:4], features=F[:4]) - model.transform(table[:4]), axis=0).max() > 1e-3
    model.save(tmp_path / "fit")
    again = bf.load(tmp_path / "fit").model.posterior.rows
    assert again.blind
    new = again.before(again.means[:2], None).means
    np.testing.assert_allclose(new[:, 2:], found[:2], atol=1e-6)


def test_the_fit_ends_after_the_sweeps_that_were_best(told, monkeypatch):
    table, F = told
    ended = EarlyStopping.ended
    monkeypatch.setattr(
        EarlyStopping, "ended", lambda self, result: (ended(self, result)[0], 4 if self.turning else None)
    )
    model = completion(user_features=sparse.csr_array(F)).fit(table)
    assert (model.n_iter_, model.result_.status) == (4, bf.Status.CALLBACK)


@pytest.mark.parametrize("where", [2, 3])
def test_ctrl_c_before_a_fit_without_features_keeps_them(told, monkeypatch, where):
    calls, function = [], noise_selection._fitted

    def pressed(*arguments):
        calls.append(1)
        if len(calls) == where:
            raise KeyboardInterrupt
        return function(*arguments)

    monkeypatch.setattr(noise_selection, "_fitted", pressed)
    model = completion(user_features=told[1]).fit(told[0])
    assert model.noise_search_.interrupted
    assert model.noise_search_.score.size == where - 1
    assert model.features_used_


def test_a_wrong_flag(told):
    with pytest.raises(InputError, match="keep_features"):
        completion(keep_features="yes").fit(told[0])
