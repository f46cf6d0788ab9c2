"""Laws of every noise model of a posterior."""

from typing import get_args

import numpy as np
import pytest
from scipy import integrate

from bifactor.errors import InputError
from bifactor.solvers.variational.noise import NOISES, NUMBERS, NoiseName, noise_named, unpack_noise

EVERY = pytest.mark.parametrize("noise", [one.with_strengths(3.5, 7.0, 5.25) for one in NOISES.values()], ids=NOISES)


def test_names_are_those_of_the_type():
    assert tuple(NOISES) == get_args(NoiseName)
    with pytest.raises(InputError, match="is not a noise model"):
        noise_named(["both"])


@EVERY
def test_a_file_gives_back_what_was_fitted(noise):
    assert unpack_noise(noise.pack()) == noise
    assert set(noise.pack()) <= set(NUMBERS)


def test_numbers_of_no_model_are_refused():
    with pytest.raises(ValueError, match="no noise model has"):
        unpack_noise({"degrees": 5.0, "row_strength": 3.0})


@EVERY
def test_quantiles_variance_and_draws_are_of_one_distribution(noise):
    scale = np.full(200_000, 2.25)
    drawn = noise.sample(scale, np.random.default_rng(0))
    for p in (0.05, 0.5, 0.9):
        share = np.mean(drawn <= 1.5 * noise.quantile(p))
        assert share == pytest.approx(p, abs=4 * (p * (1 - p) / drawn.size) ** 0.5)
    second = integrate.quad(lambda p: noise.quantile(p) ** 2, 0, 1, epsabs=1e-6)[0]
    assert noise.variance(scale)[0] == pytest.approx(2.25 * second, rel=1e-3)
