"""Blocks on a Dask cluster of this machine: one to three workers, traffic, and workers and drivers that are killed.

BIFACTOR_OBSERVATIONS is the number of observations (20 million by default), BIFACTOR_KILLS that of runs that lose a
worker, and of runs that lose their driver.
"""

import logging
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

import bifactor as bf
from benchmarks.harness import planted
from benchmarks.harness.rows import Absent, Row, row
from benchmarks.scale.scale import SIZE, shape

KILLS = int(os.environ.get("BIFACTOR_KILLS", "10"))
ITERATIONS, EVERY = 12, 5


def clustered(workers: int) -> Any:
    try:
        from distributed import LocalCluster
    except ImportError:
        raise Absent("Dask is not installed. Run: make bench.", "distributed") from None
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    return LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0", host="127.0.0.1")


def fitted(store: bf.data.BlockStore, client: Any, callback: Any = None, **asked: Any) -> bf.Result:
    f = bf.operators.Partitioned("squared", store, bf.executors.Dask(client, patience=60))
    problem = bf.Objective(f, bf.penalties.Ridge(2.0))
    asked = {"max_iter": ITERATIONS, "checkpoint_every": EVERY, "callback": callback, "tol": 0, **asked}
    return bf.solve(problem, planted.RANK, bf.solvers.PCG(), bf.inits.Random(), rng=0, **asked)


def spent(dask_worker: Any) -> tuple[int, float]:
    """Bytes that a worker has sent to others and to the caller, and its processor seconds."""
    return int(dask_worker.transfer_outgoing_bytes_total), time.process_time()


def speeds(store: bf.data.BlockStore) -> tuple[list[Row], bf.Result]:
    from distributed import Client

    found, known = [], None
    for workers in (1, 2, 3):
        with clustered(workers) as cluster, Client(cluster) as client:
            marks: list[tuple[float, ...]] = []

            def note(iteration: int, state: Any, client: Any = client, marks: Any = marks) -> None:
                of_workers = np.sum([*client.run(spent).values()], axis=0)
                marks.append((time.perf_counter(), *of_workers, time.process_time()))

            result = fitted(store, client, note)
        seconds, got, of_workers, here = np.median(np.diff(marks, axis=0), axis=0).tolist()
        factor = min(store.shape) * planted.RANK * 4  # which the caller sends once
        numbers = {"seconds": seconds, "bytes": got + factor, "formula": 2 * factor * workers + 64_000}
        numbers |= {"cpu_seconds_of_workers": of_workers, "cpu_seconds_of_caller_and_scheduler": here}
        known = known or result
        numbers["same_bits"] = np.array_equal(result.U, known.U) and np.array_equal(result.V, known.V)
        found.append(row("an iteration", f"{store.size:,} observations", f"{workers} workers", **numbers))
    return found, result


def kills(store: bf.data.BlockStore, known: bf.Result) -> list[Row]:
    """A worker is killed at a random moment, every other time for good; runs that end before it are made again."""
    from distributed import Client

    chance, found = random.Random(0), []
    with clustered(2) as cluster, Client(cluster) as client:
        started = time.perf_counter()
        fitted(store, client)
        usual = time.perf_counter() - started
    while len(found) < KILLS:
        k = len(found)
        with clustered(2) as cluster, Client(cluster) as client:
            pids = sorted(client.run(os.getpid).values())
            if k % 2:
                for nanny in cluster.workers.values():
                    nanny.auto_restart = False
            moment = chance.uniform(0.05, 0.95) * usual
            timer = threading.Timer(moment, os.kill, (chance.choice(pids), signal.SIGKILL))
            timer.start()
            started = time.perf_counter()
            result = fitted(store, client)
            seconds = time.perf_counter() - started
            timer.cancel()
        if seconds <= moment:
            continue
        same = np.array_equal(result.U, known.U) and np.array_equal(result.V, known.V)
        after = "restarted" if k % 2 == 0 else "not restarted"
        numbers = {"same_bits": same, "seconds": seconds, "usual_seconds": usual, "moment": moment}
        found.append(row("a run", f"{store.size:,} observations", f"worker killed, {after}", draw=k, **numbers))
    return found


def drive(address: str, folder: str, checkpoint: str, every: str, answer: str) -> None:
    """What a driver runs, in a process of its own."""
    result = fitted(bf.data.BlockStore.open(folder), address, checkpoint=checkpoint, checkpoint_every=int(every))
    np.savez(answer, U=result.U, V=result.V)


def drivers(store: bf.data.BlockStore, known: bf.Result, scratch: Path) -> list[Row]:
    """The calling process is killed at a random moment and the same call made again; scheduler and workers live on."""
    code = "import sys; from benchmarks.scale.cluster import drive; drive(*sys.argv[1:])"
    chance, found = random.Random(1), []
    with clustered(2) as cluster:

        def started(k: int, every: int) -> subprocess.Popen:
            names = (scratch / f"{k}.checkpoint", every, scratch / f"{k}.npz")
            command = [sys.executable, "-c", code, cluster.scheduler_address, store.folder, *names]
            return subprocess.Popen([str(part) for part in command])

        begun = time.perf_counter()
        started(-1, EVERY).wait()
        usual = time.perf_counter() - begun
        for k in range(KILLS):
            every = 1 if k % 2 else EVERY  # with 1, much of the time is spent writing
            driver, moment = started(k, every), chance.uniform(0.1, 0.98) * usual
            time.sleep(moment)
            driver.kill()
            early = driver.wait() == -signal.SIGKILL
            begun = time.perf_counter()
            started(k, every).wait()
            seconds = time.perf_counter() - begun
            left = left_over(cluster)
            with np.load(scratch / f"{k}.npz") as answer:
                same = np.array_equal(answer["U"], known.U) and np.array_equal(answer["V"], known.V)
            numbers = {"same_bits": same, "seconds": seconds, "usual_seconds": usual, "moment": moment}
            numbers |= {"tasks_left": left, "killed": early}
            found.append(row("a run", f"{store.size:,} observations", "driver killed", draw=k, **numbers))
    return found


def left_over(cluster: Any, patience: float = 20.0) -> int:
    """Tasks that a scheduler remembers of clients that are gone, after some seconds to forget them."""
    ends = time.perf_counter() + patience
    while cluster.scheduler.tasks and time.perf_counter() < ends:
        time.sleep(0.2)
    return len(cluster.scheduler.tasks)


def run() -> list[Row]:
    with tempfile.TemporaryDirectory(dir=os.environ.get("BIFACTOR_SCRATCH")) as scratch:
        planted.write(Path(scratch) / "source", SIZE, shape())
        store = bf.data.partition(Path(scratch) / "source", Path(scratch) / "blocks")
        found, known = speeds(store)
        return [*found, *kills(store, known), *drivers(store, known, Path(scratch))]
