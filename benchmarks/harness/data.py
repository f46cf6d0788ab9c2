"""Real data for benchmarks, read from BIFACTOR_DATA or from shared/data beside the repository; never part of it."""

import os
from pathlib import Path

import numpy as np

from benchmarks.harness.rows import Absent

DATA = Path(os.environ.get("BIFACTOR_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))


def arrays(folder: str, file: str | None = None) -> dict[str, np.ndarray]:
    """All arrays of a stored file."""
    path = DATA / folder / f"{file or folder}.npz"
    if not path.exists():
        raise Absent(f"{folder} is missing. Set BIFACTOR_DATA to the folder that holds it.", folder)
    with np.load(path) as stored:
        return dict(stored)


def movielens() -> dict[str, np.ndarray]:
    """MovieLens 100k: `row`, `col` (counted from 0), `rating`, and `fold` 1 to 5."""
    stored = arrays("ml-100k")
    row, col = (stored[name].astype(np.int64) - 1 for name in ("user", "item"))
    return {"row": row, "col": col, "rating": stored["rating"].astype(float), "fold": stored["fold"]}
