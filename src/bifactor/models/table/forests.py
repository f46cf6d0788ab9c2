"""Forests that correct what factors say, where columns depend on each other by steps and bends.

Two for each encoded column: one of its values, and one of what the factors leave. Their features are the completed
rows, as they were when the cell was hidden, without the column itself; in its place is what the factors said of it.
Each tree sees a part of the rows and tells the rest, so known cells have predictions of trees that did not see them.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from bifactor import kernels
from bifactor.arrays import Array
from bifactor.kernels.pool import run, shares
from bifactor.kernels.trees_reference import BINS, Trees
from bifactor.models.table.held_out import HeldOut
from bifactor.models.table.layout import Layout

TREES, FEWEST_TREES = 20, 4
"""Of a forest; fewer where there are many columns."""

LEVELS, LEAF, SHARE = 12, 2, 0.63
"""Depth, rows of a leaf at least, and the share of rows that a tree sees."""

TRIES, MOST_TRIES = 1 / 3, 24
"""Features that a level tries: a share of them, but so many at most."""

WORK = 5e8
"""Steps that all trees may take to grow, about a second on one core."""

FEWEST = 30
"""Rows of a table, and known cells of a column, below which there are none."""

FINE = 1 << 16
"""Parts of a standard deviation that targets are rounded to."""


@dataclass(frozen=True, eq=False)
class Forest:
    """Of one encoded column: trees of its values, and of what factors leave."""

    values: Trees
    rest: Trees

    def told(self, bins: Array, middle: Array) -> Array:
        """n × 2: corrections to what factors say."""
        kernel = kernels.find("trees", np.float64, bins.shape[1] * self.values.mean.size)
        used = np.ones((len(self.values.mean), bins.shape[1]), bool)
        scale = FINE * len(used)
        values, rest = (kernel.descend(bins, trees, used) / scale for trees in (self.values, self.rest))
        return np.column_stack([values - middle, rest])


@dataclass(frozen=True, eq=False)
class Forests:
    """Of all encoded columns, None for those of which too little is known."""

    edges: Array
    """q × 31: where features are cut into bins."""
    forests: tuple[Forest | None, ...]

    @classmethod
    def of(cls, layout: Layout, held_out: HeldOut, seed: int) -> tuple[Self, Array]:
        """Also gives n × q × 2: corrections of known cells by trees that did not see them."""
        completed, q = held_out.completed, layout.width
        edges = np.quantile(completed[0], np.arange(1, BINS) / BINS, axis=0).T
        bins = np.stack([_binned(rows, edges) for rows in completed])
        corrections = np.zeros((*held_out.known.shape, 2))
        tries = int(np.clip(np.ceil(TRIES * q), 1, MOST_TRIES))
        work = LEVELS * SHARE * float(held_out.mask.sum()) * tries * 2
        count = int(np.clip(WORK / max(work, 1), FEWEST_TREES, TREES))

        def plant(places: list[int]) -> list[Forest | None]:
            found = []
            for k in places:
                rng = np.random.default_rng([seed, k])
                forest, rows, told = _planted(layout, held_out, bins, edges, k, (count, tries), rng)
                corrections[rows, k] = told
                found.append(forest)
            return found

        calls = [(list(range(a, b)),) for a, b in shares(q, work * count / max(q, 1))]
        planted = [forest for part in run(plant, calls) for forest in part]
        return cls(edges, tuple(planted)), corrections

    def told(self, completed: Array, middle: Array, holes: Array) -> Array:
        """n × q × 2: corrections of the holes of completed rows."""
        bins, found = _binned(completed, self.edges), np.zeros((*middle.shape, 2))

        def tell(places: list[int]) -> None:
            for k in places:
                forest, rows = self.forests[k], np.flatnonzero(holes[:, k])
                if forest is not None and rows.size:
                    own = bins[:, rows]
                    own[k] = np.searchsorted(self.edges[k], middle[rows, k])
                    found[rows, k] = forest.told(own, middle[rows, k])

        run(tell, [(list(range(a, b)),) for a, b in shares(len(self.forests), holes.mean() * len(holes) * 500)])
        return found


def _planted(
    layout: Layout,
    held_out: HeldOut,
    bins: Array,
    edges: Array,
    k: int,
    size: tuple[int, int],
    rng: np.random.Generator,
) -> tuple[Forest | None, Array, Array]:
    """The forest of a place, the rows that it has seen, and what trees say of those that they did not see."""
    rows = np.flatnonzero(held_out.mask[:, k])
    features = np.flatnonzero((layout.own != layout.own[k]) | (np.arange(layout.width) == k))
    if rows.size < FEWEST or features.size < 2:
        return None, rows, np.zeros((rows.size, 2))
    own = np.ascontiguousarray(bins[held_out.fold[rows, k], :, rows].T)
    middle = held_out.middle[rows, k]
    own[k] = np.searchsorted(edges[k], middle)
    drawn, tried = _lots(rows.size, features, size, rng)
    seen = np.zeros((len(drawn), rows.size), bool)
    np.put_along_axis(seen, drawn, True, axis=1)
    kernel = kernels.find("trees", np.float64, drawn.size * LEVELS * tried.shape[2])
    left_out = np.maximum((~seen).sum(axis=0), 1)
    told, trees = [], []
    for y in (held_out.known[rows, k], held_out.known[rows, k] - middle):
        grown = kernel.grow(own, np.rint(FINE * y), drawn, tried, LEAF)
        told.append(kernel.descend(own, grown, ~seen) / (FINE * left_out))
        trees.append(grown)
    values = np.where(seen.all(axis=0), 0, told[0] - middle)
    return Forest(*trees), rows, np.column_stack([values, told[1]])


def _lots(n: int, features: Array, size: tuple[int, int], rng: np.random.Generator) -> tuple[Array, Array]:
    """The rows that each tree sees, and the features that each of its levels tries."""
    count, tries = size
    drawn = rng.permuted(np.broadcast_to(np.arange(n), (count, n)), axis=1)[:, : max(2, int(SHARE * n))]
    tries = min(tries, features.size)
    keys = rng.random((count, LEVELS, features.size), np.float32)
    tried = features[np.argpartition(keys, tries - 1, axis=2)[:, :, :tries]]
    return np.ascontiguousarray(drawn), np.ascontiguousarray(tried)


def _binned(rows: Array, edges: Array) -> Array:
    """q × n, as the kernels take them."""
    found = np.empty(rows.shape[::-1], np.uint8)
    for k, cuts in enumerate(edges):
        found[k] = np.searchsorted(cuts, rows[:, k])
    return found
