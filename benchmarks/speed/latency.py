"""Start-up times: fresh processes that import, ask for help, predict, and fit a little.

`processor_seconds` are those of the whole process, so that a busy machine changes them less.
"""

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.harness.rows import Case, Row, run_cases

SHELL = "from bifactor.cli.main import main; main()"

PROBLEM = """
import numpy as np
import bifactor as bf
rng = np.random.default_rng(0)
X = rng.standard_normal((100, 3)) @ rng.standard_normal((3, 60))
X[rng.random(X.shape) < 0.5] = np.nan
"""
SOLVE = PROBLEM + "bf.solve(bf.Problem(bf.losses.Squared(), *bf.operators.Entries.from_dense(X)), 3, rng=0)"
ESTIMATE = PROBLEM + "bf.MatrixCompletion(n_components=3, ridge=0.1, random_state=0).fit(X)"

RATINGS = "user,item,rating\n" + "".join(f"u{k % 40},{k * 7 % 31},{1 + k % 5}\n" for k in range(600))
PAIRS = "user,item\nu1,3\nu2,5\nu3,7\nu4,9\nnobody,11\n"


def waited(*arguments: str, **environment: str) -> Row:
    """One process."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, **environment},
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    seconds, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"seconds": seconds, "processor_seconds": used}


def script(text: str, *arguments: str) -> Callable[[], Callable[[], Row]]:
    def prepare() -> Callable[[], Row]:
        waited("-c", text, *arguments)  # files on disk are read for the first time
        return lambda: waited("-c", text, *arguments)

    return prepare


def empty_cache() -> Callable[[], Row]:
    def once() -> Row:
        with tempfile.TemporaryDirectory() as folder:
            return waited("-c", SOLVE, NUMBA_CACHE_DIR=folder)

    return once


def predict() -> Callable[[], Row]:
    place = tempfile.TemporaryDirectory()
    folder = Path(place.name)
    (folder / "ratings.csv").write_text(RATINGS)
    (folder / "pairs.csv").write_text(PAIRS)
    waited(
        "-c", SHELL, "complete", str(folder / "ratings.csv"), "--rank", "2", "--ridge", "1", "-o", str(folder / "fit")
    )

    def once() -> Row:
        assert place  # which lives as long as this
        return waited("-c", SHELL, "predict", str(folder / "fit"), str(folder / "pairs.csv"))

    return once


NUMPY = "numpy alone"
CASES = [
    Case("start", "import", NUMPY, script("import numpy")),
    Case("start", "import", "bifactor", script("import numpy; import bifactor")),
    Case("start", "command", "--help", script(SHELL, "--help")),
    Case("start", "command", "--version", script(SHELL, "--version")),
    Case("start", "command", "predict, five pairs", predict),
    Case("first fit", "100 × 60, half known, r = 3", "solve", script(SOLVE)),
    Case("first fit", "100 × 60, half known, r = 3", "solve, nothing compiled before", empty_cache),
    Case("first fit", "100 × 60, half known, r = 3", "MatrixCompletion", script(ESTIMATE)),
]


def run() -> list[Row]:
    return run_cases(CASES)
