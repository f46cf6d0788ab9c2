"""What every executor obeys: on this machine, and on threads that stand for other machines."""

import operator
import time

import numpy as np
import pytest
from tests.executors.threads import Threads

import bifactor as bf
from bifactor.errors import CheckError, LostError
from bifactor.executors import BlockResult, Executor, PassResult, Streamed
from bifactor.executors.executor import add_sums, value_of
from bifactor.running.record import RunRecord
from bifactor.testing import check_executor


@pytest.fixture(params=[np.float32, np.float64])
def store(tmp_path, monkeypatch, request):
    monkeypatch.setattr("bifactor.data.store.partition.SMALL", 200)
    rng = np.random.default_rng(0)
    rows, cols = rng.integers(0, 120, 1500), rng.integers(0, 40, 1500)
    U, V = rng.standard_normal((120, 2)), rng.standard_normal((40, 2))
    y = np.sum(U[rows] * V[cols], axis=1) + 0.1 * rng.standard_normal(1500)
    return bf.data.partition((rows, cols, y), tmp_path / "blocks", dtype=request.param)


def test_one_block_after_the_other(store):
    check_executor(Streamed("1MB"), store, [Streamed(1)])


def test_threads(store):
    executor = Threads(2)
    check_executor(executor, store, [Threads(1), Threads(3)], lambda: executor.lose("thread 1"))


@pytest.mark.parametrize(("loss", "most"), [("squared", 6), (bf.losses.Huber(1.0), 8)])
def test_an_iteration_waits_for_workers_six_times(store, monkeypatch, loss, most):
    """Inner products that are needed together come together, and those of the terms come with a pass."""
    asked, marks, values = [], [], Threads.values
    monkeypatch.setattr(Threads, "values", lambda self, futures: asked.append(futures) or values(self, futures))
    problem = bf.Objective(bf.operators.Partitioned(loss, store, Threads(2)), bf.penalties.Ridge(1.0))
    solver, start = bf.solvers.PCG(), bf.inits.Spectral()(problem, 2, np.random.default_rng(0))
    run = RunRecord.begin(solver.init(problem, start, 2), 0.0)
    for _ in range(6):
        assert run.advance(solver.step(problem, run.state), problem.scale, 0.0)
        marks.append(len(asked))
    assert min(np.diff(marks)) == most  # a search by passes may need more


def test_workers_that_do_nothing_are_lost(store, monkeypatch):
    monkeypatch.setattr("bifactor.executors.remote.GLANCE", 0.01)

    def nap(opened, tall, shared):
        time.sleep(0.3)
        return BlockResult(sums=(1,))

    with pytest.raises(LostError, match=r"finished no task for 0\.05 s"):
        Threads(1, patience=0.05).run_pass(store.parts, operator.is_, nap)


class Faulty(Executor):
    """One block after the other; each fault breaks one law."""

    def __init__(self, fault=None):
        self.fault = fault

    def run_pass(self, parts, opening, task, tall=(), shared=(), settings=()):
        shared, found = tuple(map(value_of, shared)), []
        for part in parts:
            rows = slice(part.start, part.stop) if self.fault != "cut" else slice(0, part.stop - part.start)
            try:
                found.append(task(opening(part, part.load()), tuple(a[rows] for a in tall), shared, *settings))
            except Exception as error:
                if self.fault == "errors":
                    raise RuntimeError("a block failed") from error
                raise
        if self.fault == "overwrites":
            for a in tall:
                a[:] = 0
        sums = found[0].sums
        for one in found[2:] if self.fault == "sums" else found[1:]:
            sums = add_sums(sums, one.sums)
        columns = zip(*(one.tall for one in found), strict=True)
        each = [one.each for one in found][:: -1 if self.fault == "order" else 1]
        return PassResult(tuple(np.concatenate(column) for column in columns), sums, each)


@pytest.mark.parametrize(
    ("fault", "law"),
    [
        ("cut", "tall arrays are cut"),
        ("sums", "sums are those"),
        ("order", "order of the blocks"),
        ("errors", "raised as it is, but there was RuntimeError"),
        ("overwrites", "does not change its arguments"),
    ],
)
def test_a_broken_law_is_named(store, fault, law):
    check_executor(Faulty(), store)
    with pytest.raises(CheckError, match=law):
        check_executor(Faulty(fault), store)
