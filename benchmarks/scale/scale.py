"""Observations on disk, in blocks: throughput of partition, time and memory of a streamed fit and of one in memory.

BIFACTOR_OBSERVATIONS is their number (20 million by default, 1e9 takes 20 GB of disk), BIFACTOR_SHAPE that of rows and
columns (as 2000000x200000, which is the default for 1e9), BIFACTOR_MEMORY the budget of each step, BIFACTOR_SCRATCH the
folder.
"""

import os
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np

import bifactor as bf
from benchmarks.harness import planted
from benchmarks.harness.measure import in_fresh_process, peak_bytes
from benchmarks.harness.rows import Row, row

SIZE = int(float(os.environ.get("BIFACTOR_OBSERVATIONS", "2e7")))
SHAPE = os.environ.get("BIFACTOR_SHAPE")
ITERATIONS, NEW = int(os.environ.get("BIFACTOR_ITERATIONS", "30")), 4_000_000
PARTITION, STREAM = (os.environ.get("BIFACTOR_MEMORY", usual) for usual in ("2GB", "1GB"))
IN_MEMORY = 100_000_000
"""Observations that are fitted in memory at most, to compare with."""


def shape() -> tuple[int, int]:
    """By default 500 observations of each row, as a billion of 2,000,000 × 200,000 has."""
    if SHAPE:
        rows, cols = map(int, SHAPE.split("x"))
        return rows, cols
    return max(SIZE // 500, 1000), max(SIZE // 5000, 200)


def partition(source: Path, folder: Path) -> list[Row]:
    started, cpu = time.perf_counter(), time.process_time()
    store = bf.data.partition(source, folder, memory=PARTITION)
    seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
    per = sum(part.header.bytes for part in store.parts) / store.size
    numbers = {"seconds": seconds, "million_per_second": store.size / seconds / 1e6, "cpu_seconds": cpu}
    return [row("partition", f"{store.size:,} observations", PARTITION, **numbers, bytes_per_observation=per)]


def streamed(folder: Path) -> list[Row]:
    store = bf.data.BlockStore.open(folder)
    f = bf.operators.Partitioned("squared", store, bf.executors.Streamed(STREAM))
    found = _fitted(bf.Objective(f, bf.penalties.Ridge(2.0)), store.size)
    result = found.pop("result")
    errors = error_of_new(store, result.U, result.V)
    pair = sum(store.shape) * planted.RANK * store.dtype.itemsize / 1e9
    told = {**found, **errors, "pair_of_factors_gigabytes": pair}
    return [row("least squares, ridge 2", f"{store.size:,} observations", "streamed", **told)]


def in_memory(source: Path) -> list[Row]:
    from pyarrow import parquet

    files = sorted(source.glob("*.parquet"))[: max(1, IN_MEMORY // planted.CHUNK)]
    columns = [parquet.read_table(file) for file in files]
    i, j, y = (np.concatenate([c[name].to_numpy() for c in columns]) for name in ("user", "item", "rating"))
    del columns
    problem = bf.Problem("squared", bf.operators.Entries(i, j, shape()), y, penalty=bf.penalties.Ridge(2.0))
    del i, j
    found = _fitted(problem, y.size, 6)
    found.pop("result")
    return [row("least squares, ridge 2", f"{SIZE:,} observations", f"in memory, {y.size:,} of them", **found)]


def _fitted(problem: bf.Objective, size: int, iterations: int = ITERATIONS) -> Row:
    cpu = []
    result = bf.solve(
        problem,
        planted.RANK,
        bf.solvers.PCG(),
        rng=0,
        max_iter=iterations,
        callback=lambda k, state: cpu.append(time.process_time()) and False,
    )
    seconds = np.diff(result.history.seconds)
    return {
        "peak_gigabytes": peak_bytes() / 1e9,
        "result": result,
        "iterations": result.n_iter,
        "seconds": float(result.history.seconds[-1]),
        "start_seconds": float(result.history.seconds[0]),
        "nanoseconds_per_observation": float(np.median(seconds)) / size * 1e9,
        "cpu_nanoseconds_per_observation": float(np.median(np.diff(cpu))) / size * 1e9,
    }


def error_of_new(store: bf.data.BlockStore, U: np.ndarray, V: np.ndarray) -> Row:
    """Of new observations in rows and columns with three times as many as the rank, beside what theory allows."""
    rng, (rows, cols) = np.random.default_rng(9), store.counts()
    i = rng.integers(0, store.shape[0], NEW)
    j = rng.choice(store.shape[1], NEW, p=cols / cols.sum())
    known = (rows[i] >= 3 * planted.RANK) & (cols[j] >= 3 * planted.RANK)
    if not known.any():
        return {"new": 0}
    i, j, (A, B) = i[known], j[known], planted.factors(store.shape)
    away = np.vecdot(U[i], V[j]) - np.vecdot(A[i], B[j]) + planted.NOISE * rng.standard_normal(i.size)
    free = planted.RANK * (sum(store.shape) - planted.RANK)
    bound = planted.NOISE * (1 + free / store.size) ** 0.5
    return {"rmse_of_new": float(np.mean(away**2)) ** 0.5, "noise_and_freedom": bound, "new": i.size}


def run() -> list[Row]:
    with tempfile.TemporaryDirectory(dir=os.environ.get("BIFACTOR_SCRATCH")) as scratch:
        source, folder = Path(scratch) / "source", Path(scratch) / "blocks"
        planted.write(source, SIZE, shape())
        steps = (partial(partition, source, folder), partial(streamed, folder), partial(in_memory, source))
        return [one for step in steps for one in in_fresh_process(step)]
