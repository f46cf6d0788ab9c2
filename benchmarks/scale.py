"""Observations on disk, in blocks: throughput of partition, time and memory of a streamed fit beside one in memory.

BIFACTOR_OBSERVATIONS says how many (20 million by default, 1e9 takes 20 GB of disk), BIFACTOR_SCRATCH where.
"""

import os
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np

import bifactor as bf
from benchmarks.harness import planted
from benchmarks.harness.measure import in_fresh_process
from benchmarks.harness.rows import Row, row

SIZE = int(float(os.environ.get("BIFACTOR_OBSERVATIONS", "2e7")))
ITERATIONS, HELD, MEMORY = int(os.environ.get("BIFACTOR_ITERATIONS", "30")), 0.01, "1GB"
IN_MEMORY = 100_000_000
"""Observations that are fitted in memory at most, to compare with."""


def shape() -> tuple[int, int]:
    """500 observations of each row, as a billion of 2,000,000 × 200,000 has."""
    return max(SIZE // 500, 1000), max(SIZE // 5000, 200)


def partition(source: Path, folder: Path) -> list[Row]:
    started, cpu = time.perf_counter(), time.process_time()
    store = bf.tables.partition(source, folder, memory="2GB")
    seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
    per = sum(part.header.bytes for part in store.parts) / store.size
    numbers = {"seconds": seconds, "million_per_second": store.size / seconds / 1e6, "cpu_seconds": cpu}
    return [row("partition", f"{store.size:,} observations", "2 GB", **numbers, bytes_per_observation=per)]


def streamed(folder: Path) -> list[Row]:
    store = bf.tables.BlockStore.open(folder)
    f = bf.operators.Partitioned("squared", store.train(HELD, 0), bf.executors.Streamed(MEMORY))
    found = _fitted(bf.Objective(f, bf.penalties.Ridge(2.0)), "streamed", store.size)
    result = found.pop("result")
    errors = held_out(store, result.U, result.V)
    return [row("least squares, ridge 2", f"{store.size:,} observations", "streamed", **found, **errors)]


def in_memory(source: Path) -> list[Row]:
    from pyarrow import parquet

    files = sorted(source.glob("*.parquet"))[: max(1, IN_MEMORY // planted.CHUNK)]
    columns = [parquet.read_table(file) for file in files]
    i, j, y = (np.concatenate([c[name].to_numpy() for c in columns]) for name in ("user", "item", "rating"))
    del columns
    problem = bf.Problem("squared", bf.operators.Entries(i, j, shape()), y, penalty=bf.penalties.Ridge(2.0))
    del i, j
    found = _fitted(problem, "in memory", y.size, 6)
    found.pop("result")
    return [row("least squares, ridge 2", f"{SIZE:,} observations", f"in memory, {y.size:,} of them", **found)]


def _fitted(problem: bf.Objective, name: str, size: int, iterations: int = ITERATIONS) -> Row:
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
        "result": result,
        "iterations": result.n_iter,
        "seconds": float(result.history.seconds[-1]),
        "start_seconds": float(result.history.seconds[0]),
        "nanoseconds_per_observation": float(np.median(seconds)) / size * 1e9,
        "cpu_nanoseconds_per_observation": float(np.median(np.diff(cpu))) / size * 1e9,
    }


def held_out(store: bf.tables.BlockStore, U: np.ndarray, V: np.ndarray) -> Row:
    """Errors over rows and columns with three times as many observations as the rank, beside what theory allows."""
    rows, cols = (counts >= 3 * planted.RANK for counts in store.marginals)
    sum_of_squares, count = 0.0, 0
    for part in store.held(HELD, 0).parts:
        layout, y, _ = part.load()
        outer, inner = layout.outer + part.start, layout.inner
        i, j = (inner, outer) if store.flipped else (outer, inner)
        known = rows[i] & cols[j]
        z = np.einsum("kr,kr->k", U[i[known]], V[j[known]])
        sum_of_squares, count = sum_of_squares + float(np.sum((z - y[known]) ** 2)), count + int(known.sum())
    free = planted.RANK * (sum(store.shape) - planted.RANK)
    bound = planted.NOISE * (1 + free / store.size) ** 0.5
    return {"held_out_rmse": (sum_of_squares / count) ** 0.5, "noise_and_freedom": bound, "held_out": count}


def run() -> list[Row]:
    with tempfile.TemporaryDirectory(dir=os.environ.get("BIFACTOR_SCRATCH")) as scratch:
        source, folder = Path(scratch) / "source", Path(scratch) / "blocks"
        planted.write(source, SIZE, shape())
        steps = (partial(partition, source, folder), partial(streamed, folder), partial(in_memory, source))
        return [one for step in steps for one in in_fresh_process(step)]
