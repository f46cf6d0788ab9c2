"""`bifactor inpaint`, as a user meets it."""

import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image

import bifactor.cli.inpaint
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
    Image.fromarray(pictures).convert("RGBA").save("clear.png")
    assert "Transparency" in invoke("clear.png", "--keep", 0.5, "-o", "out.jpg").stdout
    assert Path("out.jpg").read_bytes()[:3] == b"\xff\xd8\xff"
    Image.new("L", (1, 1), 77).save("dot.png")
    invoke("dot.png", "--keep", 0.01, "-o", "dot-out.png")


def test_mistakes_get_one_sentence_and_leave_nothing(pictures):
    Path("cut.png").write_bytes(Path("colour.png").read_bytes()[:400])
    Path("words.jpg").write_text("no picture")
    Path("empty.png").touch()
    Image.fromarray(np.zeros((4, 4), np.float32)).save("floats.tif")
    Image.new("RGBA", (4, 4)).save("clear.png")
    os.mkdir("folder")
    before = sorted(os.listdir())
    keep = ("--keep", 0.5, "-o", "out.png")
    for arguments, message in (
        (("cut.png", *keep), "cut short"),
        (("words.jpg", *keep), "is no picture"),
        (("empty.png", *keep), "is empty"),
        (("absent.png", *keep), "There is no file"),
        (("folder", *keep), "is a folder"),
        (("floats.tif", *keep), "8 bits"),
        (("colour.png", "--mask", "narrow.png", "-o", "out.png"), "47×36 pixels, colour.png has 48×36"),
        (("colour.png", "--mask", "nothing.png", "-o", "out.png"), "hides every pixel"),
        (("colour.png", "--mask", "mask.png", "--truth", "grey.png", "-o", "out.png"), "1 channels"),
        (("colour.png", "--mask", "mask.png", *keep), "exactly one of --mask"),
        (("colour.png", "-o", "out.png"), "exactly one of --mask"),
        (("colour.png", "--transparent", "-o", "out.png"), "has no transparency"),
        (("clear.png", "--transparent", "-o", "out.png"), "Every pixel of clear.png is a hole"),
        (("colour.png", "--hole", "no colour", "-o", "out.png"), "is no colour"),
        (("grey.png", "--hole", "magenta", "-o", "out.png"), "is grey and has no colour"),
        (("colour.png", *keep, "--truth", "colour.png"), "the picture itself is the truth"),
        (("colour.png", *keep, "--doubt", "doubt.docx"), "should end in"),
        (("colour.png", *keep, "--doubt", "mask.png"), "already exists"),
        (("colour.png", "--keep", 0.5, "-o", "out.docx"), "should end in"),
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
    def pressed(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(bifactor.cli.inpaint, "filled", pressed)
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


def test_a_picture_of_doubt(pictures):
    invoke("colour.png", "--mask", "mask.png", "-o", "out.png", "--doubt", "doubt.png")
    doubt = pixels("doubt.png")
    assert doubt.shape == (36, 48)
    assert np.all((doubt > 0) == (pixels("mask.png") == 0))


def test_without_pillow_the_extra_is_named(pictures, monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    assert "bifactor[plot]" in invoke("grey.png", "--keep", 0.5, "-o", "out.png", code=1).output
