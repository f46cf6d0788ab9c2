"""A Dask cluster finds what this machine finds, whoever of its workers dies."""

import logging
import operator
import os
import pickle
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import bifactor as bf
from bifactor.errors import InputError, LostError
from bifactor.executors import BlockResult, remote
from bifactor.losses import Huber
from bifactor.operators import Partitioned
from bifactor.testing import check_executor

distributed = pytest.importorskip("distributed", reason="Dask is not installed")

pytestmark = pytest.mark.filterwarnings("default")  # of the cluster's own


@pytest.fixture(scope="module", autouse=True)
def silent():
    logging.getLogger("distributed").setLevel(logging.CRITICAL)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bifactor.data.store.partition.SMALL", 5000)
        rng = np.random.default_rng(0)
        rows, cols = rng.integers(0, 900, 40_000), rng.integers(0, 200, 40_000)
        U, V = rng.standard_normal((900, 3)), rng.standard_normal((200, 3))
        y = (np.sum(U[rows] * V[cols], axis=1) + 0.1 * rng.standard_normal(rows.size)).astype(np.float32)
        return bf.data.partition((rows, cols, y), tmp_path_factory.mktemp("dask") / "blocks")


def cluster(workers, threads=1):
    settings = {"n_workers": workers, "threads_per_worker": threads, "host": "127.0.0.1"}
    return distributed.LocalCluster(**settings, dashboard_address=":0")


def fitted(store, client, loss="squared", callback=None, iterations=5, offsets=False, **asked):
    f = Partitioned(loss, store, bf.executors.Dask(client, patience=60))
    problem = bf.Objective(f, bf.penalties.Ridge(1.0), offsets=offsets)
    asked |= {"max_iter": iterations, "checkpoint_every": 4, "callback": callback, "tol": 0}
    return bf.solve(problem, 3, bf.solvers.PCG(), rng=0, **asked)


@pytest.fixture(scope="module")
def two():
    with cluster(2) as workers, distributed.Client(workers) as client:
        yield client


@pytest.mark.parametrize(("loss", "offsets"), [("squared", True), (Huber(1.0), False)])
def test_a_cluster_finds_what_this_machine_finds(store, two, loss, offsets):
    elsewhere = fitted(store, two, loss, offsets=offsets)
    here = bf.Objective(Partitioned(loss, store), bf.penalties.Ridge(1.0), offsets=offsets)
    known = bf.solve(here, 3, bf.solvers.PCG(), rng=0, max_iter=5, tol=0)
    assert isinstance(elsewhere.U, np.ndarray)
    np.testing.assert_allclose(elsewhere.objective, known.objective, rtol=1e-4)
    np.testing.assert_allclose(elsewhere.matrix(), known.matrix(), atol=2e-2)


def test_one_worker_two_workers_and_one_that_dies_have_the_same_bits(store, two):
    def kill():
        os.kill(min(two.run(os.getpid).values()), signal.SIGKILL)

    with cluster(1) as worker, distributed.Client(worker) as client:
        both, alone = (bf.executors.Dask(one, patience=60) for one in (two, client))
        check_executor(both, store, [alone], kill)


def test_blocks_that_share_a_task_are_what_they_were(store, two, monkeypatch):
    apart = fitted(store, two, offsets=True)
    monkeypatch.setattr("bifactor.executors.remote.GROUPS", 3)
    together = fitted(store, two, offsets=True)
    np.testing.assert_allclose(together.objective, apart.objective, rtol=1e-5)
    np.testing.assert_allclose(together.matrix(), apart.matrix(), atol=2e-2)


@pytest.mark.parametrize(("noise", "offsets"), [("columns", True), ("both", False)])
def test_a_cluster_finds_the_posterior_that_this_machine_finds(store, two, noise, offsets):
    solver, fits = bf.solvers.Variational(noise, tol=0), []
    for executor in (None, bf.executors.Dask(two, patience=60)):
        problem = bf.Objective(Partitioned("squared", store, executor), offsets=offsets)
        fits.append(bf.solve(problem, 3, solver, rng=0, max_iter=6, tol=0, checkpoint_every=4))
    here, there = fits
    assert isinstance(there.U, np.ndarray)
    np.testing.assert_allclose(there.objective, here.objective, rtol=1e-6)
    np.testing.assert_allclose(there.matrix(), here.matrix(), atol=1e-3)
    i, j = np.array([1, 888, 300]), np.array([5, 6, 7])
    np.testing.assert_allclose(there.posterior.std(i, j), here.posterior.std(i, j), rtol=1e-3)


