"""The card of a fit: what it was made of, how, and how well it does."""

import platform
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from bifactor.arrays import Array
from bifactor.metrics import triplets
from bifactor.models.model import Model
from bifactor.tables import Triples
from bifactor.tables.source import checksum

PACKAGES = ("bifactor", "numpy", "scipy", "numba", "scikit-learn", "safetensors")

POINTS = 200
"""Of a history that are kept; all of it is in the file of the factors."""


def about_data(path: Path, triples: Triples) -> dict[str, Any]:
    """The data, without its place on this machine."""
    values = triples.values
    return {
        "file": path.name,
        "bytes": path.stat().st_size,
        "sha256": checksum(path),
        "layout": triples.layout,
        "columns": list(triples.header),
        "rows": triples.shape[0],
        "cols": triples.shape[1],
        "entries": int(values.size),
        "observed": values.size / (triples.shape[0] * triples.shape[1]),
        "without_value": triples.missing,
        "values": {"least": float(values.min()), "mean": float(values.mean()), "largest": float(values.max())},
    }


def about_fit(model: Model) -> dict[str, Any]:
    """The run, its history thinned."""
    result = model.result
    history = result.history
    some = thinned(result.n_iter + 1)
    return {
        "rank": int(model.U.shape[1]) - model.fixed_columns,
        "alpha": model.ridge,
        "status": result.status.name,
        "sentence": str(result.status),
        "converged": result.status.converged,
        "iterations": result.n_iter,
        "objective": result.objective,
        "seconds": float(history.seconds[-1]),
        "history": {
            "iteration": some.tolist(),
            "objective": history.objective[some].tolist(),
            "relative_change": history.relative_change[some].tolist(),
            "seconds": history.seconds[some].tolist(),
        },
        "singular_values": spectrum(model).tolist(),
    }


def about_path(model: Model) -> dict[str, Any] | None:
    """How the ridge was chosen."""
    if model.path is None:
        return None
    path = model.path
    return {
        "ridges": path.ridges.tolist(),
        "held_out": path.held_out.tolist(),
        "standard_error": path.standard_error.tolist(),
        "chosen": path.chosen,
    }


def about_machine() -> dict[str, Any]:
    """Versions, and when."""
    return {
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "packages": {name: _version(name) for name in PACKAGES},
    }


def spectrum(model: Model) -> Array:
    """The singular values of UVᵀ, the offsets aside."""
    return triplets(model.U[:, model.fixed_columns :], model.V[:, model.fixed_columns :])[1]


def thinned(count: int) -> Array:
    """The first, the last and some between, dense at the beginning."""
    if count <= POINTS:
        return np.arange(count)
    return np.unique(np.concatenate([[0], np.geomspace(1, count - 1, POINTS - 1).round()]).astype(np.int64))


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
