"""`bifactor doctor`, as a user meets it."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner

import bifactor.cli.doctor
from bifactor.cli.main import main
from bifactor.kernels.threading import VARIABLES, _default


@pytest.fixture(autouse=True)
def short(monkeypatch):
    monkeypatch.setattr(bifactor.cli.doctor, "SECONDS", 0.1)


def invoke(*arguments, code=0):
    done = CliRunner().invoke(main, ["doctor", *arguments])
    assert done.exit_code == code, done.output
    return done


def test_all_is_well_here():
    said = invoke().stdout
    for word in ("python", "numpy", "numba", "BLAS", "cores", "million entries per second", "All is well"):
        assert word in said


def test_json():
    answer = json.loads(invoke("--json").stdout)
    assert answer["ok"]
    assert answer["versions"]["numpy"] == np.__version__
    assert len(answer["checks"]) == 3
    assert answer["checks"][-1]["million_entries_per_second"] > 1
    assert answer["machine"]["usable"] >= 1
    assert answer["blas"][0]["threads"] >= 1


def test_wrong_kernels_are_found(monkeypatch):
    # Wrong for the doctor alone: a fit with such kernels breaks laws that the whole suite watches over.
    right = bifactor.cli.doctor._entries(np.inf)
    wrong = SimpleNamespace(**{**vars(right), "dot": lambda layout, P, Q: np.zeros(layout.size)})
    plain = bifactor.cli.doctor._entries
    monkeypatch.setattr(bifactor.cli.doctor, "_entries", lambda size: wrong if size else plain(size))
    done = invoke(code=1)
    assert "FAILED" in done.output
    assert "Delete numba's cache" in done.output
    assert "Something is wrong" in done.output


def test_a_problem_that_is_not_solved_is_found(monkeypatch):
    plain = bifactor.cli.doctor.solve
    monkeypatch.setattr(bifactor.cli.doctor, "solve", lambda *a, **k: plain(*a, **{**k, "max_iter": 2}))
    answer = json.loads(invoke("--json", code=1).stdout)
    assert [check["ok"] for check in answer["checks"]] == [True, False, True]
    assert "raise max_iter" in answer["advice"][0]


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setattr(bifactor.cli.doctor, "NEEDED", (*bifactor.cli.doctor.NEEDED, "no-such-package"))
    assert "pip install no-such-package" in invoke(code=1).output


def test_a_cache_that_cannot_be_written_is_slow_but_not_wrong(monkeypatch):
    monkeypatch.setattr(bifactor.cli.doctor, "_writable", lambda folder: False)
    assert "NUMBA_CACHE_DIR" in invoke().output


@pytest.mark.parametrize("name", VARIABLES)
@pytest.mark.parametrize(("count", "advice"), [("1", "1 of 4 cores are used. Unset"), ("9", "9 threads share 4 cores")])
def test_the_variable_that_sets_threads_is_named(name, count, advice, monkeypatch):
    for variable in VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv(name, count)
    monkeypatch.setattr(bifactor.cli.doctor, "usable_cores", lambda: 4)
    _default.cache_clear()
    said = " ".join(invoke("--json").stdout.split())
    _default.cache_clear()
    assert advice in said
    assert name in said
