"""`bifactor impute`, as a user meets it."""

import csv
import json
import os
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from bifactor.cli.main import main
from bifactor.models.factor_analysis.updates import BlockedTable


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
    assert "kept        id, empty (60 empty)" in said
    assert "left empty  60 cells" in said
    assert f"{holes.sum()} of 300 cells in 5 columns" in said
    assert f"number: {holes[:, 0].sum()} filled in; hidden cells: error 0.0" in said
    before, after = (list(csv.reader(Path(name).read_text().splitlines())) for name in ("table.csv", "full.csv"))
    places = [1, 3, 4, 5]
    for r, (old, new) in enumerate(zip(before, after, strict=True)):
        for c, (a, b) in enumerate(zip(old, new, strict=True)):
            if r and c in places and holes[r - 1, places.index(c)]:
                assert float(b) == pytest.approx(X[r - 1, places.index(c)], rel=0.05)
            else:
                assert a == b


@pytest.mark.parametrize("name", ["table.csv", "table.parquet"])
def test_ctrl_c_writes_the_best_so_far(table, monkeypatch, name):
    if name.endswith("parquet"):
        pd.read_csv("table.csv").to_parquet(name)
    collect, passes = BlockedTable.collect, []

    def interrupted(*arguments):
        passes.append(arguments)
        if len(passes) == 4:
            raise KeyboardInterrupt
        return collect(*arguments)

    monkeypatch.setattr(BlockedTable, "collect", interrupted)
    output = f"full{Path(name).suffix}"
    answer = json.loads(invoke(name, "-o", output, "--json", code=130).stdout)
    assert answer["status"] == "INTERRUPTED"
    assert any("interrupted from the keyboard: the best iterate so far" in note for note in answer["notes"])
    assert answer["filled"] == table[1].sum()
    assert Path(output).exists()


def test_json_keep_and_gzip(table):
    answer = json.loads(invoke("table.csv", "--keep", "a", "--effort", "fast", "-o", "full.csv.gz", "--json").stdout)
    assert answer["filled"] == table[1][:, 1:].sum()
    assert answer["status"] == "SETTLED"
    assert answer["left"] == table[1][:, 0].sum() + 60
    told = {column["name"]: column for column in answer["columns"]}
    assert [name for name, column in told.items() if column["kind"] == "keep"] == ["id", "a", "empty"]
    assert told["a"]["left"] == table[1][:, 0].sum()
    assert told["b"]["left"] == 0
    assert told["b"]["metric"] == "rmse"
    assert told["b"]["error"] < 0.1 * told["b"]["baseline"]
    assert Path("full.csv.gz").read_bytes()[:2] == b"\x1f\x8b"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a,b\n", "no lines below"),
        ("a,b\nx,p\ny,q\nz,r\n", "no column of numbers, grades or categories"),
        ("a,a\n1,2\n", "two columns called 'a'"),
        ("1,2\n3,4\n", "not names of columns"),
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
    assert (
        "no column 'z' to be ordinal" in invoke("table.csv", "--column", "z", "ordinal", "-o", "x.csv", code=1).stderr
    )
    assert "different formats" in invoke("table.csv", "-o", "full.parquet", code=1).stderr
    assert (
        "is declared as numbers, but has 'x, y'"
        in invoke("table.csv", "--column", "kind", "number", "-o", "full.csv", code=1).stderr
    )
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


