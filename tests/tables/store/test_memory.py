"""The memory that a partition takes is bounded by what it is told."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

SCRIPT = """
import resource, sys
import numpy as np, pyarrow.parquet
import bifactor as bf

source, folder, memory = sys.argv[1:]
rng = np.random.default_rng(0)
some = rng.integers(500, size=40_000), rng.integers(300, size=40_000), rng.integers(5, size=40_000).astype(np.float32)
bf.tables.partition(some, folder + "-first", memory)  # kernels are compiled, or loaded
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
store = bf.tables.partition(source, folder, memory)
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(store.size, len(store.parts), (after - before) * 1024)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss has other units elsewhere")
def test_it_stays_below_what_it_is_told(tmp_path):
    """6 million observations take 96 MB as three columns in memory, and three times that while they are sorted."""
    rng = np.random.default_rng(0)
    size = 6_000_000
    frame = {
        "user": rng.integers(200_000, size=size),
        "item": rng.integers(20_000, size=size).astype(np.int32),
        "rating": rng.standard_normal(size).astype(np.float32),
    }
    pd.DataFrame(frame).to_parquet(tmp_path / "ratings.parquet", row_group_size=size)
    command = [sys.executable, "-c", SCRIPT, str(tmp_path / "ratings.parquet"), str(tmp_path / "blocks"), "100MB"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    found, blocks, taken = map(int, done.stdout.split())
    assert found == size
    assert blocks >= 8
    assert taken < 100e6
