"""Pixels by their neighbours."""

import numpy as np

from bifactor.applications.pictures.baselines import nearest


def test_each_pixel_is_a_known_one_and_none_is_nearer():
    rng = np.random.default_rng(0)
    picture = rng.permutation(12 * 15 * 2).reshape(12, 15, 2)
    known = rng.random((12, 15)) < 0.1
    found = nearest(picture, known)
    np.testing.assert_array_equal(found[known], picture[known])
    places = np.argwhere(known)
    for i, j in np.argwhere(~known):
        far = np.sum((places - (i, j)) ** 2, axis=1)
        near = picture[tuple(places[far == far.min()].T)]
        assert np.any(np.all(near == found[i, j], axis=1))
