"""Pictures with holes, as users have them."""

from pathlib import Path

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter
from sklearn.base import clone
from sklearn.datasets import load_sample_image

import bifactor as bf
from bifactor.applications.pictures.baselines import best_blur
from bifactor.errors import InputError


@pytest.fixture(scope="module")
def photograph():
    return load_sample_image("china.jpg")[60:164, 160:264]


def hidden(shape, share, seed=0):
    return np.random.default_rng(seed).random(shape[:2]) >= share


def psnr(one, other):
    return 10 * np.log10(255**2 / np.mean((one.astype(float) - other) ** 2))


@pytest.mark.parametrize(("share", "gain"), [(0.2, 2.0), (0.5, 1.5), (0.8, 0.8)])
def test_it_beats_the_best_blur(photograph, share, gain):
    known = hidden(photograph.shape, share)
    picture = np.where(known[:, :, None], photograph, 0).astype(np.uint8)
    full = bf.ImageCompletion().fit_transform(picture, known)
    blur = best_blur(picture, known, photograph)
    assert psnr(full[~known], photograph[~known]) > psnr(blur[~known], photograph[~known]) + gain
    np.testing.assert_array_equal(full[known], photograph[known])
    assert full.dtype == np.uint8


@pytest.fixture(scope="module")
def as_bytes(photograph):
    grey = photograph[:, :, 1]
    known = hidden(grey.shape, 0.4)
    return bf.ImageCompletion().fit_transform(np.where(known, grey, 0).astype(np.uint8), known)


@pytest.mark.parametrize("kind", [np.uint8, np.uint16, np.int32, np.float32, np.float64])
def test_any_kind_of_number(photograph, as_bytes, kind):
    grey = photograph[:, :, 1].astype(kind)
    if kind is np.uint16:
        grey = grey * np.uint16(257)
    known = hidden(grey.shape, 0.4)
    full = bf.ImageCompletion().fit_transform(np.where(known, grey, 0).astype(kind), known)
    assert full.dtype == kind
    np.testing.assert_array_equal(full[known], grey[known])
    unit = 257 if kind is np.uint16 else 1
    assert psnr(full[~known] / unit, grey[~known] / unit) > 19
    assert np.abs(full / unit - as_bytes)[~known].mean() < 2


def test_units_do_not_matter(photograph):
    grey = photograph[:64, :64, 1].astype(float)
    known = hidden(grey.shape, 0.5)
    one = bf.ImageCompletion().fit_transform(grey, known)
    other = bf.ImageCompletion().fit_transform(1e30 * grey - 5e31, known)
    np.testing.assert_allclose((other + 5e31) / 1e30, one, atol=1)


@pytest.mark.parametrize("channels", [2, 4, 7])
def test_any_number_of_channels(photograph, channels):
    mixed = photograph[:48, :48].astype(float) @ np.random.default_rng(0).random((3, channels))
    known = hidden(mixed.shape, 0.5)
    full = bf.ImageCompletion().fit_transform(mixed, known)
    assert full.shape == mixed.shape
    assert np.mean((full - mixed)[~known] ** 2) < 0.2 * mixed.var()


def test_nan_and_masks_are_holes(photograph):
    known = hidden(photograph.shape, 0.5)
    picture = photograph.astype(np.float32)
    told = bf.ImageCompletion().fit_transform(picture, known)
    gaps = np.where(known[:, :, None], picture, np.nan)
    np.testing.assert_array_equal(bf.ImageCompletion().fit_transform(gaps), told)
    masked = np.ma.MaskedArray(picture, np.repeat(~known[:, :, None], 3, axis=2))
    np.testing.assert_array_equal(bf.ImageCompletion().fit_transform(masked), told)
    np.testing.assert_array_equal(bf.ImageCompletion().fit_transform(picture, known.astype(int)), told)


