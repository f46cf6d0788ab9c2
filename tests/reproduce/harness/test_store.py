"""Outcomes on disk."""

import json
from dataclasses import dataclass, replace

import pytest

from bifactor.errors import FileError
from bifactor_reproduce.harness.experiment import key
from bifactor_reproduce.harness.store import Store
from bifactor_reproduce.noiselets.cells import SensingCell
from bifactor_reproduce.noiselets.sensing import Sensing

CELL = SensingCell((16, 16), 2, 4, "PCG", "random", 1, 10, 1e-6, 60.0)
OUTCOME = {"error": 1.25e-7, "curve": {"iteration": [1.0, 2.0]}, "stopped": "converged"}


@dataclass(frozen=True)
class Other:
    x: float


def test_what_is_written_is_read(tmp_path):
    store = Store(tmp_path / "cells")
    assert store.read(Sensing(), CELL) is None
    store.write(Sensing(), CELL, OUTCOME)
    assert store.read(Sensing(), CELL) == OUTCOME
    assert [path.suffix for path in tmp_path.rglob("*") if path.is_file()] == [".json"]


@pytest.mark.parametrize(
    "change", [{"seed": 2}, {"tol": 1e-7}, {"shape": (16, 32)}, {"method": "SVP"}, {"budget": 1.0}]
)
def test_every_setting_counts(tmp_path, change):
    store = Store(tmp_path)
    store.write(Sensing(), CELL, OUTCOME)
    assert store.read(Sensing(), replace(CELL, **change)) is None


def test_a_new_revision_is_computed_anew(tmp_path, monkeypatch):
    store = Store(tmp_path)
    store.write(Sensing(), CELL, OUTCOME)
    monkeypatch.setattr(Sensing, "revision", Sensing.revision + 1)
    assert store.read(Sensing(), CELL) is None


def test_keys_are_the_same_in_every_process():
    assert key(Sensing(), Other(0.1)) == key(Sensing(), Other(0.1))
    assert key(Sensing(), Other(0.1)) != key(Sensing(), Other(0.2))
    assert len(key(Sensing(), CELL)) == 20


@pytest.mark.parametrize("damage", ["", "{", '{"cell": {}}', '{"outcome": 3}', "[]", "null", '"x"', "\xff\xfe"])
def test_a_damaged_file_is_as_good_as_none(tmp_path, damage):
    store = Store(tmp_path)
    store.write(Sensing(), CELL, OUTCOME)
    store.path(Sensing(), CELL).write_bytes(damage.encode("latin-1"))
    assert store.read(Sensing(), CELL) is None
    store.write(Sensing(), CELL, OUTCOME)
    assert store.read(Sensing(), CELL) == OUTCOME


def test_a_truncated_file_is_as_good_as_none(tmp_path):
    store = Store(tmp_path)
    store.write(Sensing(), CELL, OUTCOME)
    path = store.path(Sensing(), CELL)
    path.write_bytes(path.read_bytes()[:-10])
    assert store.read(Sensing(), CELL) is None


def test_the_file_tells_what_it_is_about(tmp_path):
    store = Store(tmp_path)
    store.write(Sensing(), CELL, OUTCOME)
    assert json.loads(store.path(Sensing(), CELL).read_text())["cell"]["method"] == "PCG"


def test_numbers_that_are_none_are_refused(tmp_path):
    store = Store(tmp_path)
    with pytest.raises(ValueError, match="JSON"):
        store.write(Sensing(), CELL, {"error": float("nan")})
    assert store.read(Sensing(), CELL) is None


def test_a_folder_that_cannot_be_written_is_told(tmp_path):
    (tmp_path / "sensing").write_text("in the way")
    with pytest.raises((FileError, OSError)):
        Store(tmp_path).write(Sensing(), CELL, OUTCOME)
