"""Simpler guesses, mixed in where they come nearer."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import nnls

from bifactor.applications.pictures import completion
from bifactor.applications.pictures.baselines import blurred, smooth
from bifactor.applications.pictures.completion import Blend, best_blend


def parabola(shape=(150, 140)):
    rows, cols = np.indices(shape, np.float32)
    return (0.01 * (rows - 60) ** 2 + 0.005 * (cols - 80) ** 2)[None]


def right(planes, known):
    planes[:] = parabola(planes.shape[1:])
    return np.zeros(known.shape, np.float32)


def half(shape, seed=0):
    return np.random.default_rng(seed).random(shape) < 0.5


def rough(planes, known):
    """A completion that knows the parabola, up to noise of 5 shades."""
    noise = 5 * np.random.default_rng(3).standard_normal(planes.shape).astype(np.float32)
    if planes.shape[1:] == (150, 140):
        planes[:] = np.where(known, planes, parabola() + noise)
    else:
        planes[:] = np.where(known, planes, smooth(planes, known) + noise)
    return np.full(known.shape, 25, np.float32)


@pytest.mark.parametrize("shape", [(150, 140), (400, 300)], ids=["small", "large"])
def test_a_plate_replaces_what_is_rougher(shape):
    planes, known = parabola(shape), half(shape)
    found = best_blend(planes, known, rough)
    assert found.plate > 0.9
    assert found.blur < 0.1


def test_nothing_is_mixed_into_what_is_right():
    planes, known = parabola(), half((150, 140))
    found = best_blend(planes, known, right)
    assert (found.plate, found.blur) == (0, 0)


def test_pixels_are_held_back_in_the_shape_of_the_holes():
    planes = parabola()
    known = np.ones((150, 140), bool)
    known[::16] = False
    seen = []
    best_blend(planes, known, lambda part, told: seen.append(told) or right(part, told))
    for told in seen:
        held = known & ~told
        assert held.sum() <= completion.HELD * known.sum() + 1
        assert held.any(axis=1).sum() <= 11  # whole rows, as those that are missing
        assert not (held & ~known).any()


@pytest.mark.parametrize("known", [np.ones((40, 40), bool), np.eye(3, dtype=bool), np.ones((1, 1), bool)])
def test_too_little_to_tell(known):
    planes = np.zeros((1, *known.shape), np.float32)
    found = best_blend(planes, known, rough)
    assert (found.plate, found.blur) == (0, 0)


def test_what_is_mixed():
    planes, known = 100 + 10 * np.random.default_rng(0).standard_normal((2, 30, 20)).astype(np.float32), half((30, 20))
    mixed = planes.copy()
    Blend(0.25, 0.5, 1.4).apply(mixed, known)
    np.testing.assert_array_equal(mixed[:, known], planes[:, known])
    expected = 0.25 * planes + 0.25 * smooth(planes, known) + 0.5 * np.stack([blurred(p, known, 1.4) for p in planes])
    np.testing.assert_allclose(mixed[:, ~known], expected[:, ~known], rtol=1e-5)
    same = planes.copy()
    Blend().apply(same, known)
    np.testing.assert_array_equal(same, planes)


def test_weights_are_those_of_least_squares():
    rng = np.random.default_rng(0)
    for _ in range(200):
        A, b = rng.standard_normal((5, 2)), rng.standard_normal(5)
        expected, _ = nnls(A, b)
        found = completion._weights(A.T @ A, A.T @ b)
        np.testing.assert_allclose(found, expected / max(1, expected.sum()), atol=1e-9)
    one = rng.standard_normal(5)
    np.testing.assert_allclose(
        completion._weights(np.full((2, 2), one @ one), np.full(2, one @ (0.7 * one))).sum(), 0.7
    )
    assert not completion._weights(np.zeros((2, 2)), np.zeros(2)).any()


@pytest.mark.parametrize("shape", [(40, 50), (150, 140), (230, 240)])
def test_the_smaller_a_picture_is_the_more_often_it_is_tried(shape):
    """A few scratches say little at one place; trials of small pictures are quick."""
    seen = []
    best_blend(parabola(shape), half(shape), lambda part, told: seen.append(told) or right(part, told))
    assert len(seen) == min(4, completion.CROPS * completion.SIDE**2 // (shape[0] * shape[1]))


@pytest.mark.parametrize("factor", [0.1, 1.0, 10.0])
def test_variances_become_those_of_the_errors_at_held_out_pixels(factor):
    planes, known = parabola((100, 90)), half((100, 90))

    def noisy(part, told):
        spread = np.linspace(1, 4, told.size).reshape(told.shape).astype(np.float32)
        noise = spread * np.random.default_rng(int(told.sum())).standard_normal(told.shape).astype(np.float32)
        part[:] = np.where(told, part, planes + noise)
        return factor * spread**2

    found = replace(best_blend(planes, known, noisy), plate=0.0, blur=0.0)
    truth = np.linspace(1, 4, known.size).reshape(known.shape) ** 2
    ratio = found.widened(factor * truth, planes, known, 0.0)[~known] / truth[~known]
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-5)
    assert ratio[0] <= 1.1  # the mixture is better than the noise


@pytest.mark.parametrize("count", [1, 2, 5, 50])
def test_with_few_known_pixels_a_guess_is_as_uncertain_as_without_a_model(count):
    planes = np.random.default_rng(0).uniform(0, 255, (1, 30, 30)).astype(np.float32)
    known = np.random.default_rng(1).permutation(900).reshape(30, 30) < count
    found = Blend().widened(np.full((30, 30), 0.1, np.float32), planes, known, 255.0)[~known]
    assert 0.3 < np.sqrt(found.mean()) / (255 / 12**0.5) < 2.5  # two pixels may be far apart
    if count == 1:
        assert np.sqrt(found.mean()) == pytest.approx(255 / 12**0.5)
        assert np.all(np.isinf(Blend().widened(planes[0], planes, known, np.inf)))