def test_a_mask_for_each_channel(photograph):
    rng = np.random.default_rng(0)
    known = rng.random(photograph.shape) < 0.5
    model = bf.ImageCompletion()
    full = model.fit_transform(np.where(known, photograph, 0).astype(np.uint8), known)
    np.testing.assert_array_equal(full[known], photograph[known])
    assert psnr(full[~known], photograph[~known]) > 19
    assert np.all((model.uncertainty_ > 0) == ~known)


def test_channels_of_a_bayer_pattern_help_each_other(photograph):
    known = np.zeros(photograph.shape, bool)
    known[::2, ::2, 0] = known[::2, 1::2, 1] = known[1::2, ::2, 1] = known[1::2, 1::2, 2] = True
    full = bf.ImageCompletion().fit_transform(photograph, known)
    np.testing.assert_array_equal(full[known], photograph[known])
    for k in range(3):
        holes, truth = ~known[:, :, k], photograph[:, :, k]
        alone = bf.ImageCompletion().fit_transform(truth, known[:, :, k])
        assert psnr(full[holes, k], truth[holes]) > psnr(alone[holes], truth[holes]) + 1


@pytest.mark.parametrize("noise", [8.0, 20.0])
def test_noise_is_removed(photograph, noise):
    rng = np.random.default_rng(0)
    noisy = np.clip(photograph + noise * rng.standard_normal(photograph.shape), 0, 255)
    blurs = [gaussian_filter(noisy, (width, width, 0)) for width in (0.4, 0.6, 0.8, 1.0, 1.5)]
    model = bf.ImageCompletion(denoise=noise)
    cleaned = model.fit_transform(noisy)
    assert psnr(cleaned, photograph) > max(psnr(blur, photograph) for blur in blurs) + 1
    assert np.all(model.uncertainty_ > 0)
    estimated = bf.ImageCompletion(denoise=True).fit_transform(noisy)
    assert psnr(estimated, photograph) > psnr(cleaned, photograph) - 1.5
    known = hidden(photograph.shape, 0.4)
    both = bf.ImageCompletion(denoise=noise).fit_transform(noisy, known)
    kept = bf.ImageCompletion().fit_transform(noisy, known)
    assert psnr(both[known], photograph[known]) > psnr(noisy[known], photograph[known]) + 1
    assert psnr(both[~known], photograph[~known]) > psnr(kept[~known], photograph[~known]) - 0.05


def test_noise_is_in_the_units_of_the_picture(photograph):
    grey = photograph[:48, :48, 0].astype(float)
    one = bf.ImageCompletion(denoise=10.0).fit_transform(grey)
    other = bf.ImageCompletion(denoise=10.0e-6).fit_transform(1e-6 * grey)
    np.testing.assert_allclose(1e6 * other, one, atol=0.05)


@pytest.mark.parametrize("denoise", [-1, np.nan, np.inf, "much", None, [3.0]])
def test_noise_that_is_none(denoise):
    with pytest.raises(InputError, match="denoise="):
        bf.ImageCompletion(denoise=denoise).fit_transform(np.zeros((8, 8)))


def test_constants_ramps_and_single_holes():
    flat = np.full((20, 30), 77, np.uint8)
    known = hidden(flat.shape, 0.6)
    np.testing.assert_array_equal(
        bf.ImageCompletion().fit_transform(np.where(known, flat, 0).astype(np.uint8), known), flat
    )
    ramp = (2.0 * np.arange(60) + 1.5 * np.arange(50)[:, None]).astype(np.float32)
    known = hidden(ramp.shape, 0.5)
    full = bf.ImageCompletion().fit_transform(np.where(known, ramp, 0), known)
    assert np.abs(full - ramp)[8:-8, 8:-8].max() < 1
    known = np.ones(ramp.shape, bool)
    known[20, 30] = False
    assert abs(bf.ImageCompletion().fit_transform(ramp, known)[20, 30] - ramp[20, 30]) < 1


def test_nothing_hidden(photograph):
    model = bf.ImageCompletion()
    np.testing.assert_array_equal(model.fit_transform(photograph), photograph)
    assert not model.uncertainty_.any()


