"""Channels with holes of their own."""

import numpy as np
import pytest
from sklearn.datasets import load_sample_image

from bifactor.applications.pictures.completion import Layer, complete, complete_layers


@pytest.fixture(scope="module")
def grey():
    return load_sample_image("china.jpg")[60:156, 160:256, 1].astype(np.float32)


def layer(plane, known):
    return Layer(np.where(known, plane, np.float32(0))[None].copy(), known)


def error(found, plane, known):
    return float(np.sqrt(np.mean((found - plane)[~known] ** 2)))


def test_a_known_channel_tells_of_another(grey):
    known = np.random.default_rng(0).random(grey.shape) < 0.3
    other = 200 - 0.7 * grey
    alone = np.where(known, other, np.float32(0))[None].copy()
    complete(alone, known)
    holes = layer(other, known)
    complete_layers([layer(grey, np.ones_like(known)), holes])
    assert error(holes.planes[0], other, known) < 0.5 < error(alone[0], other, known)
    np.testing.assert_allclose(holes.planes[0][known], other[known], atol=1e-3)


def test_channels_tell_of_each_other_whatever_their_units(grey):
    rng = np.random.default_rng(1)
    masks = [rng.random(grey.shape) < 0.5 for _ in range(3)]
    planes = [grey, 2 * grey - 30, 255 - grey]
    layers = [layer(plane, known) for plane, known in zip(planes, masks, strict=True)]
    complete_layers(layers)
    for one, plane, known in zip(layers, planes, masks, strict=True):
        alone = np.where(known, plane, np.float32(0))[None].copy()
        complete(alone, known)
        assert error(one.planes[0], plane, known) < 0.6 * error(alone[0], plane, known)


def test_channels_that_have_nothing_in_common_are_as_alone(grey):
    rng = np.random.default_rng(2)
    known = [rng.random(grey.shape) < 0.6 for _ in range(2)]
    noise = 100 + 20 * rng.standard_normal(grey.shape).astype(np.float32)
    layers = [layer(grey, known[0]), layer(noise, known[1])]
    complete_layers(layers)
    alone = np.where(known[0], grey, np.float32(0))[None].copy()
    complete(alone, known[0])
    assert error(layers[0].planes[0], grey, known[0]) < 1.02 * error(alone[0], grey, known[0])


def test_progress_and_nothing_to_do(grey):
    rng, told = np.random.default_rng(3), []
    layers = [layer(grey[:40, :40], rng.random((40, 40)) < 0.5) for _ in range(2)]
    complete_layers(layers, told.append)
    assert told == sorted(told)
    assert told[-1] == pytest.approx(1)
    whole = layer(grey, np.ones(grey.shape, bool))
    complete_layers([whole])
    np.testing.assert_array_equal(whole.planes[0], grey)
