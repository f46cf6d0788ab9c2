"""Cells in processes."""

import os
from dataclasses import replace

import pytest

from bifactor.errors import BifactorError
from bifactor_reproduce.harness.runner import THREADS, Task, run_all
from bifactor_reproduce.harness.sources import Sources
from bifactor_reproduce.harness.store import Store
from bifactor_reproduce.noiselets.cells import SensingCell
from bifactor_reproduce.noiselets.sensing import Sensing

CELL = SensingCell((16, 16), 2, 4, "PCG", "random", 1, 10, 1e-6, 60.0)


def numbers(outcome):
    """An outcome without what a clock says."""
    return {
        name: {key: value for key, value in part.items() if key != "seconds"} if name == "curve" else part
        for name, part in outcome.items()
        if "seconds" not in name
    }


def test_outcomes_do_not_depend_on_the_number_of_processes(tmp_path):
    experiment = Sensing()
    cells = [replace(CELL, seed=seed, method=method) for seed in (1, 2) for method in ("PCG", "SVP")]
    before = {name: os.environ.get(name) for name in THREADS}
    for jobs in (1, 3):
        ended = []
        failures = run_all(
            [Task(experiment, cell) for cell in cells],
            Sources(),
            Store(tmp_path / str(jobs)),
            jobs,
            lambda running, task, ended=ended: ended.append(task) if task else None,
        )
        assert failures == []
        assert {task.cell for task in ended} == set(cells)
    assert {name: os.environ.get(name) for name in THREADS} == before
    for cell in cells:
        one, three = (Store(tmp_path / jobs).read(experiment, cell) for jobs in ("1", "3"))
        assert numbers(one) == numbers(three)
        assert one["processor_seconds"] > 0


def test_a_cell_that_fails_does_not_stop_the_others(tmp_path):
    experiment, store = Sensing(), Store(tmp_path)
    bad = replace(CELL, method="no such thing")
    failures = run_all([Task(experiment, bad), Task(experiment, CELL)], Sources(), store, 1, lambda *told: None)
    assert [failure.task.cell for failure in failures] == [bad]
    assert "KeyError" in failures[0].reason
    assert store.read(experiment, CELL) is not None
    assert store.read(experiment, bad) is None


def test_a_process_that_is_killed_is_told(tmp_path):
    import multiprocessing

    others = set(multiprocessing.active_children())  # of tests before this one

    def kill(running, ended):
        for process in set(multiprocessing.active_children()) - others:
            process.kill()

    with pytest.raises(BifactorError, match="fewer jobs"):
        run_all([Task(Sensing(), CELL)], Sources(), Store(tmp_path), 1, kill)


def test_ctrl_c_is_raised_and_leaves_no_processes(tmp_path):
    import multiprocessing

    others = set(multiprocessing.active_children())  # of tests before this one

    def stop(running, ended):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_all([Task(Sensing(), replace(CELL, seed=seed)) for seed in range(4)], Sources(), Store(tmp_path), 2, stop)
    assert set(multiprocessing.active_children()) <= others
