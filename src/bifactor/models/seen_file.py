"""File of the fitted pairs: all pairs or, if these are in a block store, the location of the store."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from bifactor.arrays import Array
from bifactor.errors import FileError
from bifactor.models.choice_weights import as_choices
from bifactor.models.pairs import Pairs
from bifactor.models.stored_pairs import Seen, StoredPairs, folder_of
from bifactor.running import files


def told(seen: Seen, folder: Path) -> dict[str, Any] | None:
    """Entry in the card of a fit about the store that it was fitted to."""
    if isinstance(seen, Pairs):
        return None
    place = os.path.abspath(seen.folder)
    return {"folder": place, "beside": os.path.relpath(place, os.path.abspath(folder)), "content": seen.fingerprint}


def write(path: Path, seen: Seen) -> None:
    if isinstance(seen, Pairs):
        files.write(path, "seen", _packed(seen), {})
        return
    arrays = {"counts": seen.counts, "column_counts": seen.column_counts}
    if seen.added is not None and seen.places is not None:
        arrays |= {"places": seen.places, **_packed(seen.added)}
    files.write(path, "seen", arrays, {})


def read(path: Path, store: Any, shape: tuple[int, int], clicks: bool) -> Seen:
    """Read the pairs of a matrix of this shape; `store` is a result of `told`."""
    arrays, _ = files.read(path, "seen")
    if store is None:
        if not {"starts", "columns"} <= set(arrays):
            raise FileError(f"{path} is damaged: it contains no pairs. Fit again.")
        pairs = _unpacked(arrays)
        if not pairs.fits(shape):
            raise FileError(f"The files in {path.parent} do not belong together. Fit again.")
        return pairs
    counts = [arrays.get(name, np.empty(0)) for name in ("counts", "column_counts")]
    if [one.shape for one in counts] != [(size,) for size in shape] or any(one.dtype.kind != "i" for one in counts):
        raise FileError(f"The files in {path.parent} do not belong together. Fit again.")
    try:
        home, content = folder_of(store, path.parent), str(store["content"])
    except (TypeError, KeyError):
        raise FileError(f"The card in {path.parent} is damaged: it does not locate the data. Fit again.") from None
    found = StoredPairs(home, content, counts[0], counts[1], as_choices if clicks else None)
    return found if "places" not in arrays else _with_added(found, arrays, path, shape)


def _with_added(found: StoredPairs, arrays: dict[str, Array], path: Path, shape: tuple[int, int]) -> StoredPairs:
    places, added = arrays["places"], _unpacked(arrays) if {"starts", "columns"} <= set(arrays) else None
    rows = 0 if added is None else added.starts.size - 1
    good = added is not None and places.shape == shape[:1] and added.fits((rows, shape[1]))
    if not good or places.dtype.kind != "i" or np.any(places >= rows) or np.any(places < -1):
        raise FileError(f"The files in {path.parent} do not belong together. Fit again.")
    return replace(found, added=added, places=places)


def _packed(pairs: Pairs) -> dict[str, Array]:
    arrays = {"starts": pairs.starts, "columns": pairs.columns}
    return arrays if pairs.weights is None else {**arrays, "weights": pairs.weights}


def _unpacked(arrays: dict[str, Array]) -> Pairs:
    return Pairs(arrays["starts"], arrays["columns"], arrays.get("weights"))
