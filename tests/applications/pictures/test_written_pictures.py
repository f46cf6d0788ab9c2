"""Pictures written."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageCms

from bifactor.applications.pictures.files import FORMATS, format_of, losses, read_picture, require_room, write_picture
from bifactor.errors import InputError


def drawn(channels, kind, seed=0):
    high = 256 if kind == np.uint8 else 65536
    return np.random.default_rng(seed).integers(0, high, (7, 9, channels)).astype(kind)


def written(path, pixels, alpha=None, profile=None):
    with path.open("wb") as file:
        write_picture(file, format_of(path), pixels, alpha, profile)
    return read_picture(path)


@pytest.mark.parametrize("clear", [False, True])
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("kind", [np.uint8, np.uint16])
@pytest.mark.parametrize("ending", FORMATS)
def test_what_is_said_to_be_kept_comes_back_bit_for_bit(tmp_path, ending, kind, channels, clear):
    pixels, alpha = drawn(channels, kind), drawn(1, kind, 1)[:, :, 0] if clear else None
    if clear:
        alpha[:2] = 0  # of which the colours are kept, too
    told = " ".join(losses(FORMATS[ending], pixels, alpha))
    found = written(tmp_path / f"a{ending}", pixels, alpha)
    if "8 bits" in told:
        pixels = np.rint(pixels / 257).astype(np.uint8)
    if "changes pixels" not in told:
        assert found.pixels.dtype == pixels.dtype
        np.testing.assert_array_equal(found.pixels, np.broadcast_to(pixels, found.pixels.shape))
    else:
        assert not np.array_equal(found.pixels, pixels)
    if clear and "no transparency" not in told:
        alpha = np.rint(alpha / 257) if "8 bits" in told else alpha
        np.testing.assert_array_equal(found.alpha, alpha)
    else:
        assert found.alpha is None


@pytest.mark.parametrize("kind", [np.int32, np.float32])
def test_numbers_without_a_white_are_for_tiff(tmp_path, kind):
    pixels = (1000 * drawn(1, np.uint16)).astype(kind)
    np.testing.assert_array_equal(written(tmp_path / "a.tif", pixels).pixels, pixels)
    for name in ("a.png", "a.jpg", "a.webp", "a.bmp"):
        with pytest.raises(InputError, match=f"{name} cannot hold pixels of {np.dtype(kind)}"):
            require_room(Path(name), pixels.shape, pixels.dtype)


def test_what_is_opaque_loses_nothing_without_transparency():
    pixels, opaque = drawn(3, np.uint8), np.full((7, 9), 255, np.uint8)
    assert losses("BMP", pixels, opaque) == []
    opaque[0, 0] = 254
    assert "no transparency" in losses("BMP", pixels, opaque)[0]


def test_sides_too_long_for_a_format_are_refused():
    for name, most in (("a.webp", 16383), ("a.jpg", 65500)):
        require_room(Path(name), (most, 2, 3), np.uint8)
        with pytest.raises(InputError, match=f"{most + 1} pixels"):
            require_room(Path(name), (2, most + 1, 3), np.uint8)
    require_room(Path("a.png"), (1, 10**6, 3), np.uint8)
    with pytest.raises(InputError, match="extension of a picture"):
        format_of(Path("a.docx"))


def test_the_longest_sides_can_be_written(tmp_path):
    for name, most in (("a.webp", 16383), ("a.jpg", 65500)):
        assert written(tmp_path / name, np.zeros((1, most, 1), np.uint8)).pixels.shape[:2] == (1, most)


@pytest.mark.parametrize("kind", [np.uint8, np.uint16])
@pytest.mark.parametrize("name", ["a.png", "a.tif", "a.jpg", "a.webp"])
def test_what_colours_mean_is_kept(tmp_path, name, kind):
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    assert written(tmp_path / name, drawn(3, kind), profile=profile).profile == profile


def test_another_reader_agrees(tmp_path):
    """Pillow, which reads the high byte of each colour."""
    pixels, alpha = drawn(3, np.uint16), drawn(1, np.uint16, 1)[:, :, 0]
    for name in ("a.png", "a.tif"):
        written(tmp_path / name, pixels, alpha)
        with Image.open(tmp_path / name) as image:
            np.testing.assert_array_equal(np.asarray(image), np.dstack([pixels, alpha]) >> 8)
