"""`bifactor inpaint`, as a user meets it."""

import json
import os
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image

from bifactor.applications.pictures import workflow
from bifactor.applications.pictures.files import format_of, random_mask, read_picture, write_picture
from bifactor.cli.main import main


@pytest.fixture
def pictures(tmp_path, monkeypatch):
    """A smooth picture in colour and in grey, and masks for them."""
    monkeypatch.chdir(tmp_path)
    x, y = np.linspace(0, 1, 48), np.linspace(0, 1, 36)[:, None]
    planes = [128 + 100 * np.sin(k + 4 * x) * np.cos(3 * y - k) for k in range(3)]
    colour = np.stack(planes, axis=2).astype(np.uint8)
    Image.fromarray(colour).save("colour.png")
    Image.fromarray(colour[:, :, 0]).save("grey.png")
    mask = np.full((36, 48), 255, np.uint8)
    mask[10:14, 20:25] = 0
    Image.fromarray(mask).save("mask.png")
    Image.fromarray(mask * 0).save("nothing.png")
    Image.fromarray(mask[:, 1:]).save("narrow.png")
    return colour


def pixels(name):
    with Image.open(name) as image:
        return np.asarray(image)


def save(name, values, alpha=None):
    with open(name, "wb") as file:
        write_picture(file, format_of(Path(name)), values, alpha)


def invoke(*arguments, code=0):
    done = CliRunner().invoke(main, ["inpaint", *map(str, arguments)])
    assert done.exit_code == code, done.output
    assert code == 0 or "Traceback" not in done.output
    return done


@pytest.mark.parametrize("name", ["colour.png", "grey.png"])
def test_pixels_hidden_at_random_come_back(pictures, name):
    answer = json.loads(invoke(name, "--keep", 0.5, "-o", "out.png", "--json").stdout)
    before, after = (pixels(file).astype(float) for file in (name, "out.png"))
    assert answer["known"] == 0.5
    assert answer["psnr"] == pytest.approx(-10 * np.log10(np.mean((before - after) ** 2) / 255**2))
    assert answer["psnr"] > 35
    assert answer["psnr_hidden_blur"] < answer["psnr_hidden"] < answer["psnr"]
    same = (before == after) if before.ndim == 2 else (before == after).all(axis=2)
    assert same.sum() >= before.shape[0] * before.shape[1] // 2


def test_only_what_the_mask_hides_changes(pictures):
    damaged = pictures.copy()
    damaged[10:14, 20:25] = 0
    Image.fromarray(damaged).save("damaged.png")
    said = invoke("damaged.png", "--mask", "mask.png", "--truth", "colour.png", "-o", "out.png").stdout
    assert "PSNR" in said
    after = pixels("out.png").astype(int)
    known = pixels("mask.png") > 0
    np.testing.assert_array_equal(after[known], pictures[known])
    assert np.abs(after - pictures)[~known].mean() < 10
    assert "PSNR" not in invoke("damaged.png", "--mask", "mask.png", "-o", "other.png").stdout


def test_the_time_of_the_comparison_is_told(pictures, monkeypatch):
    from bifactor.applications.pictures.baselines import best_blur

    def slow(*arguments):
        time.sleep(0.3)
        return best_blur(*arguments)

    monkeypatch.setattr(workflow, "best_blur", slow)
    call = ["inpaint", "grey.png", "--mask", "mask.png", "-o", "whole.png", "--force"]
    for more in ([], ["--truth", "grey.png"]):
        started = time.perf_counter()
        done = CliRunner().invoke(main, [*call, *more, "--json"])
        took, told = time.perf_counter() - started, json.loads(done.stdout)
        assert (told["seconds_compared"] > 0.3) == bool(more)
        assert told["seconds"] + told["seconds_compared"] <= took
    assert "to compare it with blurs" in CliRunner().invoke(main, [*call, "--truth", "grey.png"]).output


def test_same_seed_same_picture(pictures):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        invoke("grey.png", "--keep", 0.4, "--seed", seed, "-o", f"{name}.png")
    a, b, c = (pixels(f"{name}.png") for name in "abc")
    np.testing.assert_array_equal(a, b)
    assert not np.array_equal(a, c)


