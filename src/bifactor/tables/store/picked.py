"""Some observations of a store in memory, and the choice of those held out."""

import numpy as np

from bifactor import kernels
from bifactor.arrays import Array
from bifactor.executors import Workspace
from bifactor.kernels.hash_reference import SCALE, bound
from bifactor.tables.observations import Observations
from bifactor.tables.store.block_store import BlockStore


def is_held_out(rows: Array, cols: Array, fraction: float, seed: int) -> Array:
    """A mask of entries that a hash of row, column and seed holds out, the same as in `BlockStore.held`."""
    found = kernels.find("hash", np.float64, rows.size).hashed(rows, cols, seed)
    below: Array = found < float(bound(fraction)) * SCALE
    return below


def picked(store: BlockStore, stay: Array, side: int = 0) -> Observations:
    """All observations of the rows (side 0), or columns (1), where `stay` is True, by one pass over their blocks.

    Indices and names are those of the store.
    """
    space, found, given = Workspace(), list[tuple[Array, Array, Array]](), list[Array]()
    blocks_of = int(store.flipped)
    for part in store.parts:
        if side == blocks_of and not stay[part.start : part.stop].any():
            continue
        layout, y, weights = part.load(space)
        here = (stay[part.start : part.stop][layout.outer] if side == blocks_of else stay[layout.inner]).nonzero()[0]
        outer = layout.outer[here].astype(np.int64) + part.start
        found.append((outer, layout.inner[here].astype(np.int64), y[here]))
        if weights is not None:
            given.append(weights[here])
    outer, inner, values = (_joined([one[k] for one in found]) for k in range(3))
    rows, cols = (inner, outer) if store.flipped else (outer, inner)
    kept = np.concatenate(given) if given else None
    return Observations(rows, cols, values, store.shape, kept, store.row_names, store.column_names, store.origin)


def _joined(parts: list[Array]) -> Array:
    return np.concatenate(parts) if parts else np.empty(0, np.int64)
