"""Real data for benchmarks, read from BIFACTOR_DATA or from shared/data beside the repository; never part of it."""

import os
from pathlib import Path

import numpy as np

DATA = Path(os.environ.get("BIFACTOR_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))


def movielens() -> dict[str, np.ndarray] | None:
    """MovieLens 100k: `row`, `col` (counted from 0), `rating`, and `fold` 1 to 5; None where the file is absent."""
    path = DATA / "ml-100k" / "ml-100k.npz"
    if not path.exists():
        return None
    with np.load(path) as file:
        row, col = (file[name].astype(np.int64) - 1 for name in ("user", "item"))
        return {"row": row, "col": col, "rating": file["rating"].astype(float), "fold": file["fold"]}