def test_nothing_hidden_and_other_kinds(pictures):
    done = invoke("grey.png", "--keep", 1, "-o", "same.png")
    assert "nothing to fill in" in done.stdout
    np.testing.assert_array_equal(pixels("same.png"), pictures[:, :, 0])
    said = invoke("colour.png", "--keep", 0.5, "-o", "out.jpg").stdout
    assert "JPEG changes pixels slightly, also known ones" in said
    assert Path("out.jpg").read_bytes()[:3] == b"\xff\xd8\xff"
    Image.new("L", (1, 1), 77).save("dot.png")
    invoke("dot.png", "--keep", 0.01, "-o", "dot-out.png")


def test_mistakes_get_one_sentence_and_leave_nothing(pictures):
    Path("cut.png").write_bytes(Path("colour.png").read_bytes()[:400])
    Path("words.jpg").write_text("no picture")
    Path("empty.png").touch()
    Image.fromarray(np.zeros((4, 4), np.float32)).save("floats.tif")
    Image.fromarray(np.full((4, 4), np.inf, np.float32)).save("infinite.tif")
    Image.new("RGBA", (4, 4)).save("clear.png")
    Image.fromarray(pixels("mask.png").T.copy()).save("turned.png")
    Image.new("L", (16384, 1)).save("long.png")
    Image.fromarray(257 * pictures[:, :, 0].astype(np.uint16)).save("deep.png")
    os.mkdir("folder")
    before = sorted(os.listdir())
    keep = ("--keep", 0.5, "-o", "out.png")
    for arguments, message in (
        (("cut.png", *keep), "damaged"),
        (("words.jpg", *keep), "is not a supported picture"),
        (("empty.png", *keep), "is empty"),
        (("absent.png", *keep), "There is no file"),
        (("folder", *keep), "is a folder"),
        (("floats.tif", *keep), "out.png cannot hold pixels of float32"),
        (("floats.tif", "--hole", "red", "-o", "out.tif"), "Pass a number"),
        (("infinite.tif", "--keep", 0.5, "-o", "out.tif"), "infinite"),
        (("long.png", "--keep", 0.5, "-o", "out.webp"), "16384 pixels"),
        (("long.png", *keep, "--doubt", "doubt.webp"), "16384 pixels"),
        (("colour.png", "--mask", "turned.png", "-o", "out.png"), "One of them is rotated"),
        (("colour.png", "--mask", "cut.png", "-o", "out.png"), "damaged"),
        (("colour.png", "--mask", "empty.png", "-o", "out.png"), "is empty"),
        (("mask.png", "--mask", "grey.png", "-o", "out.png"), "Pass the picture first, then its mask"),
        (("deep.png", "--mask", "mask.png", "--truth", "grey.png", "-o", "out.png"), "1 of uint16"),
        (("clear.png", *keep), "is a hole or transparent"),
        (("colour.png", *keep, "--doubt", "./out.png"), "Choose two names"),
        (("colour.png", "--mask", "narrow.png", "-o", "out.png"), "47×36 pixels, colour.png has 48×36"),
        (("colour.png", "--mask", "nothing.png", "-o", "out.png"), "hides every pixel"),
        (("colour.png", "--mask", "mask.png", "--truth", "grey.png", "-o", "out.png"), "1 channels"),
        (("colour.png", "--mask", "mask.png", *keep), "Pass exactly one"),
        (("colour.png", "-o", "out.png"), "Pass exactly one"),
        (("colour.png", "--transparent", "-o", "out.png"), "has no transparency"),
        (("clear.png", "--transparent", "-o", "out.png"), "Every pixel of clear.png is a hole"),
        (("colour.png", "--hole", "no colour", "-o", "out.png"), "is not a colour"),
        (("grey.png", "--hole", "magenta", "-o", "out.png"), "is grey and has no colour"),
        (("colour.png", *keep, "--truth", "colour.png"), "the picture itself is the truth"),
        (("colour.png", *keep, "--doubt", "doubt.docx"), "extension of a picture"),
        (("colour.png", *keep, "--doubt", "mask.png"), "already exists"),
        (("colour.png", "--keep", 0.5, "-o", "out.docx"), "extension of a picture"),
        (("colour.png", "--keep", 0.5, "-o", "mask.png"), "already exists"),
        (("colour.png", "--keep", 0.5, "-o", "no/where.png"), "does not exist"),
    ):
        assert message in invoke(*arguments, code=1).output
        assert sorted(os.listdir()) == before
    for share in (0, -1, 1.5, "nan"):
        assert "'--keep'" in invoke("colour.png", "--keep", share, "-o", "out.png", code=2).output


