"""The command line, as a user meets it."""

import json
import sys

import pytest
from click.testing import CliRunner

from bifactor.cli.main import main


@pytest.fixture
def invoke():
    return lambda *arguments: CliRunner().invoke(main, arguments)


def test_demo_writes_a_page_that_loads_nothing(invoke, tmp_path):
    output = tmp_path / "page.html"
    done = invoke("demo", "--output", str(output))
    assert done.exit_code == 0, done.output
    for word in ("nearest pixel", "best blur", "bifactor", "dB", "RMSE", "intervals", "cells filled in"):
        assert word in done.output
    page = output.read_text(encoding="utf-8")
    assert page.count('src="data:image/jpeg;base64,') == page.count("src=") == 4
    assert "default-src 'none'" in page
    assert "http" not in page.replace("http-equiv", "")
    assert page.count("recommended</th>") == 2
    assert "class=new" in page


def test_demo_for_machines(invoke, tmp_path):
    """Each job does better than what it is shown beside."""
    done = invoke("demo", "--observed", "0.5", "--seed", "3", "--output", str(tmp_path / "page.html"), "--json")
    assert done.exit_code == 0, done.output
    answer = json.loads(done.stdout)
    assert answer["output"] == str(tmp_path / "page.html")
    nearest, blur, ours = (answer["picture"]["scores"][name]["psnr"] for name in ("nearest", "blur", "bifactor"))
    assert nearest < blur < ours - 1
    errors = answer["ratings"]["errors"]
    assert errors["bifactor"] < 0.85 * errors["means of films"] < errors["mean of all"]
    assert abs(answer["ratings"]["held"] - answer["ratings"]["level"]) < 0.03
    assert all(score["error"] < score["baseline"] for score in answer["table"]["columns"].values())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--observed", "0"), "'--observed': 0.0 is not in the range 0<x<=1."),
        (("--observed", "nan"), "'--observed'"),
        (("--output", "no/such/folder/x.html"), "does not exist"),
        (("--seed", "x"), "not a valid integer"),
        (("--seed", "-1"), "x>=0"),
        (("--output", "page.png"), "should end in"),
        (("--output", "page"), "should end in"),
    ],
)
def test_mistakes_get_one_line(invoke, arguments, message):
    done = invoke("demo", *arguments)
    assert done.exit_code != 0
    assert message in done.output
    assert "Traceback" not in done.output


def test_missing_extra_says_what_to_install(invoke, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "PIL", None)
    output = tmp_path / "demo.html"
    done = invoke("demo", "--output", str(output))
    assert done.exit_code == 1
    assert "need Pillow. Install it with: pip install 'bifactor[plot]'" in done.output
    assert not output.exists()


def test_version_and_help(invoke):
    assert "version" in invoke("--version").output
    assert "demo" in invoke("--help").output
