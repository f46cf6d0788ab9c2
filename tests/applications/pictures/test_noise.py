"""How rough pictures are."""

import numpy as np
import pytest

from bifactor.applications.pictures.patches import LEAST, MOST, USUAL, noise_level, roughness
from bifactor.errors import InputError


@pytest.mark.parametrize("noise", [0.1, 1.0, 1.5, 3.0, 10.0])
def test_noise_on_a_ramp_is_found(noise):
    rng = np.random.default_rng(0)
    ramp = 3.0 * np.arange(80) + 2.0 * np.arange(60)[:, None] + noise * rng.standard_normal((60, 80))
    known = rng.random(ramp.shape) < 0.6
    assert roughness(ramp, known) == pytest.approx(np.clip(noise / 2, LEAST, MOST), rel=0.1)
    assert roughness(ramp.T, known.T) == roughness(ramp, known)


@pytest.mark.parametrize("shape", [(1, 1), (2, 50), (1, 500), (500, 1), (10, 10)])
def test_few_neighbours_tell_nothing(shape):
    known = np.ones(shape, bool) if min(shape) > 2 else np.zeros(shape, bool)
    known[0, 0] = True
    assert roughness(np.zeros(shape), known) == USUAL


def test_a_large_picture_is_looked_at_in_strips():
    rng = np.random.default_rng(0)
    noisy = rng.standard_normal((4000, 1100))
    assert roughness(noisy, np.ones(noisy.shape, bool)) == pytest.approx(0.5, rel=0.01)
    assert noise_level(3 * noisy, np.ones(noisy.shape, bool)) == pytest.approx(3, rel=0.01)


@pytest.mark.parametrize("noise", [0.5, 5.0, 30.0])
@pytest.mark.parametrize("share", [0.4, 1.0])
def test_the_noise_of_an_edge_is_found(noise, share):
    rng = np.random.default_rng(0)
    edge = np.where(np.arange(120) < 50, 30.0, 200.0) + 1.5 * np.arange(150)[:, None]
    known = rng.random(edge.shape) < share
    assert noise_level(edge + noise * rng.standard_normal(edge.shape), known) == pytest.approx(noise, rel=0.1)


def test_noise_needs_neighbours():
    known = np.zeros((50, 50), bool)
    known[::2, ::2] = True
    with pytest.raises(InputError, match="denoise=5"):
        noise_level(np.zeros(known.shape), known)