def test_force_replaces_and_a_full_disk_leaves_the_old(pictures, monkeypatch):
    invoke("grey.png", "--keep", 0.5, "-o", "mask.png", "--force")
    old = Path("mask.png").read_bytes()

    def full(*arguments, **named):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Image.Image, "save", full)
    before = sorted(os.listdir())
    done = invoke("colour.png", "--keep", 0.5, "-o", "mask.png", "--force", code=1)
    assert "No space left" in done.output
    assert sorted(os.listdir()) == before
    assert Path("mask.png").read_bytes() == old


def test_ctrl_c_writes_nothing(pictures, monkeypatch):
    def pressed(*given, **named):
        raise KeyboardInterrupt

    monkeypatch.setattr(workflow, "fill_picture", pressed)
    before = sorted(os.listdir())
    assert "Nothing was written" in invoke("colour.png", "--keep", 0.5, "-o", "out.png", code=130).output
    assert sorted(os.listdir()) == before


def test_holes_by_transparency_and_by_colour(pictures):
    known = pixels("mask.png") > 0
    clear = np.dstack([pictures, np.where(known, 255, 0).astype(np.uint8)])
    Image.fromarray(clear).save("clear.png")
    painted = pictures.copy()
    painted[~known] = (255, 0, 255)
    Image.fromarray(painted).save("painted.png")
    invoke("clear.png", "--transparent", "-o", "a.png")
    invoke("painted.png", "--hole", "#ff00ff", "-o", "b.png")
    invoke("colour.png", "--mask", "mask.png", "-o", "c.png")
    for name in ("a.png", "b.png"):
        np.testing.assert_array_equal(pixels(name), pixels("c.png"))
    grey = pictures[:, :, 0].copy()
    grey[~known] = 255
    Image.fromarray(grey).save("white.png")
    invoke("white.png", "--hole", "white", "-o", "d.png")
    assert np.abs(pixels("d.png").astype(int) - pictures[:, :, 0])[~known].mean() < 10


@pytest.mark.parametrize("name", ["deep.png", "deep.tif"])
@pytest.mark.parametrize("channels", [1, 3])
def test_pictures_of_16_bits_stay_so(pictures, name, channels):
    deep = 257 * pictures[:, :, :channels].astype(np.uint16) + np.arange(48, dtype=np.uint16)[:, None]
    save(name, deep)
    answer = json.loads(invoke(name, "--keep", 0.5, "-o", f"out-{name}", "--doubt", "doubt.png", "--json").stdout)
    full = read_picture(Path(f"out-{name}")).pixels
    assert answer["kind"] == "uint16"
    assert full.dtype == np.uint16
    known = random_mask((36, 48), 0.5, 0)
    np.testing.assert_array_equal(full[known], deep[known])
    assert answer["psnr"] == pytest.approx(-10 * np.log10(np.mean((full / 65535 - deep / 65535) ** 2)), abs=1e-3)
    assert answer["psnr_hidden_blur"] < answer["psnr_hidden"] < answer["psnr"]
    assert answer["notes"] == []
    # The same picture in bytes has as many decibels, up to rounding, and as much doubt.
    save("bytes.png", pictures[:, :, :channels])
    same = json.loads(invoke("bytes.png", "--keep", 0.5, "-o", "out.png", "--doubt", "other.png", "--json").stdout)
    assert abs(answer["psnr_hidden_blur"] - same["psnr_hidden_blur"]) < 1
    assert np.abs(pixels("doubt.png").astype(float) - pixels("other.png")).mean() < 2
    assert "16 bits" in invoke(name, "--keep", 0.5, "-o", "again.png").stdout
    assert "so 16 bits were rounded" in " ".join(invoke(name, "--keep", 0.5, "-o", "small.bmp").stdout.split())


@pytest.mark.parametrize("kind", [np.int32, np.float32])
def test_numbers_without_a_white(pictures, kind):
    """Decibels are of the range, so that units do not matter."""
    values, known = (1000 * pictures[:, :, 0].astype(float) - 50_000).astype(kind), random_mask((36, 48), 0.5, 0)
    answers = []
    for factor in (1, 100):
        Image.fromarray(values * kind(factor)).save("numbers.tif")
        answers.append(json.loads(invoke("numbers.tif", "--keep", 0.5, "-o", "out.tif", "--force", "--json").stdout))
        np.testing.assert_array_equal(pixels("out.tif")[known], factor * values[known])
        assert pixels("out.tif").dtype == kind
    error = np.mean((pixels("out.tif") / 100.0 - values)[~known] ** 2)
    for answer in answers:
        assert answer["psnr_hidden"] == pytest.approx(-10 * np.log10(error / float(np.ptp(values)) ** 2), abs=0.2)
        assert answer["psnr_hidden_blur"] < answer["psnr_hidden"]


