"""Pictures as numbers."""

import struct
import sys

import numpy as np
import pytest
from PIL import Image

from bifactor.applications.pictures.files import (
    LUMA,
    pictures_in,
    psnr,
    random_mask,
    read_grey,
    read_picture,
    require_picture,
    shrunk,
)
from bifactor.errors import BifactorError, FileError, InputError


@pytest.fixture
def colour(tmp_path):
    values = np.random.default_rng(0).integers(0, 256, (6, 8, 3), dtype=np.uint8)
    Image.fromarray(values).save(tmp_path / "colour.png")
    return values


def test_colours_and_greys_come_back(tmp_path, colour):
    Image.fromarray(colour[:, :, 0]).save(tmp_path / "grey.png")
    picture = read_picture(tmp_path / "colour.png")
    np.testing.assert_array_equal(picture.pixels, colour)
    assert picture.alpha is None
    assert picture.profile is None
    assert picture.notes == []
    np.testing.assert_array_equal(read_picture(tmp_path / "grey.png").pixels, colour[:, :, :1])
    np.testing.assert_allclose(read_grey(tmp_path / "colour.png"), colour @ LUMA / 255)
    np.testing.assert_allclose(read_grey(tmp_path / "grey.png"), colour[:, :, 0] / 255)
    assert LUMA.sum() == pytest.approx(1)


def test_transparency_is_read(tmp_path, colour):
    alpha = np.arange(48, dtype=np.uint8).reshape(6, 8)
    Image.fromarray(np.dstack([colour, alpha])).save(tmp_path / "clear.png")
    Image.fromarray(np.dstack([colour[:, :, 0], alpha])).save(tmp_path / "grey.png")
    for name, pixels in (("clear.png", colour), ("grey.png", colour[:, :, :1])):
        picture = read_picture(tmp_path / name)
        np.testing.assert_array_equal(picture.pixels, pixels)
        np.testing.assert_array_equal(picture.alpha, alpha)
        assert picture.notes == []


@pytest.mark.parametrize("transparent", [3, bytes(range(16))])
@pytest.mark.parametrize("name", ["palette.png", "palette.gif"])
def test_transparency_of_a_palette(tmp_path, colour, transparent, name):
    if name.endswith("gif") and not isinstance(transparent, int):
        pytest.skip("GIF has one transparent colour")
    image = Image.fromarray(colour).quantize(16)
    image.save(tmp_path / name, transparency=transparent)
    picture, index = read_picture(tmp_path / name), np.asarray(image)
    opaque = np.where(index == 3, 0, 255) if isinstance(transparent, int) else index
    np.testing.assert_array_equal(picture.alpha, opaque)
    np.testing.assert_array_equal(picture.pixels, np.asarray(image.convert("RGB")))


def test_a_transparent_colour(tmp_path, colour):
    Image.fromarray(colour).save(tmp_path / "keyed.png", transparency=tuple(map(int, colour[2, 3])))
    Image.fromarray(colour[:, :, 0]).save(tmp_path / "grey.png", transparency=int(colour[2, 3, 0]))
    deep = 257 * colour[:, :, 0].astype(np.uint16)
    Image.fromarray(deep).save(tmp_path / "deep.png", transparency=int(deep[2, 3]))
    for name, white in (("keyed.png", 255), ("grey.png", 255), ("deep.png", 65535)):
        picture = read_picture(tmp_path / name)
        same = np.all(picture.pixels == picture.pixels[2, 3], axis=2)
        np.testing.assert_array_equal(picture.alpha, np.where(same, 0, white))


@pytest.mark.parametrize(
    ("kind", "name"),
    [(np.uint16, "a.png"), (np.uint16, "a.tif"), (">u2", "a.tif"), (np.int32, "a.tif"), (np.float32, "a.tif")],
)
def test_grey_of_more_bits_comes_back(tmp_path, kind, name):
    values = np.random.default_rng(0).integers(0, 65536, (6, 8)).astype(kind)
    Image.fromarray(values).save(tmp_path / name)
    picture = read_picture(tmp_path / name)
    np.testing.assert_array_equal(picture.pixels[:, :, 0], values)
    assert picture.pixels.dtype == np.dtype(kind).newbyteorder("=")
    assert picture.pixels.dtype.isnative
    if picture.pixels.dtype == np.uint16:
        np.testing.assert_array_equal(read_grey(tmp_path / name), values / 65535)
    else:
        with pytest.raises(InputError, match="which have no white"):
            read_grey(tmp_path / name)


