"""The card of a fit: its data, settings and quality."""

import platform
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from bifactor.arrays import Array
from bifactor.data import Dataset
from bifactor.display.svg import thinned
from bifactor.metrics import triplets
from bifactor.models.completion.clipping import stored_range
from bifactor.models.fit import Fit
from bifactor.models.model import Model
from bifactor.models.recommender.rows import items_of
from bifactor.running.search import Search

PACKAGES = ("bifactor", "numpy", "scipy", "numba", "scikit-learn", "safetensors")


def model_card(fit: Fit) -> dict[str, Any]:
    """Facts that every fit provides, in addition to those already in its card."""
    model, data = fit.model, fit.card.get("data")
    return {
        "machine": about_machine(),
        "data": {**(data if isinstance(data, dict) else {}), **about_names(fit)},
        "fit": about_fit(model),
        "path": fit.card["path"] if "path" in fit.card else about_path(model),
    }


def about_names(fit: Fit) -> dict[str, Any]:
    return {"columns": list(fit.header), "rows": len(fit.rows), "cols": len(fit.cols), "pairs": fit.seen.size}


def about_data(path: Path | None, data: Dataset) -> dict[str, Any]:
    """Description of a file, of the blocks of a store, without its path on this machine, or of data in memory."""
    origin, about = data.origin, data.summary()
    return {
        "file": path.name if path is not None else "data in memory" if data.in_memory else "data in blocks",
        **({} if path is None and data.in_memory else data.content(path or Path())),
        "layout": type(data).__name__ if origin is None else origin.layout,
        "columns": list(("row", "column", "value") if origin is None else origin.header),
        "rows": data.shape[0],
        "cols": data.shape[1],
        "entries": data.size,
        "observed": data.size / (data.shape[0] * data.shape[1]),
        "without_value": 0 if origin is None else origin.missing,
        "values": {"least": about.least, "mean": about.mean, "largest": about.largest},
    }


def about_fit(model: Model) -> dict[str, Any]:
    """The run, with a thinned history; the whole history is in the file with the factors."""
    result = model.result
    history = result.history
    some = thinned(result.n_iter + 1)
    items = items_of(model)
    item_rank = 0 if items is None else items.rank
    return {
        "rank": model.rank - item_rank,
        "item_rank": item_rank,
        "ridge": model.rows.ridge,
        "offset_ridge": model.rows.offset_ridge,
        "noise": about_noise(model),
        "clip": stored_range(model.link.clip),
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


def about_noise(model: Model) -> dict[str, Any] | None:
    """Noise of a posterior, how it was chosen, and the number of active components."""
    posterior, search = model.posterior, model.search
    if posterior is None:
        return None
    return {
        "model": posterior.noise_model.name,
        "words": posterior.noise_model.words,
        "std": posterior.variance**0.5,
        "degrees": posterior.noise_model.degrees,
        "living": int(np.count_nonzero(posterior.active_components(model.fixed_columns))),
        "evidence": -model.result.objective,
        "tried": [] if search is None else _about_noises(search),
    }


def _about_noises(search: Search) -> list[dict[str, Any]]:
    names = ("noise", "prior", "implicit", "features", "standard_error")
    return [
        {**{name: one[name] for name in names}, "chosen": k == search.index, "held_out": one["score"]}
        for k, one in enumerate(search.lines())
    ]


def about_path(model: Model) -> dict[str, Any] | None:
    """How the ridge was chosen."""
    search = model.search
    if search is None or search.what != "ridge":
        return None
    return {
        "ridges": search["ridge"].tolist(),
        "held_out": search.score.tolist(),
        "standard_error": search["standard_error"].tolist(),
        "chosen": search.chosen["ridge"],
    }


def about_trials(search: Search | None) -> list[dict[str, Any]]:
    """How the weights of clicks were chosen."""
    return [] if search is None else [{**one, "ndcg": one.pop("score")} for one in search.lines()]


def about_machine() -> dict[str, Any]:
    """Versions, system and date."""
    return {
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "packages": {name: _version(name) for name in PACKAGES},
    }


def spectrum(model: Model) -> Array:
    """Singular values of UVᵀ without offsets."""
    return triplets(*model.components)[1]


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
