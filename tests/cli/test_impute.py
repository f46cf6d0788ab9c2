"""`bifactor impute`, as a user meets it."""

import csv
import json
import os
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from bifactor.cli.main import main


@pytest.fixture
def table(tmp_path, monkeypatch):
    """A table of rank 1 with holes, an index, a column of words and one of nothing."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X = np.outer(rng.uniform(1, 2, 60), [1.0, 10.0, 100.0, 1000.0]) + 5
    holes = rng.random(X.shape) < 0.15
    with open("table.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "a", "kind", "b", "c", "d", "empty"])
        for k in range(60):
            cells = ["" if hole else f"{x:.9f}" for x, hole in zip(X[k], holes[k], strict=True)]
            writer.writerow([k, cells[0], "x, y", *cells[1:], ""])
    return X, holes


def invoke(*arguments, code=0):
    done = CliRunner().invoke(main, ["impute", *arguments])
    assert done.exit_code == code, done.output
    return done


def test_holes_are_filled_and_the_rest_is_as_it_was(table):
    X, holes = table
    said = invoke("table.csv", "-o", "full.csv").stdout
    assert "kept       id, kind, empty" in said
    assert f"{holes.sum()} of 240 cells in 4 columns of numbers" in said
    before, after = (list(csv.reader(Path(name).read_text().splitlines())) for name in ("table.csv", "full.csv"))
    places = [1, 3, 4, 5]
    for r, (old, new) in enumerate(zip(before, after, strict=True)):
        for c, (a, b) in enumerate(zip(old, new, strict=True)):
            if r and c in places and holes[r - 1, places.index(c)]:
                assert float(b) == pytest.approx(X[r - 1, places.index(c)], rel=0.05)
            else:
                assert a == b


def test_json_keep_and_gzip(table):
    answer = json.loads(invoke("table.csv", "--keep", "a", "--rank", "1", "-o", "full.csv.gz", "--json").stdout)
    assert answer["filled"] == table[1][:, 1:].sum()
    assert answer["columns"] == ["b", "c", "d"]
    assert Path("full.csv.gz").read_bytes()[:2] == b"\x1f\x8b"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a,b\n", "nothing below"),
        ("a,b\nx,y\n", "no column of numbers"),
        ("1,2\n3,4\n", "must hold names"),
        ("a,b\n1,2\n3\n", "Line 3 of bad.csv has 1 fields"),
        ("", "is empty"),
    ],
)
def test_mistakes_get_one_sentence(table, content, message):
    with open("bad.csv", "w") as file:
        file.write(content)
    there = sorted(os.listdir("."))
    done = invoke("bad.csv", "-o", "full.csv", code=1)
    assert message in done.stderr
    assert sorted(os.listdir(".")) == there


def test_other_mistakes(table):
    assert "no column 'z' to keep" in invoke("table.csv", "--keep", "z", "-o", "full.csv", code=1).stderr
    assert "nor auto" in invoke("table.csv", "--rank", "-1", "-o", "full.csv", code=2).stderr
    assert "nor auto" in invoke("table.csv", "--rank", "x", "-o", "full.csv", code=2).stderr
    assert "already exists" in invoke("table.csv", "-o", "table.csv", code=1).stderr


def test_cells_that_spreadsheets_would_run_can_be_made_text(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.csv").write_text("=name,a,b\n=1+1,1,2\n@x,-3,4\n-2,5,\n+49 1,6,7\n")
    invoke("bad.csv", "-o", "plain.csv")
    assert (tmp_path / "plain.csv").read_text().startswith("=name,a,b\n=1+1,1,2\n@x,-3,4\n-2,5,")
    invoke("bad.csv", "--safe-cells", "-o", "safe.csv")
    lines = (tmp_path / "safe.csv").read_text().splitlines()
    assert lines[:3] == ["'=name,a,b", "'=1+1,1,2", "'@x,-3,4"]
    assert lines[3].startswith("-2,5,")
    assert lines[4] == "'+49 1,6,7"