@pytest.mark.parametrize("shape", [(1, 1), (1, 9), (9, 1), (2, 2), (3, 40), (7, 7), (8, 8), (1, 1, 3)])
def test_small_pictures(shape):
    rng = np.random.default_rng(0)
    picture = rng.integers(0, 255, shape).astype(np.uint8)
    known = rng.random(shape[:2]) < 0.5
    known[0, 0] = True
    full = bf.ImageCompletion().fit_transform(picture, known)
    assert full.shape == picture.shape
    np.testing.assert_array_equal(full[known], picture[known])


def test_doubt_is_where_errors_are(photograph):
    known = hidden(photograph.shape, 0.6)
    model = bf.ImageCompletion()
    full = model.fit_transform(photograph, known)
    errors = np.abs(full.astype(float) - photograph)[~known].mean(axis=1)
    doubt = model.uncertainty_[~known][:, 0]
    assert model.uncertainty_.shape == photograph.shape
    assert np.corrcoef(np.argsort(np.argsort(errors)), np.argsort(np.argsort(doubt)))[0, 1] > 0.4
    rough = doubt > np.quantile(doubt, 0.8)
    assert errors[rough].mean() > 1.8 * errors[~rough].mean()


def test_threads_orders_and_copies_change_nothing(photograph):
    known = hidden(photograph.shape, 0.5)
    told = bf.ImageCompletion(n_jobs=1).fit_transform(photograph, known)
    np.testing.assert_array_equal(bf.ImageCompletion(n_jobs=2).fit_transform(photograph, known), told)
    fixed = np.asfortranarray(photograph)
    fixed.setflags(write=False)
    np.testing.assert_array_equal(bf.ImageCompletion().fit_transform(fixed, known), told)
    turned = bf.ImageCompletion().fit_transform(photograph.transpose(1, 0, 2), known.T).transpose(1, 0, 2)
    assert np.abs(turned.astype(int) - told).mean() < 1  # ties between patches may be broken in another order


def test_it_has_the_manners_of_scikit_learn(photograph, capsys):
    model = clone(bf.ImageCompletion(verbose=1))
    assert model.get_params() == {"denoise": False, "n_jobs": None, "verbose": 1}
    assert model.fit(photograph[:16, :16], hidden((16, 16), 0.3)) is model
    assert "ImageCompletion" in repr(model)


@pytest.mark.parametrize(
    ("picture", "known", "message"),
    [
        (np.zeros((4, 4), complex), None, "has dtype complex128"),
        (np.array([["a"]]), None, "Pass integers or floating"),
        (np.zeros(4), None, "height × width"),
        (np.zeros((0, 4)), None, "height × width"),
        (np.zeros((2, 2, 2, 2)), None, "height × width"),
        (np.full((4, 4), np.nan), None, "No pixel is known"),
        (np.zeros((4, 4)), np.zeros((4, 4), bool), "No pixel is known"),
        (np.zeros((4, 4)), np.ones((4, 5), bool), r"known has shape \(4, 5\)"),
        (np.zeros((4, 4)), np.full((4, 4), 0.5), "Pass booleans"),
        (np.zeros((4, 4)), np.full((4, 4), 255), "Pass booleans"),
        (np.full((4, 4), np.inf), np.eye(4, dtype=bool), "infinite"),
        (np.full((4, 4), np.inf, np.float32), None, "infinite"),
        (np.dstack([np.zeros((3, 3)), np.full((3, 3), np.nan)]), None, "No pixel of channel 1"),
        (np.zeros((3, 8, 9)), np.ones((8, 9), bool), r"Pass np.moveaxis\(X, 0, -1\)"),
        ("photo.png", None, "The picture is a file name, 'photo.png'"),
        (Path("photo.png"), None, "The picture is a file name, 'photo.png'"),
        (np.array([[1.7e308, -1.7e308], [0.0, np.nan]]), None, r"reach 1.7e\+308, more than 1e\+305"),
        (np.array([[5e-324, 0.0], [0.0, np.nan]]), None, r"4.94e-324, less than 1e-305"),
        (np.array([[-(2**63), 0]]), np.array([[True, False]]), r"reach 9.22e\+18, more than 4.61e\+18"),
        (np.array([[2**64 - 1, 0]], np.uint64), np.array([[True, False]]), r"reach 1.84e\+19"),
    ],
)
def test_mistakes(picture, known, message):
    with pytest.raises(InputError, match=message):
        bf.ImageCompletion().fit_transform(picture, known)


