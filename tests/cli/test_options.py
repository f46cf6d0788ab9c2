"""What is wrong with an option is said in the words of the shell, by its name there, before any work."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from bifactor.cli.main import main

ROWS = [f"u{i},{j},{(i * j) % 5}" for i in range(12) for j in range(8) if (i + j) % 3]
FILES = {
    "data.csv": "user,item,rating\n" + "\n".join(ROWS) + "\n",
    "table.csv": "name,a,b\nx,1,2\ny,,3\nz,4,\n",
    "counts.csv": "setting,outcome,count\nX,0,30\nX,1,10\nZ,0,20\nZ,1,20\n",
    "pairs.csv": "user,item\nu1,1\n",
}
COMMANDS = {
    "complete": ("data.csv", "-o", "out"),
    "impute": ("table.csv", "-o", "out.csv"),
    "inpaint": ("grey.png", "--keep", "0.5", "-o", "out.png"),
    "tomography": ("counts.csv",),
    "demo": ("--output", "out.html"),
}
WRONG = {
    "complete": {
        "--rank": ("-1", "1.5", "x", ""),
        "--ridge": ("-1", "nan", "inf", "x"),
        "--tol": ("0", "-1", "nan", "inf", "x"),
        "--max-iter": ("0", "-1", "1.5", "x"),
        "--seed": ("-1", "1.5", "x", str(2**32)),
        "--loss": ("x", ""),
        "--holdout": ("-0.1", "1", "nan", "x"),
        "--decimal": (";",),
    },
    "impute": {"--column": ("a",), "--effort": ("x",), "--seed": ("-1",), "--delimiter": ("abc", "")},
    "inpaint": {"--rank": ("-1", "x"), "--ridge": ("-1", "nan"), "--seed": ("-1",), "--keep": ("0", "2", "nan")},
    "tomography": {"--rank": ("0", "-1", "3", "x"), "--qubits": ("0", "13"), "--bit-order": ("x",), "--seed": ("-1",)},
    "demo": {"--rank": ("0", "428", "x"), "--observed": ("0", "1.1", "nan"), "--seed": ("-1",)},
}
CASES = [(c, option, value) for c, options in WRONG.items() for option, values in options.items() for value in values]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        Path(name).write_text(text)
    image = pytest.importorskip("PIL.Image")
    image.fromarray(np.arange(64, dtype=np.uint8).reshape(8, 8)).save("grey.png")
    return tmp_path


def invoke(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.mark.parametrize(("command", "option", "value"), CASES)
def test_an_option_is_called_by_its_name(command, option, value, folder):
    before = sorted(folder.iterdir())
    done = invoke(command, *COMMANDS[command], option, value)
    assert done.exit_code in (1, 2), done.output
    said = done.stderr.splitlines()[-1]
    assert option in said
    assert not re.search(r"\w=[\w'-]", said.replace("<=", "")), "this is how Python would say it"
    assert sorted(folder.iterdir()) == before


def test_one_is_one():
    invoke("complete", "data.csv", "--rank", 1, "--ridge", 1, "-o", "fit")
    assert "1 pair predicted" in invoke("predict", "fit", "pairs.csv").stderr
    Path("one.csv").write_text("name,a,b\nx,1,2\ny,2,4\nz,3,\n")
    assert "1 of 6 cells in 2 columns" in invoke("impute", "one.csv", "-o", "full.csv").stdout
    said = invoke("tomography", "counts.csv", "--rank", 1).stdout
    assert re.search(r"1 qubit, 80 shots in 2 settings", said)


def test_shots_are_counted_in_integers():
    whole = invoke("tomography", "counts.csv", "--rank", 1, "--json").stdout
    assert '"shots": 80,' in whole
    Path("parts.csv").write_text(FILES["counts.csv"].replace("30", "30.5"))
    assert json.loads(invoke("tomography", "parts.csv", "--rank", 1, "--json").stdout)["shots"] == 80.5


@pytest.mark.parametrize(
    ("command", "advice"),
    [("tomography", "Pass counts as csv or json."), ("impute", "Pass a csv, tsv or parquet file.")],
)
def test_a_file_of_another_kind_is_answered_by_what_the_command_takes(command, advice):
    np.savez("x.npz", a=np.eye(3))
    done = invoke(command, "x.npz", *(() if command == "tomography" else ("-o", "out.csv")))
    assert done.exit_code == 1
    assert f"x.npz is not text. {advice}" in done.stderr


def test_three_labels_are_not_answered_by_a_parameter_of_python():
    said = invoke("complete", "data.csv", "--loss", "logistic", "-o", "fit").stderr
    assert "not two. Encode it as 0 and 1." in said
    assert "binarize" not in said


def test_a_report_tells_all_the_time_that_it_took():
    told = json.loads(invoke("complete", "data.csv", "--rank", 1, "--holdout", 0.2, "-o", "fit", "--json").stdout)
    page = Path("fit/report.html").read_text()
    assert f"<b>{told['timings']['all']:.1f} s</b><span>total time</span>" in page
