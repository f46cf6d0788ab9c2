"""How rough pictures are."""

import numpy as np
import pytest

from bifactor.pictures.noise import LEAST, MOST, USUAL, noise_level


@pytest.mark.parametrize("noise", [0.1, 1.0, 1.5, 3.0, 10.0])
def test_noise_on_a_ramp_is_found(noise):
    rng = np.random.default_rng(0)
    ramp = 3.0 * np.arange(80) + 2.0 * np.arange(60)[:, None] + noise * rng.standard_normal((60, 80))
    known = rng.random(ramp.shape) < 0.6
    assert noise_level(ramp, known) == pytest.approx(np.clip(noise / 2, LEAST, MOST), rel=0.1)
    assert noise_level(ramp.T, known.T) == noise_level(ramp, known)


@pytest.mark.parametrize("shape", [(1, 1), (2, 50), (1, 500), (500, 1), (10, 10)])
def test_few_neighbours_tell_nothing(shape):
    known = np.ones(shape, bool) if min(shape) > 2 else np.zeros(shape, bool)
    known[0, 0] = True
    assert noise_level(np.zeros(shape), known) == USUAL
