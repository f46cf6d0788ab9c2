"""Colours of 16 bits."""

import io
import struct
import zlib

import numpy as np
import pytest
from PIL import Image
from PIL.TiffImagePlugin import ImageFileDirectory_v2

from bifactor.applications.pictures.files import read_picture
from bifactor.errors import FileError

PASSES = ((0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1))
"""Of interlaced PNG files: first row and column, and how far the next are."""

COLOURS = {1: 0, 2: 4, 3: 2, 4: 6}
"""PNG's numbers for so many channels."""


@pytest.fixture
def deep():
    return np.random.default_rng(0).integers(0, 65536, (11, 13, 4), dtype=np.uint16)


def png(values, interlaced=False, transparent=None):
    """A PNG file as the specification has it, unlike ours with rows as they are."""
    height, width, channels = values.shape
    parts = [values[i::down, j::right] for i, j, down, right in PASSES] if interlaced else [values]
    raw = b"".join(b"\0" + row.astype(">u2").tobytes() for part in parts for row in part)
    chunks = [(b"IHDR", struct.pack(">IIBBBBB", width, height, 16, COLOURS[channels], 0, 0, int(interlaced)))]
    if transparent is not None:
        chunks.append((b"tRNS", transparent.astype(">u2").tobytes()))
    chunks += [(b"IDAT", zlib.compress(raw)), (b"IEND", b"")]
    ends = b"".join(struct.pack(">I", len(c)) + n + c + struct.pack(">I", zlib.crc32(n + c)) for n, c in chunks)
    return b"\x89PNG\r\n\x1a\n" + ends


def tiff(values, order="<", compressed=False, planes=False, alpha=2):
    """A TIFF file as the specification has it, of one strip, or one for each channel."""
    height, width, channels = values.shape
    parts = [values[:, :, k] for k in range(channels)] if planes else [values]
    strips = [part.astype(f"{order}u2").tobytes() for part in parts]
    strips = [zlib.compress(strip) for strip in strips] if compressed else strips
    tags = ImageFileDirectory_v2(b"II\x2a\0\0\0\0\0" if order == "<" else b"MM\0\x2a\0\0\0\0")
    tags[256], tags[257], tags[258], tags[259] = width, height, (16,) * channels, 8 if compressed else 1
    tags[262], tags[277], tags[278], tags[284] = 2, channels, height, 2 if planes else 1
    tags[273] = tuple(sum(map(len, strips[:k])) for k in range(len(strips)))
    tags[279] = tuple(map(len, strips))
    if channels == 4:
        tags[338] = alpha
    file = io.BytesIO()
    tags.save(file)
    return file.getvalue() + b"".join(strips)


@pytest.mark.parametrize("interlaced", [False, True])
@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_png_files_come_back_with_all_bits(tmp_path, deep, channels, interlaced):
    path, clear = tmp_path / "deep.png", channels in (2, 4)
    path.write_bytes(png(deep[:, :, :channels], interlaced))
    picture = read_picture(path)
    np.testing.assert_array_equal(picture.pixels, deep[:, :, : channels - clear])
    assert (picture.alpha is not None) == clear
    assert not clear or np.array_equal(picture.alpha, deep[:, :, channels - 1])
    assert picture.notes == []


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("channels", [3, 4])
def test_tiff_files_come_back_with_all_bits(tmp_path, deep, channels, order, compressed):
    path = tmp_path / "deep.tif"
    path.write_bytes(tiff(deep[:, :, :channels], order, compressed))
    picture = read_picture(path)
    np.testing.assert_array_equal(picture.pixels, deep[:, :, :3])
    assert picture.alpha is None if channels == 3 else np.array_equal(picture.alpha, deep[:, :, 3])
    assert picture.notes == []


def test_a_transparent_colour_is_compared_with_all_bits(tmp_path, deep):
    deep[4, 5] = deep[2, 3]
    deep[4, 5, 2] ^= 1
    (tmp_path / "keyed.png").write_bytes(png(deep[:, :, :3], transparent=deep[2, 3, :3]))
    picture = read_picture(tmp_path / "keyed.png")
    np.testing.assert_array_equal(picture.pixels, deep[:, :, :3])
    assert np.argwhere(picture.alpha == 0).tolist() == [[2, 3]]


def test_the_camera_s_orientation_holds_for_both_bytes(tmp_path, deep):
    tags = Image.Exif()
    tags[0x0112] = 8
    whole = png(deep[:, :, :3])
    chunk = b"eXIf" + tags.tobytes().removeprefix(b"Exif\0\0")
    chunk = struct.pack(">I", len(chunk) - 4) + chunk + struct.pack(">I", zlib.crc32(chunk))
    (tmp_path / "turned.png").write_bytes(whole[:33] + chunk + whole[33:])
    np.testing.assert_array_equal(read_picture(tmp_path / "turned.png").pixels, np.rot90(deep[:, :, :3]))


def test_what_cannot_be_read_is_told_or_refused(tmp_path, deep):
    (tmp_path / "multiplied.tif").write_bytes(tiff(deep, alpha=1))
    (tmp_path / "squeezed.tif").write_bytes(tiff(deep[:, :, :3], planes=True, compressed=True))
    for name in ("multiplied.tif", "squeezed.tif"):
        picture = read_picture(tmp_path / name)
        assert picture.pixels.dtype == np.uint8
        assert picture.notes == ["The picture has 16 bits per colour, of which 8 were read."]
    np.testing.assert_array_equal(read_picture(tmp_path / "squeezed.tif").pixels, deep[:, :, :3] >> 8)
    (tmp_path / "planes.tif").write_bytes(tiff(deep[:, :, :3], planes=True))
    with pytest.raises(FileError, match="separate planes"):
        read_picture(tmp_path / "planes.tif")
    whole = png(deep[:, :, :3])
    (tmp_path / "cut.png").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(FileError, match="damaged"):
        read_picture(tmp_path / "cut.png")