def test_numbers_that_do_not_fit_are_refused(tmp_path):
    for number in (5, -5):
        Image.fromarray(np.full((3, 4), number, np.int32)).save(tmp_path / "signed.tif")
        assert np.all(read_picture(tmp_path / "signed.tif").pixels == number)
        blob = (tmp_path / "signed.tif").read_bytes()
        tag = struct.pack("<HHI", 339, 3, 1)
        assert blob.count(tag) == 1
        (tmp_path / "unsigned.tif").write_bytes(blob.replace(tag + b"\2", tag + b"\1"))
    with pytest.raises(InputError, match="above 2147483647"):
        read_picture(tmp_path / "unsigned.tif")


def test_what_is_lost_is_told(tmp_path, colour):
    image = Image.fromarray(colour)
    image.convert("1").save(tmp_path / "bits.png")
    image.convert("CMYK").save(tmp_path / "ink.tif", icc_profile=b"of ink")
    image.save(tmp_path / "film.gif", save_all=True, append_images=[Image.fromarray(colour[::-1].copy())])
    for name, note in (("bits.png", "1 bit"), ("ink.tif", "CMYK"), ("film.gif", "first of 2 frames")):
        assert note in " ".join(read_picture(tmp_path / name).notes)
    np.testing.assert_array_equal(
        read_picture(tmp_path / "bits.png").pixels[:, :, 0], 255 * np.asarray(image.convert("1"))
    )
    assert read_picture(tmp_path / "ink.tif").profile is None
    image.save(tmp_path / "camera.jpg", format="MPO", save_all=True, append_images=[image])  # a preview
    assert read_picture(tmp_path / "camera.jpg").notes == []
    image.convert("LAB").save(tmp_path / "lab.tif")
    with pytest.raises(InputError, match="kind LAB"):
        read_picture(tmp_path / "lab.tif")


def test_what_colours_mean_is_kept(tmp_path, colour):
    Image.fromarray(colour).save(tmp_path / "colour.png", icc_profile=b"profile")
    assert read_picture(tmp_path / "colour.png").profile == b"profile"


@pytest.mark.parametrize("kind", [np.uint8, np.uint16])
def test_a_camera_s_orientation_is_followed(tmp_path, colour, kind):
    exif = Image.Exif()
    exif[0x0112] = 6  # turn right to see it upright
    pixels = colour if kind is np.uint8 else 256 * colour[:, :, 0].astype(np.uint16) + colour[:, :, 1]
    for name in ("turned.png", "turned.tif"):
        Image.fromarray(pixels).save(tmp_path / name, exif=exif)
        found = read_picture(tmp_path / name).pixels
        np.testing.assert_array_equal(found, np.rot90(pixels, -1).reshape(found.shape))


def test_what_is_no_picture_is_refused_in_one_sentence(tmp_path, colour):
    whole = (tmp_path / "colour.png").read_bytes()
    (tmp_path / "cut.png").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "words.jpg").write_text("no picture")
    (tmp_path / "empty.png").touch()
    for read in (require_picture, read_picture, read_grey):
        for name, message in (
            ("words.jpg", "is not a supported picture"),
            ("empty.png", "is empty"),
            ("absent.png", "There is no file"),
            ("", "is a folder"),
        ):
            with pytest.raises(FileError, match=message):
                read(tmp_path / name)
    require_picture(tmp_path / "cut.png")  # its beginning is that of a picture
    with pytest.raises(FileError, match="damaged"):
        read_grey(tmp_path / "cut.png")


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
    known = random_mask((20, 30), share, 1)
    assert known.sum() == max(round(600 * share), 1)
    np.testing.assert_array_equal(known, random_mask((20, 30), share, 1))
    assert share != 0.3 or not np.array_equal(known, random_mask((20, 30), share, 2))


def test_psnr():
    truth = np.full((3, 3), 0.5)
    assert psnr(truth + 0.1, truth) == pytest.approx(20)
    assert psnr(truth, truth) == pytest.approx(300)
