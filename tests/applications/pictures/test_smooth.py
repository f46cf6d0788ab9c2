"""The smooth first guess: what it reproduces, what it leaves alone, and how good it is on a photograph."""

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter
from sklearn.datasets import load_sample_image

from bifactor import kernels
from bifactor.applications.pictures.baselines import smooth
from bifactor.errors import InputError

SIZES = [(60, 50), (200, 150)]  # for the NumPy reference, and for the compiled kernels


def some(shape, share, seed=0):
    """A mask with this share of known pixels, and at least one."""
    known = np.random.default_rng(seed).random(shape) < share
    known[shape[0] // 2, shape[1] // 2] = True
    return known


def photograph():
    return np.ascontiguousarray(np.moveaxis(load_sample_image("flower.jpg"), 2, 0), dtype=np.float32)


def scratched(shape):
    known = np.ones(shape, dtype=bool)
    rows = np.arange(shape[0])
    for start, slope in ((10, 0.5), (shape[1] - 20, -0.7)):
        for width in range(3):
            known[rows, (start + slope * rows).astype(int) % shape[1] - width] = False
    return known


@pytest.mark.parametrize("shape", SIZES, ids=str)
@pytest.mark.parametrize("share", [0, 0.02, 0.5, 0.99])
def test_constants_are_reproduced(shape, share):
    planes = np.full((3, *shape), [[[0.1]], [[200.0]], [[-7e20]]], dtype=np.float32)
    np.testing.assert_array_equal(smooth(planes, some(shape, share)), planes)


@pytest.mark.parametrize("shape", SIZES, ids=str)
@pytest.mark.parametrize("share", [0.2, 0.5, 0.9])
def test_ramps_are_reproduced_away_from_the_border(shape, share):
    rows, columns = np.mgrid[: shape[0], : shape[1]]
    planes = np.stack([rows, columns, 2 * rows - columns]).astype(np.float32)
    got = smooth(planes, some(shape, share))
    for wanted, plane in zip(planes, got, strict=True):
        assert np.abs(plane - wanted)[16:-16, 16:-16].max() < 1e-3 * np.ptp(wanted)


@pytest.mark.parametrize("shape", SIZES, ids=str)
@pytest.mark.parametrize("share", [0.02, 0.5, 0.99])
def test_known_pixels_keep_their_bits_and_others_do_not_matter(shape, share):
    planes = np.random.default_rng(1).standard_normal((3, *shape)).astype(np.float32)
    planes[:, 5, :9] = -0.0
    known = some(shape, share)
    got = smooth(np.where(known, planes, np.float32(np.nan)), known)
    assert got.dtype == np.float32
    assert np.isfinite(got).all()
    np.testing.assert_array_equal(got[:, known].view(np.int32), planes[:, known].view(np.int32))
    np.testing.assert_array_equal(got, smooth(np.where(known, planes, np.float32(np.inf)), known))


@pytest.mark.parametrize(
    "shape", [(1, 1), (1, 40), (40, 1), (2, 2), (2, 31), (3, 3), (31, 3), (1, 40_000), (40_000, 2)]
)
def test_narrow_pictures(shape):
    planes = np.random.default_rng(2).uniform(0, 255, (2, *shape)).astype(np.float32)
    known = some(shape, 0.4)
    got = smooth(planes, known)
    np.testing.assert_array_equal(got[:, known], planes[:, known])
    # A plate swings over where noise is steep at both ends of a gap, by two ranges here and not by more.
    assert np.abs(got - 128).max() < 5 * 128


@pytest.mark.parametrize("shape", SIZES, ids=str)
def test_one_row_or_one_column_is_known(shape):
    values = np.random.default_rng(3).uniform(0, 1, shape[1]).astype(np.float32)
    known = np.zeros(shape, dtype=bool)
    known[shape[0] // 3] = True
    got = smooth(np.broadcast_to(values, (1, *shape)), known)
    assert np.isfinite(got).all()
    np.testing.assert_array_equal(got[0, shape[0] // 3], values)
    assert np.abs(got[0, 0] - values.mean()).max() < 0.5
    turned = smooth(np.broadcast_to(values, (1, *shape)).swapaxes(1, 2), known.T)
    np.testing.assert_allclose(turned.swapaxes(1, 2), got, atol=0.02)


def test_nothing_to_do():
    planes = np.random.default_rng(4).standard_normal((3, 20, 30)).astype(np.float32)
    got = smooth(planes, np.ones((20, 30), dtype=bool))
    assert got is not planes
    assert not np.shares_memory(got, planes)
    np.testing.assert_array_equal(got, planes)


@pytest.mark.parametrize("mask", [some((213, 320), 0.5), some((213, 320), 0.05), scratched((213, 320))])
def test_compiled_and_reference_agree(mask, monkeypatch):
    planes = photograph()[:, ::2, ::2][:, :213]
    got = smooth(planes, mask)
    monkeypatch.setattr(kernels, "SMALL", np.inf)
    # Sums in another order may stop a tile a step earlier.
    np.testing.assert_allclose(got, smooth(planes, mask), atol=255 * 5e-3)


def test_transposed_pictures():
    planes, known = photograph()[:, :200, :150], some((200, 150), 0.5)
    got, turned = smooth(planes, known), smooth(planes.swapaxes(1, 2), known.T).swapaxes(1, 2)
    assert np.sqrt(np.mean((got - turned) ** 2)) < 255 * 1e-4
    np.testing.assert_allclose(got, turned, atol=255 * 1e-2)


def test_any_layout_is_taken_and_nothing_is_written_to():
    planes, known = photograph()[:, :200, :150].copy(), some((200, 150), 0.5)
    wanted = smooth(planes, known)
    frozen, mask = planes.copy(), known.copy()
    frozen.flags.writeable = mask.flags.writeable = False
    np.testing.assert_array_equal(smooth(frozen, mask), wanted)
    spread = np.repeat(np.repeat(planes, 2, 1), 2, 2)[:, ::2, ::2]
    np.testing.assert_array_equal(smooth(spread, np.asfortranarray(known)), wanted)
    last = np.moveaxis(np.ascontiguousarray(np.moveaxis(planes, 0, 2)), 2, 0)
    np.testing.assert_array_equal(smooth(last, known), wanted)
    np.testing.assert_array_equal(smooth(planes.astype(np.float64), known), wanted)
    np.testing.assert_array_equal(smooth(planes.astype(np.uint8), known), wanted)
    np.testing.assert_array_equal(frozen, planes)


@pytest.mark.parametrize("mask", ["half", "fifth", "scratches"])
def test_better_than_an_average_of_neighbours(mask):
    planes = photograph()
    shape = planes.shape[1:]
    known = scratched(shape) if mask == "scratches" else some(shape, 0.5 if mask == "half" else 0.2)

    def decibels(guess):
        return -10 * np.log10(np.mean((guess - planes)[:, ~known] ** 2))

    def average(width):
        blurred = [gaussian_filter(np.where(known, plane, 0), width) for plane in planes]
        return np.stack(blurred) / np.maximum(gaussian_filter(known.astype(np.float32), width), 1e-9)

    best = max(decibels(average(width)) for width in (0.6, 0.7, 0.85, 1.0, 1.2, 1.5, 2.0))
    assert decibels(smooth(planes, known)) > best + 0.5


@pytest.mark.parametrize(
    ("planes", "known", "message"),
    [
        (np.zeros((3, 4)), np.ones((3, 4), bool), "rows×columns"),
        (np.zeros((1, 3, 4)), np.ones((4, 3), bool), "rows×columns"),
        (np.zeros((1, 3, 4)), np.ones((3, 4)), "dtype float64"),
        (np.zeros((1, 3, 4)), np.zeros((3, 4), bool), "None of the 12 pixels"),
        (np.zeros((1, 0, 4)), np.zeros((0, 4), bool), "None of the 0 pixels"),
    ],
)
def test_mistakes(planes, known, message):
    with pytest.raises(InputError, match=message):
        smooth(planes, known)


def test_a_large_hole_is_spanned_without_seams():
    """x² − y² has no bends and no tension to give way to, so it is the best plate; 25 tiles meet in the hole."""
    rows, columns = np.indices((400, 400)) / 200 - 1
    wanted = (rows**2 - columns**2).astype(np.float32)
    known = np.ones(wanted.shape, dtype=bool)
    known[50:350, 50:350] = False
    (got,) = smooth(wanted[None], known)
    assert np.abs(got - wanted).max() < 0.02 * np.ptp(wanted)
    slopes = np.abs(np.diff(got - wanted, axis=0)).max(), np.abs(np.diff(got - wanted, axis=1)).max()
    assert max(slopes) < 0.0015 * np.ptp(wanted)
