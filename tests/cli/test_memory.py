"""The memory line of `bifactor complete` bounds what the process takes, and not by much."""

import json
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest

import bifactor as bf
from bifactor.models import top_k
from bifactor.models.top_k import best_columns

resource = pytest.importorskip("resource")

SCRIPT = """
import pathlib, resource, sys
from bifactor.cli.main import main
try:
    main(sys.argv[1:])
except SystemExit as end:
    assert not end.code, end.code
# On Linux, ru_maxrss begins with the memory of the process that started this one.
status = pathlib.Path("/proc/self/status")
lines = status.read_text().splitlines() if status.exists() else []
own = [line.split()[1] for line in lines if line.startswith("VmHWM")]
print(own[0] if own else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)
"""


def measured(data, out, *options):
    """The peak bytes of a process that fits the data, and its estimate."""
    command = [sys.executable, "-c", SCRIPT, "complete", str(data), "-o", str(out), "--force", *options]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * int(ended.stderr.split()[-1]), json.loads((out / "card.json").read_text())["memory"]


def clicks(path, count, users, items, rng):
    rows, cols = rng.integers(users, size=count), rng.integers(items, size=count)
    rows[:2], cols[:2] = (0, users - 1), (0, items - 1)
    np.savez(path, row=rows, col=cols)
    return path


@pytest.mark.parametrize("blocks", [False, True])
def test_clicks_take_no_more_than_the_line_says(tmp_path, blocks):
    rng = np.random.default_rng(0)
    many, few = (clicks(tmp_path / f"{count}.npz", count, 9_000, 3_000, rng) for count in (600_000, 40_000))
    if blocks:
        for path in (many, few):
            with np.load(path) as arrays:
                triples = arrays["row"], arrays["col"], np.ones(arrays["row"].size)
                bf.data.partition(triples, path.with_suffix(""))
        many, few = many.with_suffix(""), few.with_suffix("")
    settings = ("--implicit", "--rank", "16", "--ridge", "0.1", "--unobserved", "0.1", "--max-iter", "2")
    # The first process compiles kernels, which takes more memory than the fit; the others read them from the cache,
    # unless yet another process, of another test, has replaced them meanwhile. Then they are measured again.
    measured(many, tmp_path / "fit", *settings)
    for _ in range(3):
        (peak, line), (least, below) = (measured(data, tmp_path / "fit", *settings) for data in (many, few))
        growth = peak - least  # both have Python, its libraries and compiled code
        if growth <= line <= below + 3 * growth + 30_000_000:
            break
    assert growth <= line
    assert line - below <= 3 * growth + 30_000_000


def test_ranking_needs_the_memory_of_a_block_of_scores():
    rng = np.random.default_rng(0)
    U, V = rng.standard_normal((9_000, 4)), rng.standard_normal((2_000, 4))
    tracemalloc.start()
    columns, scores = best_columns(U, V, 5)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak <= 1.1 * top_k.SCORE * top_k.SCORES_PER_BLOCK
    z = U[[0, 4_000, 8_999]] @ V.T
    np.testing.assert_array_equal(columns[[0, 4_000, 8_999]], np.argsort(-z, axis=1)[:, :5])
    np.testing.assert_allclose(scores[[0, 4_000, 8_999]], -np.sort(-z, axis=1)[:, :5])