def test_nan_and_other_numbers_are_holes(pictures):
    values = pictures[:, :, 0].astype(np.float32)
    values[5, 7] = np.nan
    Image.fromarray(values).save("gaps.tif")
    values[5, 7] = -3.4028235e38
    Image.fromarray(values).save("marked.tif")
    assert "NaN were filled in" in invoke("gaps.tif", "--mask", "mask.png", "-o", "a.tif").stdout
    invoke("gaps.tif", "--hole", "nan", "-o", "b.tif")
    invoke("marked.tif", "--hole", "-3.4028235e38", "-o", "c.tif")
    answer = json.loads(invoke("gaps.tif", "--keep", 1, "-o", "d.tif", "--json").stdout)
    assert answer["psnr"] is None
    for name in "abcd":
        assert abs(pixels(f"{name}.tif")[5, 7] - pictures[5, 7, 0]) < 10
    deep = 257 * pictures[:, :, 0].astype(np.uint16)
    deep[5, 7] = 0
    Image.fromarray(deep).save("depth.png")
    answer = json.loads(invoke("depth.png", "--hole", "0", "-o", "e.png", "--json").stdout)
    assert answer["known"] == 1 - 1 / deep.size
    assert abs(pixels("e.png")[5, 7] / 257 - pictures[5, 7, 0]) < 10
    assert "No pixel has the colour 1e300" in invoke("marked.tif", "--hole", "1e300", "-o", "g.tif").stdout
    assert "No pixel has the colour 7" in invoke("depth.png", "--hole", 7, "-o", "f.png").stdout


def test_a_colour_of_holes_in_16_bits(pictures):
    deep = 256 * pictures.astype(np.uint16)
    deep[5, 7] = 65535, 0, 65535
    save("deep.png", deep)
    answer = json.loads(invoke("deep.png", "--hole", "#ff00ff", "-o", "out.png", "--json").stdout)
    assert answer["known"] == 1 - 1 / (36 * 48)


@pytest.mark.parametrize("kind", [np.uint8, np.uint16])
@pytest.mark.parametrize("channels", [1, 3])
def test_transparency_is_kept(pictures, kind, channels):
    shades, hidden = pictures[:, :, :channels].astype(kind), pixels("mask.png") == 0
    alpha = np.linspace(0, np.iinfo(kind).max, 36 * 48).reshape(36, 48).astype(kind)
    save("clear.png", shades, alpha)
    for way in (("--mask", "mask.png"), ("--keep", 0.7), ("--hole", "#010203" if channels == 3 else "1")):
        for ending in ("png", "tif", "webp"):
            invoke("clear.png", *way, "-o", f"out.{ending}", "--force")
            found = read_picture(Path(f"out.{ending}"))
            right = alpha if found.alpha.dtype == kind else np.rint(alpha / 257)
            np.testing.assert_array_equal(found.alpha, right)
    invoke("clear.png", "--mask", "mask.png", "-o", "out.png", "--force")
    np.testing.assert_array_equal(read_picture(Path("out.png")).pixels[~hidden], shades[~hidden])
    assert "no transparency" in " ".join(invoke("clear.png", "--mask", "mask.png", "-o", "out.jpg").stdout.split())
    said = invoke("clear.png", "--transparent", "-o", "opaque.png").stdout
    assert read_picture(Path("opaque.png")).alpha is None
    assert "ransparency" not in said


def test_colours_that_nobody_sees_do_not_get_into_holes(pictures):
    shades, alpha = pictures.copy(), np.full((36, 48), 255, np.uint8)
    alpha[:, 22:] = 0
    outcomes = []
    for unseen in (0, 255):
        shades[:, 22:] = unseen
        save("clear.png", shades, alpha)
        answer = json.loads(invoke("clear.png", "--mask", "mask.png", "-o", "out.png", "--force", "--json").stdout)
        assert answer["known"] == 1 - 20 / (36 * 48)
        outcomes.append(pixels("out.png"))
        known = pixels("mask.png") > 0
        np.testing.assert_array_equal(outcomes[-1][known], np.dstack([shades, alpha])[known])
    np.testing.assert_array_equal(outcomes[0][:, :22], outcomes[1][:, :22])


