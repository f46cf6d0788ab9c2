"""Halves, doubles, and how many levels a mask calls for."""

import numpy as np
import pytest
from scipy.ndimage import distance_transform_edt

from bifactor.applications.pictures import patches
from bifactor.applications.pictures.patches import enlarged, halved, level_count, missing_share
from bifactor.errors import InputError


def random_mask(shape, share):
    return np.random.default_rng(0).random(shape) < share


def blocks(shape, side, count):
    """Squares at random places, which may overlap."""
    known = np.ones(shape, dtype=bool)
    for i, j in np.random.default_rng(1).integers(0, np.subtract(shape, side), (count, 2)):
        known[i : i + side, j : j + side] = False
    return known


def test_halved_by_hand():
    planes = np.array([[[1, 2, 3], [5, np.nan, np.nan], [np.nan, 7, 9]]])
    known = np.array([[True, True, True], [True, False, False], [False, True, True]])
    means, some = halved(planes, known)
    np.testing.assert_array_equal(some, [[True, True], [True, True]])
    np.testing.assert_allclose(means, [[[8 / 3, 3], [7, 9]]], rtol=1e-6)
    means, some = halved(planes, np.array([[False, False, True], [False] * 3, [False] * 3]))
    np.testing.assert_array_equal(some, [[False, True], [False, False]])
    np.testing.assert_array_equal(means, [[[0, 3], [0, 0]]])


@pytest.mark.parametrize("shape", [(1, 1), (1, 2), (5, 6), (301, 200)], ids=str)
def test_halved_has_the_mean_of_what_is_known(shape):
    planes = np.random.default_rng(1).standard_normal((3, *shape)).astype(np.float32)
    known = random_mask(shape, 0.5)
    known[0, 0] = True
    means, some = halved(planes, known)
    assert means.shape == (3, *((side + 1) // 2 for side in shape))
    counts = np.add.reduceat(np.add.reduceat(known, range(0, shape[0], 2), 0, int), range(0, shape[1], 2), 1)
    np.testing.assert_array_equal(some, counts > 0)
    np.testing.assert_allclose(
        np.sum(means * counts, (1, 2)), planes[:, known].sum(1, dtype=float), rtol=1e-4, atol=1e-4
    )


@pytest.mark.parametrize("shape", [(1, 1), (2, 1), (3, 8), (40, 31), (301, 200)], ids=str)
def test_enlarged(shape):
    half = tuple((side + 1) // 2 for side in shape)
    constants = np.full((2, *half), [[[0.1]], [[-3e20]]], dtype=np.float32)
    np.testing.assert_array_equal(enlarged(constants, shape), np.broadcast_to(constants[:, :1, :1], (2, *shape)))
    # Cell k has its centre between pixels 2k and 2k + 1. Slopes of a cubic are exact for parabolas.
    rows, columns = np.indices(half, dtype=np.float32)
    i, j = (np.indices(shape) - 0.5) / 2
    got = enlarged((rows**2 - columns * rows)[None], shape)[0]
    np.testing.assert_allclose(got[4:-4, 4:-4], (i**2 - i * j)[4:-4, 4:-4], atol=1e-5 * max(shape) ** 2)


def test_enlarged_and_halved_again_is_nearly_the_same():
    rows, columns = np.indices((60, 70))
    planes = np.sin(rows / 5 + columns / 7)[None].astype(np.float32)
    again, _ = halved(enlarged(planes, (120, 139)), np.ones((120, 139), dtype=bool))
    np.testing.assert_allclose(again[:, 1:-1, 1:-1], planes[:, 1:-1, 1:-1], atol=0.01)


def test_enlarged_refuses_other_shapes():
    for shape in ((4, 5), (7, 6), (6, 9)):
        with pytest.raises(InputError, match="rounded up"):
            enlarged(np.zeros((1, 3, 4)), shape)
    with pytest.raises(InputError, match="rounded up"):
        enlarged(np.zeros((3, 4)), (6, 8))


@pytest.mark.parametrize(
    ("known", "levels"),
    [
        (np.ones((50, 60), dtype=bool), 0),
        (random_mask((256, 256), 0.8), 0),
        (random_mask((256, 256), 0.5), 0),
        (random_mask((256, 256), 0.2), 1),
        (random_mask((256, 256), 0.05), 1),
        (blocks((256, 256), 16, 26), 2),
        (blocks((256, 256), 2, 200), 0),
        (np.ones((1, 1), dtype=bool), 0),
    ],
    ids=["all", "80 %", "50 %", "20 %", "5 %", "blocks", "dots", "one pixel"],
)
def test_level_count(known, levels):
    assert level_count(known) == level_count(known.T) == levels


def test_levels_bring_unknown_pixels_near():
    known = np.zeros((200, 300), dtype=bool)
    known[0, 0] = True
    planes, levels = np.zeros((1, 200, 300), np.float32), level_count(known)
    assert levels == 7  # the mean distance is 188 pixels
    for _ in range(levels):
        planes, known = halved(planes, known)
    assert known.shape == (2, 3)


def test_level_count_needs_a_known_pixel():
    with pytest.raises(InputError, match="None of the 6 pixels"):
        level_count(np.zeros((2, 3), dtype=bool))


def test_missing_share():
    assert missing_share(np.ones((5, 5), dtype=bool)) == 0
    assert missing_share(np.zeros((5, 5), dtype=bool)) == 1
    one = np.ones((30, 30), dtype=bool)
    one[15, 15] = False
    assert missing_share(one) == pytest.approx(1 / 81, rel=1e-5)
    for share in (0.2, 0.5, 0.9):
        # The pixel itself is one of the 81.
        wanted = share + (1 - share) / 81
        assert missing_share(random_mask((300, 300), 1 - share)) == pytest.approx(wanted, abs=0.01)


@pytest.mark.parametrize("shape", [(300, 20), (129, 7), (40, 40)])
@pytest.mark.parametrize("kind", ["random", "one", "corner"])
def test_distances_are_found_in_parts(shape, kind):
    known = random_mask(shape, 0.1) if kind == "random" else np.zeros(shape, bool)
    if kind != "random":
        known[(0, 0) if kind == "corner" else (shape[0] // 2, 3)] = True
    expected = np.mean(distance_transform_edt(~known)[~known])
    assert patches._mean_distance(~known) == pytest.approx(expected)