@pytest.mark.parametrize("unit", [1e-300, 1e-100, 1e100, 1e300])
def test_tiny_and_huge_numbers(photograph, unit):
    grey, known = photograph[:40, :40, 1].astype(float), hidden((40, 40), 0.5)
    one, other = bf.ImageCompletion(), bf.ImageCompletion()
    full = other.fit_transform(unit * grey, known)
    np.testing.assert_allclose(full / unit, one.fit_transform(grey, known), rtol=1e-3)
    np.testing.assert_allclose(other.uncertainty_ / unit, one.uncertainty_, rtol=1e-2)


@pytest.mark.parametrize("kind", [np.int64, np.uint64])
def test_large_integers(photograph, kind):
    grey, known = photograph[:40, :40, 1].astype(kind), hidden((40, 40), 0.5)
    unit = kind(2**54 + 1)
    full = bf.ImageCompletion().fit_transform(unit * grey, known)
    np.testing.assert_array_equal(full[known], unit * grey[known])
    assert np.abs(full / float(unit) - bf.ImageCompletion().fit_transform(grey, known)).max() <= 1


@pytest.mark.parametrize("kind", [np.bool_, np.int8, np.float16, np.longdouble, ">u2", ">f4"])
def test_rarer_kinds_of_number(kind):
    picture = (np.add.outer(np.arange(20), np.arange(24)) > 20).astype(kind)
    known = hidden(picture.shape, 0.2)
    full = bf.ImageCompletion().fit_transform(np.where(known, picture, 0).astype(kind), known)
    assert full.dtype == kind
    np.testing.assert_array_equal(full[known], picture[known])
    assert np.mean(np.abs(full.astype(float) - picture.astype(float))) < 0.1


def test_bytes_are_completed_as_the_same_numbers_of_other_kinds():
    """Also if they use a small part of the range: 0 to 1, 16 bits, bytes, and bytes with another zero."""
    x, y = np.linspace(0, 1, 60), np.linspace(0, 1, 50)[:, None]
    picture = np.rint(100 + 15 * np.sin(7 * x) * np.cos(5 * y) + 10 * (x > y)).astype(np.uint8)
    known = np.random.default_rng(0).random(picture.shape) < 0.4
    one = bf.ImageCompletion()
    expected = one.fit_transform(picture, known).astype(float)
    for unit, zero, dtype in ((1 / 255, 0, float), (257, 0, np.uint16), (1, -70, np.uint8), (1e6, 3, np.float32)):
        other = bf.ImageCompletion()
        full = other.fit_transform((picture.astype(float) * unit + zero).astype(dtype), known)
        np.testing.assert_allclose((full - float(zero)) / unit, expected, atol=0.52)  # bytes are rounded
        np.testing.assert_allclose(other.uncertainty_ / unit, one.uncertainty_, rtol=2e-3)


def test_uncertainty_is_as_large_as_the_errors(photograph):
    """From one known pixel to one half: root mean squares of both, over all holes."""
    grey = photograph[:96, :96, 0] if photograph.ndim == 3 else photograph[:96, :96]
    order = np.random.default_rng(0).permutation(grey.size).reshape(grey.shape)
    for count in (1, 30, 300, 1500, 4500):
        known = order < count
        model = bf.ImageCompletion()
        errors = (model.fit_transform(grey, known).astype(float) - grey)[~known]
        ratio = np.sqrt(np.mean(model.uncertainty_[~known] ** 2) / np.mean(errors**2))
        assert 0.5 < ratio < (3 if count == 1 else 2), count
    one = bf.ImageCompletion().fit(np.where(order == 0, 0.3, np.nan))
    assert np.all(np.isinf(one.uncertainty_[order > 0]))