def test_masks_as_programs_and_people_make_them(pictures):
    mask = pixels("mask.png")
    invoke("colour.png", "--mask", "mask.png", "-o", "right.png")
    Image.fromarray(mask // 255).save("ones.png")
    Image.fromarray((mask // 255).astype(np.float32)).save("floats.tif")
    Image.fromarray(257 * mask.astype(np.uint16)).save("deep.png")
    Image.fromarray(mask).convert("1").save("bits.png")
    Image.fromarray(np.dstack([0 * mask] * 3 + [255 - mask])).save("painted.png")  # black, on nothing
    Image.fromarray(mask).save("mask.jpg")
    for name in ("ones.png", "floats.tif", "deep.png", "bits.png", "painted.png", "mask.jpg"):
        answer = json.loads(invoke("colour.png", "--mask", name, "-o", "out.png", "--force", "--json").stdout)
        np.testing.assert_array_equal(pixels("out.png"), pixels("right.png"))
        assert answer["notes"] == []


def test_a_mask_is_for_the_picture_as_it_is_seen(pictures):
    exif = Image.Exif()
    exif[0x0112] = 6  # turn right to see it upright
    with Image.open("colour.png") as image:
        image.save("turned.png", exif=exif)
    Image.fromarray(np.rot90(pixels("mask.png"), -1)).save("upright.png")
    invoke("turned.png", "--mask", "upright.png", "-o", "out.png")
    known = pixels("upright.png") > 0
    np.testing.assert_array_equal(pixels("out.png")[known], np.rot90(pictures, -1)[known])
    assert "One of them is rotated" in invoke("turned.png", "--mask", "mask.png", "-o", "no.png", code=1).output


def test_other_kinds_of_files(pictures):
    known = pixels("mask.png") > 0
    with Image.open("colour.png") as image:
        image.convert("1").save("bits.png")
        image.convert("CMYK").save("ink.tif")
        image.quantize(16).save("palette.png", transparency=3)
        image.save("film.gif", save_all=True, append_images=[image.rotate(180)])
    for name, note in (
        ("bits.png", "1 bit"),
        ("ink.tif", "CMYK"),
        ("palette.png", None),
        ("film.gif", "Only the first of 2 frames"),
    ):
        answer = json.loads(invoke(name, "--mask", "mask.png", "-o", "out.png", "--force", "--json").stdout)
        assert answer["notes"] == [] if note is None else note in answer["notes"][0]
        with Image.open(name) as image:
            right = np.asarray(image.convert({"bits.png": "L", "palette.png": "RGBA"}.get(name, "RGB")))
        np.testing.assert_array_equal(pixels("out.png")[known], right[known])


def test_doubtful_masks_get_a_note(pictures):
    Image.fromarray(255 - pixels("mask.png")).save("inverted.png")
    frames = [Image.open("mask.png"), Image.open("inverted.png")]
    frames[0].save("frames.gif", save_all=True, append_images=frames[1:])
    for name, note in (
        ("inverted.png", "hides 99% of the pixels"),
        ("grey.png", "neither black nor white"),
        ("frames.gif", "first of 2 frames"),
    ):
        answer = json.loads(invoke("colour.png", "--mask", name, "-o", "out.png", "--force", "--json").stdout)
        assert note in " ".join(answer["notes"])


def test_what_colours_mean_is_kept(pictures):
    with Image.open("colour.png") as image:
        image.save("profiled.png", icc_profile=b"what colours mean")
    invoke("profiled.png", "--mask", "mask.png", "-o", "out.tif")
    assert read_picture(Path("out.tif")).profile == b"what colours mean"


def test_a_picture_of_doubt(pictures):
    invoke("colour.png", "--mask", "mask.png", "-o", "out.png", "--doubt", "doubt.png")
    doubt = pixels("doubt.png")
    assert doubt.shape == (36, 48)
    assert np.all((doubt > 0) == (pixels("mask.png") == 0))


def test_without_pillow_the_extra_is_named(pictures, monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    assert "bifactor[plot]" in invoke("grey.png", "--keep", 0.5, "-o", "out.png", code=1).output