DRIVER = """
import os, sys
import bifactor as bf

def die(iteration, state):
    if iteration == 5:
        os.kill(os.getpid(), 9)

address, folder, checkpoint = sys.argv[1:]
f = bf.operators.Partitioned("squared", bf.data.BlockStore.open(folder), bf.executors.Dask(address))
problem, solver = bf.Objective(f, bf.penalties.Ridge(1.0)), bf.solvers.PCG()
bf.solve(problem, 3, solver, rng=0, max_iter=7, checkpoint_every=4, callback=die, tol=0, checkpoint=checkpoint)
"""


def test_a_driver_that_dies_leaves_a_run_to_go_on_with_and_nothing_else(store, two, tmp_path):
    scheduler, file = two.cluster.scheduler, tmp_path / "run.checkpoint"
    tasks, clients = len(scheduler.tasks), len(scheduler.clients)
    command = [sys.executable, "-c", DRIVER, scheduler.address, str(store.folder), str(file)]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    ends = time.monotonic() + 10
    while (len(scheduler.tasks) > tasks or len(scheduler.clients) > clients) and time.monotonic() < ends:
        time.sleep(0.1)
    assert len(scheduler.tasks) <= tasks
    assert len(scheduler.clients) == clients
    seen = []
    resumed = fitted(store, two, iterations=7, checkpoint=file, callback=lambda k, state: seen.append(k))
    whole = fitted(store, two, iterations=7)
    assert seen == [5, 6, 7]
    assert np.array_equal(resumed.U, whole.U)
    assert np.array_equal(resumed.V, whole.V)


def test_a_pass_may_take_long_as_long_as_somebody_is_alive(store, two, monkeypatch):
    monkeypatch.setattr("bifactor.executors.remote.GLANCE", 0.1)
    executor = bf.executors.Dask(two, patience=0.8)

    def nap(opened, tall, shared, seconds):
        time.sleep(seconds)
        return BlockResult(sums=(1,))

    bf.executors.Dask(two).run_pass(store.parts, operator.is_, nap, settings=(0.0,))  # workers import what they need
    began = time.monotonic()
    assert executor.run_pass(store.parts, operator.is_, nap, settings=(0.4,)).sums == (len(store.parts),)
    assert time.monotonic() - began > executor.patience
    with pytest.raises(LostError, match=r"finished no task for 0\.8 s"):
        executor.run_pass(store.parts, operator.is_, nap, settings=(2.0,))


def test_arrays_that_were_sent_are_aligned():
    sent, own = np.frombuffer(bytes(18), np.uint8)[2:].view(np.float32), np.zeros(4, np.float32)
    assert not sent.flags.aligned
    [(first, second)], last = remote.aligned(([(sent, own)], 1.0))
    assert first.flags.aligned
    assert np.array_equal(first, sent)
    assert second is own
    assert last == 1.0


def test_tasks_of_a_worker_have_no_more_threads_than_it_has(store):
    def timed(opened, tall, shared):
        began = time.monotonic()
        time.sleep(0.05)
        return BlockResult(each=(began, time.monotonic()))

    def most_at_once(threads):
        times = bf.executors.Dask(client, threads=threads).run_pass(store.parts, operator.is_, timed).each
        return max(sum(a <= began < b for a, b in times) for began, _ in times)

    with cluster(1, threads=2) as one, distributed.Client(one) as client:
        assert [most_at_once(threads) for threads in (1, 2, 3)] == [2, 1, 1]


def test_an_error_in_a_block_is_told_as_it_is(store, two):
    with pytest.raises(InputError, match="Logistic"):
        fitted(store, two, "logistic")


def test_nobody_to_wait_for(store):
    with cluster(0) as nobody, distributed.Client(nobody) as client:
        f = Partitioned("squared", store, bf.executors.Dask(client, threads=1, patience=0.5))
        with pytest.raises(LostError, match="no workers for"):
            f.value(bf.Objective(f).zero(2))


def test_mistakes(monkeypatch):
    monkeypatch.setattr("bifactor.executors.dask.CONNECT", 1.0)
    with pytest.raises(InputError, match="scheduler"):
        bf.executors.Dask(7)
    with pytest.raises(InputError, match="no Dask scheduler"):
        bf.executors.Dask("tcp://127.0.0.1:9")


def test_a_cluster_without_workers_is_told():
    none = r"no workers for 0\.5 s"
    with cluster(0) as empty, distributed.Client(empty) as client, pytest.raises(LostError, match=none):
        bf.executors.Dask(client, patience=0.5)


def test_a_connection_is_not_pickled(two):
    with pytest.raises(InputError, match="not pickled"):
        pickle.dumps(bf.executors.Dask(two))
