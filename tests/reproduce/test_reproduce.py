"""From names to a report, with kills on the way."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from bifactor.cli.main import main
from bifactor.errors import InputError
from bifactor_reproduce.harness.experiment import SCALES
from bifactor_reproduce.harness.sources import VARIABLE, Sources
from bifactor_reproduce.noiselets.sensing import Case, Configuration, Sensing
from bifactor_reproduce.plan import CELLS, EXPERIMENTS, Plan, require_folder

TINY = Configuration((Case((16, 16), 1, (1, 2)),), ratios=(6,), max_iter=20)

DRIVER = """
from bifactor.cli.main import main
from bifactor_reproduce.noiselets.sensing import Case, Configuration, Sensing

if __name__ == "__main__":
    Sensing.configurations = {"quick": Configuration((Case((64, 64), 3, (1, 2)),), ratios=(6,), max_iter=300)}
    main(["reproduce", "sensing", "--jobs", "2", "-o", "report"])
"""


@pytest.fixture
def workplace(tmp_path, monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setattr(Sensing, "configurations", {"quick": TINY, "paper": TINY})
    return tmp_path / "work"


def call(*words):
    return CliRunner().invoke(main, ["reproduce", *words])


def outcomes(folder: Path) -> dict[str, object]:
    """All that was kept, without what a clock says."""
    found = {}
    for path in sorted((folder / CELLS).rglob("*.json")):
        outcome = json.loads(path.read_text())["outcome"]
        curve = {name: values for name, values in outcome.pop("curve").items() if name != "seconds"}
        found[path.name] = (curve, {n: v for n, v in outcome.items() if "seconds" not in n})
    return found


def test_a_report_is_written_and_nothing_computed_twice(workplace):
    first = call("sensing", "--jobs", "2")
    assert first.exit_code == 0, first.output
    folder = workplace / "report"
    page = (folder / "index.html").read_text(encoding="utf-8")
    assert "Affine rank minimisation" in page
    assert (folder / "tables" / "sensing-table-1.csv").is_file()
    assert (folder / "figures" / "sensing-figure-3-row-1.svg").is_file()
    assert (folder / "verdicts.csv").is_file()
    times = {path: path.stat().st_mtime_ns for path in (folder / CELLS).rglob("*.json")}
    assert len(times) == len(Sensing().cells("quick", Sources()))
    again = call("sensing", "--json")
    assert again.exit_code == 0
    assert times == {path: path.stat().st_mtime_ns for path in (folder / CELLS).rglob("*.json")}
    told = json.loads(again.stdout)
    assert told["failed"] == []
    assert {v["holds"] for v in told["experiments"][0]["verdicts"]} <= {True, False, None}


def test_what_is_missing_or_damaged_is_computed(workplace):
    assert call("sensing").exit_code == 0
    before = outcomes(workplace / "report")
    kept = sorted((workplace / "report" / CELLS).rglob("*.json"))
    kept[0].unlink()
    kept[1].write_text("{")
    assert call("sensing").exit_code == 0
    assert outcomes(workplace / "report") == before


def test_a_cell_that_fails_is_told_and_the_rest_shown(workplace, monkeypatch):
    good = Sensing().cells("quick", Sources())
    bad = [*good, replace(good[0], method="no such thing")]
    monkeypatch.setattr(Sensing, "cells", lambda self, scale, sources: bad)
    answer = call("sensing")
    assert answer.exit_code == 1
    assert "no such thing" in answer.output
    assert "no such thing" in (workplace / "report" / "index.html").read_text(encoding="utf-8")


def test_experiments_without_their_data_say_so(workplace):
    plan = Plan(tuple(EXPERIMENTS), "quick", workplace / "report", Sources())
    names = {task.experiment.name for task in plan.tasks}
    assert names == set(EXPERIMENTS) - {"images", "movielens"}
    for name in ("images", "movielens"):
        answer = call(name)
        assert answer.exit_code == 1
        assert VARIABLE in answer.output
        assert not (workplace / "report").exists()


@pytest.mark.parametrize("words", [("nonsense",), ("sensing", "nonsense")])
def test_unknown_names_are_refused(workplace, words):
    answer = call(*words)
    assert answer.exit_code == 1
    assert "sensing" in answer.output
    assert not (workplace / "report").exists()


def test_a_folder_of_somebody_is_left_alone(workplace):
    (workplace / "mine").mkdir()
    (workplace / "mine" / "index.html").write_text("mine")
    answer = call("sensing", "-o", "mine")
    assert answer.exit_code == 1
    assert (workplace / "mine" / "index.html").read_text() == "mine"
    (workplace / "file").write_text("")
    with pytest.raises(InputError, match="is a file"):
        require_folder(workplace / "file")
    answer = call("sensing", "--output", "file/report")
    assert answer.exit_code == 1
    assert "cannot be made" in answer.output


def test_wrong_options_are_refused(workplace):
    assert call("sensing", "--jobs", "0").exit_code != 0
    assert call("sensing", "--scale", "huge").exit_code != 0
    assert call("sensing", "--photos", "nowhere").exit_code == 1
    assert not (workplace / "report").exists()


def test_the_list_names_all(workplace):
    answer = call("list")
    assert answer.exit_code == 0
    assert all(name in answer.output for name in EXPERIMENTS)
    told = json.loads(call("list", "--json").stdout)
    assert [e["name"] for e in told["experiments"]] == list(EXPERIMENTS)


@pytest.mark.parametrize("experiment", EXPERIMENTS.values(), ids=EXPERIMENTS.keys())
def test_configurations_are_frozen_and_there_for_both_scales(experiment):
    for scale in SCALES:
        configuration = experiment.configurations[scale]
        name = next(iter(vars(configuration)))
        with pytest.raises(AttributeError):
            setattr(configuration, name, None)


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX")
def test_a_run_killed_at_random_ends_with_the_same_numbers(tmp_path):
    (tmp_path / "driver.py").write_text(DRIVER)
    quiet = {"cwd": tmp_path, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    subprocess.run([sys.executable, "driver.py"], check=True, timeout=240, **quiet)
    (tmp_path / "report").rename(tmp_path / "whole")
    moments = random.Random(7)
    for _ in range(2):
        process = subprocess.Popen([sys.executable, "driver.py"], start_new_session=True, **quiet)
        time.sleep(moments.uniform(2, 5))
        os.kill(process.pid, signal.SIGKILL)  # its own processes must find out by themselves
        process.wait()
    subprocess.run([sys.executable, "driver.py"], check=True, timeout=240, **quiet)
    assert outcomes(tmp_path / "report") == outcomes(tmp_path / "whole")
