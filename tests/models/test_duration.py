"""How long a fit is said to take."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from bifactor.cli.output import duration_in_words
from bifactor.data import Observations
from bifactor.models import duration
from bifactor.models.completion import noise_selection
from bifactor.models.completion.fitting import as_problem, fit_model, validate_settings
from bifactor.models.duration import PASSES, expected_seconds

OPTIONS = {"loss": "squared", "offsets": True, "max_iter": 5, "tol": 1e-3, "random_state": 0, "solver": None}


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    return Observations(rng.integers(20, size=150), rng.integers(9, size=150), rng.standard_normal(150), (20, 9))


@pytest.fixture
def clock(monkeypatch):
    """A clock on which every pass takes a second, but for the first, which compiles for long."""
    ticks = itertools.chain([0, 100], itertools.count(200))
    monkeypatch.setattr(duration.time, "perf_counter", lambda: float(next(ticks)))


@pytest.mark.parametrize(
    ("n_components", "ridge", "choice"),
    [(None, None, "rank and ridge"), (3, None, "ridge"), (3, 1.0, "nothing"), (None, 1.0, "nothing")],
)
def test_seconds_are_those_of_one_pass_times_their_number(data, clock, n_components, ridge, choice):
    problem = as_problem(data, validate_settings(**OPTIONS, n_components=3, ridge=1.0, verbose=0), 0.0)
    assert expected_seconds(problem, n_components, ridge, False) == PASSES[choice]


def test_a_posterior_takes_as_many_passes_as_columns_in_each_sweep(data, clock, monkeypatch):
    problem = as_problem(data, validate_settings(**OPTIONS, n_components=3, ridge=None, verbose=0), 0.0)
    fits = 1 + len(noise_selection.CANDIDATES)
    assert expected_seconds(problem, 3, None, True) == fits * duration.SWEEPS * 4
    monkeypatch.setattr(duration, "MAX_NOISE_SELECTION_ENTRIES", data.values.size / 2)
    assert expected_seconds(problem, 3, None, True) == (1 + (fits - 1) / 2) * duration.SWEEPS * 4


def test_more_to_choose_takes_longer():
    assert PASSES["rank and ridge"] > PASSES["ridge"] > PASSES["nothing"]


def test_a_fit_tells_before_it_begins_and_is_the_same_one(data):
    said = []
    chosen = validate_settings(**OPTIONS, n_components=2, ridge="auto", verbose=0)
    told = replace(chosen, expect=said.append, stage=lambda *step: said.append(step))
    assert np.array_equal(fit_model(data, told).U, fit_model(data, chosen).U)
    assert isinstance(said[0], float)
    assert said[0] > 0
    assert not any(isinstance(step, float) for step in said[1:])


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.2, "0 s"),
        (1.4, "1 s"),
        (12, "10 s"),
        (56, "60 s"),
        (58, "1 min"),
        (200, "3 min"),
        (7000, "2 h"),
        (4e6, "1,000 h"),
    ],
)
def test_seconds_in_words(seconds, words):
    assert duration_in_words(seconds) == words