@pytest.fixture
def mixed(tmp_path, monkeypatch):
    """Words, grades, integers and flags with holes."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    u = rng.standard_normal(120)
    columns = {
        "age": [f"{round(40 + 10 * x)}" for x in u],
        "grade": [f"{g}.0" for g in np.digitize(u, [-1, 0, 1])],
        "city": ["Oslo" if x < -0.5 else "none" if x < 0.5 else "Rome" for x in u],
        "note": [f"text {k}" for k in range(120)],
    }
    holes = {name: rng.random(120) < 0.2 for name in ("age", "grade", "city")}
    lines = []
    for k in range(120):
        cells = [" NA " if name in holes and holes[name][k] else cells[k] for name, cells in columns.items()]
        lines.append(",".join(cells))
    Path("mixed.csv").write_text("\n".join([",".join(columns), *lines]) + "\n")
    return columns, holes


def test_each_kind_of_column_is_filled_in_its_own_way(mixed):
    columns, holes = mixed
    said = invoke("mixed.csv", "-o", "full.csv").stdout
    assert "kept       note" in said
    after = list(csv.DictReader(Path("full.csv").read_text().splitlines()))
    for name, hidden in holes.items():
        told = [row[name] for row in after]
        assert set(told) <= set(columns[name]) | {str(k) for k in range(100)}, name
        assert all(a == b for a, b, hole in zip(told, columns[name], hidden, strict=True) if not hole)
    right = [row["city"] == city for row, city, hole in zip(after, columns["city"], holes["city"], strict=True) if hole]
    assert np.mean(right) > 0.7


def test_parquet_says_the_same_as_csv_and_keeps_types(mixed):
    pd, pq = pytest.importorskip("pandas"), pytest.importorskip("pyarrow.parquet")
    frame = pd.read_csv("mixed.csv", skipinitialspace=True, keep_default_na=False, na_values=["NA", "NA "])
    frame["city"] = frame["city"].astype("category")
    frame["age"] = frame["age"].astype("Int64")
    frame.to_parquet("mixed.parquet")
    answer = json.loads(invoke("mixed.parquet", "-o", "full.parquet", "--json").stdout)
    plain = json.loads(invoke("mixed.csv", "-o", "full.csv", "--json").stdout)
    assert [(c["name"], c["kind"], c["filled"]) for c in answer["columns"]] == [
        (c["name"], c["kind"], c["filled"]) for c in plain["columns"]
    ]
    assert answer["columns"][0]["error"] == pytest.approx(plain["columns"][0]["error"], rel=1e-6)
    full = pd.read_parquet("full.parquet")
    assert (full.dtypes == frame.dtypes).all()
    assert not full.isna().any().any()
    assert pq.read_schema("full.parquet").equals(pq.read_schema("mixed.parquet"), check_metadata=True)


def test_times_and_decimal_commas_are_written_as_they_are_read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = ["day;at;x"]
    for k in range(40):
        day, at = f"2024-02-{k % 28 + 1:02d}", f"2024-02-{k % 28 + 1:02d} 12:{k:02d}"
        lines.append(f"{'' if k % 5 == 0 else day};{'NA' if k % 5 == 1 else at};{'' if k % 5 == 2 else k % 28},5")
    lines = [line.replace(";,5", ";") for line in lines]
    Path("times.csv").write_text("\n".join(lines) + "\n")
    said = invoke("times.csv", "-o", "full.csv").stdout
    assert re.search(r"day .*number: 8 filled in; hidden cells: error [\d.]+, mean [\d.]+ days", said)
    after = list(csv.DictReader(Path("full.csv").read_text().splitlines(), delimiter=";"))
    for k, row in enumerate(after):
        assert re.fullmatch(r"2024-02-\d\d", row["day"])
        assert re.fullmatch(r"2024-02-\d\d \d\d:\d\d", row["at"])
        assert abs(float(row["x"].replace(",", ".")) - k % 28 - 0.5) < 4
        assert abs(int(row["day"][-2:]) - k % 28 - 1) < 4
    Path("odd.csv").write_text("a,b\n" + "2024-02-30,1.5\n2024-02-01,2.5\n" * 9 + ",3.5\n")
    assert "a          boolean: 1 filled in" in invoke("odd.csv", "-o", "o.csv").stdout


def test_nan_in_parquet_is_a_hole(tmp_path, monkeypatch):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    monkeypatch.chdir(tmp_path)
    x = np.arange(40.0)
    x[::4] = np.nan
    pq.write_table(pa.table({"x": x, "y": np.arange(40.0) ** 2, "z": np.full(40, np.nan)}), "nan.parquet")
    answer = json.loads(invoke("nan.parquet", "-o", "full.parquet", "--json").stdout)
    assert [(c["kind"], c["filled"], c["left"]) for c in answer["columns"]] == [
        ("number", 10, 0),
        ("number", 0, 0),
        ("keep", 0, 40),
    ]
    assert not np.isnan(pq.read_table("full.parquet")["x"].to_numpy()).any()


def test_a_parquet_file_that_is_none(mixed):
    Path("bad.parquet").write_text("no")
    assert "is not a parquet file" in invoke("bad.parquet", "-o", "full.parquet", code=1).stderr


@pytest.mark.parametrize("name", ["people.csv", "people.parquet"])
def test_holes_of_text_that_rarely_repeats_are_mentioned(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    x = np.random.default_rng(0).standard_normal(40)
    frame = pd.DataFrame({"x": np.where(x > 1, np.nan, x), "who": [None if k == 3 else f"p{k}" for k in range(40)]})
    frame.to_csv(name, index=False) if name.endswith("csv") else frame.to_parquet(name)
    assert "rarely repeats stay empty: who (1)" in " ".join(invoke(name, "-o", f"full {name}").stdout.split())
    assert "rarely repeats" not in invoke(name, "--keep", "who", "-o", f"full {name}", "--force").stdout
