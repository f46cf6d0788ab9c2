"""Pictures as numbers."""

import sys

import numpy as np
import pytest
from PIL import Image

from bifactor.errors import BifactorError, FileError, InputError
from bifactor.tables.pictures import (
    LUMA,
    kept,
    opened,
    pictures_in,
    psnr,
    read_grey,
    read_pixels,
    require_picture,
    shrunk,
)


@pytest.fixture
def colour(tmp_path):
    values = np.random.default_rng(0).integers(0, 256, (6, 8, 3), dtype=np.uint8)
    Image.fromarray(values).save(tmp_path / "colour.png")
    return values


def test_colours_and_greys_come_back(tmp_path, colour):
    Image.fromarray(colour[:, :, 0]).save(tmp_path / "grey.png")
    pixels, notes = read_pixels(tmp_path / "colour.png")
    np.testing.assert_array_equal(pixels, colour)
    assert notes == []
    np.testing.assert_array_equal(read_pixels(tmp_path / "grey.png")[0], colour[:, :, :1])
    np.testing.assert_allclose(read_grey(tmp_path / "colour.png"), colour @ LUMA / 255)
    np.testing.assert_allclose(read_grey(tmp_path / "grey.png"), colour[:, :, 0] / 255)
    assert LUMA.sum() == pytest.approx(1)


def test_transparency_is_told(tmp_path, colour):
    Image.fromarray(colour).convert("RGBA").save(tmp_path / "clear.png")
    pixels, notes = read_pixels(tmp_path / "clear.png")
    assert pixels.shape == (6, 8, 3)
    assert notes == ["Transparency is not kept."]


def test_a_camera_s_orientation_is_followed(tmp_path, colour):
    exif = Image.Exif()
    exif[0x0112] = 6  # turn right to see it upright
    Image.fromarray(colour).save(tmp_path / "turned.png", exif=exif)
    with opened(tmp_path / "turned.png") as image:
        assert image.size == (6, 8)
    np.testing.assert_array_equal(read_pixels(tmp_path / "turned.png")[0], np.rot90(colour, -1))


def test_what_is_no_picture_is_refused_in_one_sentence(tmp_path, colour):
    whole = (tmp_path / "colour.png").read_bytes()
    (tmp_path / "cut.png").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "words.jpg").write_text("no picture")
    (tmp_path / "empty.png").touch()
    for read in (require_picture, read_pixels, read_grey):
        for name, message in (
            ("words.jpg", "is no picture"),
            ("empty.png", "is empty"),
            ("absent.png", "There is no file"),
            ("", "is a folder"),
        ):
            with pytest.raises(FileError, match=message):
                read(tmp_path / name)
    require_picture(tmp_path / "cut.png")  # its beginning is that of a picture
    with pytest.raises(FileError, match="cut short"):
        read_grey(tmp_path / "cut.png")
    Image.fromarray(np.zeros((4, 4), np.float32)).save(tmp_path / "floats.tif")
    with pytest.raises(InputError, match="8 bits"):
        read_grey(tmp_path / "floats.tif")


def test_without_pillow_the_extra_is_named(tmp_path, colour, monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(BifactorError, match=r"bifactor\[plot\]"):
        require_picture(tmp_path / "colour.png")


def test_pictures_of_a_folder_are_sorted_and_nothing_else(tmp_path, colour):
    for name in ("b.JPG", "a.tiff", "notes.txt"):
        (tmp_path / name).touch()
    (tmp_path / "folder.png").mkdir()
    assert [path.name for path in pictures_in(tmp_path)] == ["a.tiff", "b.JPG", "colour.png"]
    with pytest.raises(FileError, match="There is no"):
        pictures_in(tmp_path / "absent")


def test_squares_are_averaged():
    picture = np.arange(35.0).reshape(5, 7)
    small = shrunk(picture, 2)
    assert small.shape == (2, 3)
    assert small[1, 2] == picture[2:4, 4:6].mean()
    np.testing.assert_array_equal(shrunk(picture, 1), picture)


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_the_share_of_pixels_is_kept(share):
    known = kept((20, 30), share, 1)
    assert known.sum() == max(round(600 * share), 1)
    np.testing.assert_array_equal(known, kept((20, 30), share, 1))
    assert share != 0.3 or not np.array_equal(known, kept((20, 30), share, 2))


def test_psnr():
    truth = np.full((3, 3), 0.5)
    assert psnr(truth + 0.1, truth) == pytest.approx(20)
    assert psnr(truth, truth) == pytest.approx(300)
