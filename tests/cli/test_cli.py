"""The command line, as a user meets it."""

import json
import sys

import pytest
from click.testing import CliRunner

import bifactor.cli.demo
from bifactor.cli.main import main


@pytest.fixture
def invoke():
    return lambda *arguments: CliRunner().invoke(main, arguments)


def test_demo_writes_a_picture_and_a_table(invoke, tmp_path):
    output = tmp_path / "picture.png"
    done = invoke("demo", "--output", str(output))
    assert done.exit_code == 0, done.output
    for word in ("nearest pixel", "best blur", "bifactor", "dB", "observed"):
        assert word in done.output
    assert output.read_bytes().startswith(b"\x89PNG")


def test_demo_for_machines(invoke, tmp_path):
    done = invoke("demo", "--observed", "0.5", "--output", str(tmp_path / "picture.jpg"), "--json")
    assert done.exit_code == 0, done.output
    answer = json.loads(done.stdout)
    assert (answer["width"], answer["output"]) == (640, str(tmp_path / "picture.jpg"))
    nearest, blur, ours = (answer["scores"][name]["psnr"] for name in ("nearest", "blur", "bifactor"))
    assert nearest < blur < ours - 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--observed", "0"), "'--observed': 0.0 is not in the range 0<x<=1."),
        (("--observed", "nan"), "'--observed'"),
        (("--output", "no/such/folder/x.png"), "does not exist"),
        (("--seed", "x"), "not a valid integer"),
        (("--seed", "-1"), "x>=0"),
        (("--output", "picture.xyz"), "should end in"),
        (("--output", "picture"), "should end in"),
    ],
)
def test_mistakes_get_one_line(invoke, arguments, message):
    done = invoke("demo", *arguments)
    assert done.exit_code != 0
    assert message in done.output
    assert "Traceback" not in done.output


def test_missing_extra_says_what_to_install(invoke, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "PIL", None)
    output = tmp_path / "demo.png"
    done = invoke("demo", "--output", str(output))
    assert done.exit_code == 1
    assert "need Pillow. Install it with: pip install 'bifactor[plot]'" in done.output
    assert not output.exists()


def test_version_and_help(invoke):
    assert "version" in invoke("--version").output
    assert "demo" in invoke("--help").output


def test_psnr():
    assert bifactor.cli.demo.psnr(0.1 + 0 * 1, 0.0) == pytest.approx(20.0)
