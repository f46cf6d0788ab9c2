"""The memory that a partition takes is bounded by what it is told."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

SCRIPT = """
import resource, sys
import bifactor as bf

some, source, folder, memory = sys.argv[1:]
bf.data.partition(some, folder + "-first", memory)  # imports what is needed, and compiles or loads the kernels
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
store = bf.data.partition(source, folder, memory)
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
    pd.DataFrame(frame)[:50_000].to_parquet(tmp_path / "some.parquet")
    places = [str(tmp_path / name) for name in ("some.parquet", "ratings.parquet", "blocks")]
    command = [sys.executable, "-c", SCRIPT, *places, "64MiB"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    found, blocks, taken = map(int, done.stdout.split())
    assert found == size
    assert blocks == 15
    assert taken < 64 << 20
