"""Observations by the billion: a planted matrix of low rank with noise, columns by Zipf's law, as parquet files."""

from pathlib import Path

import numpy as np

from benchmarks.harness.rows import Absent

NOISE, RANK, CHUNK, PIECE = 0.5, 16, 20_000_000, 1_000_000


def factors(shape: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Of the planted matrix, whose entries have a variance of 1."""
    rng = np.random.default_rng(0)
    U, V = ((rng.standard_normal((k, RANK)) / RANK**0.25).astype(np.float32) for k in shape)
    return U, V


def write(folder: Path, size: int, shape: tuple[int, int]) -> None:
    """As many observations, in files of 20 million."""
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        raise Absent("pyarrow is not installed. Run: make bench.", "pyarrow") from None
    U, V = factors(shape)
    share = np.random.default_rng(1).permutation(1 / (np.arange(shape[1]) + 20.0) ** 0.8)
    ends = np.cumsum(share / share.sum())
    folder.mkdir(parents=True)
    for k, start in enumerate(range(0, size, CHUNK)):
        count = min(CHUNK, size - start)
        rng = np.random.default_rng((2, k))
        rows = rng.integers(0, shape[0], count, dtype=np.int32)
        cols = np.minimum(np.searchsorted(ends, rng.random(count)), shape[1] - 1).astype(np.int32)
        values = NOISE * rng.standard_normal(count, np.float32)
        for piece in (slice(at, at + PIECE) for at in range(0, count, PIECE)):
            values[piece] += np.vecdot(U[rows[piece]], V[cols[piece]])
        table = pa.table({"user": rows, "item": cols, "rating": values})
        parquet.write_table(table, folder / f"part-{k:04d}.parquet", compression="none", use_dictionary=False)
