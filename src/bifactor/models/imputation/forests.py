"""Forests that correct the predictions of factors, if columns depend on each other nonlinearly.

There are two for each encoded column: one of its values, and one of the residuals of the factors. Their features are
the completed rows, as they were when the cell was hidden, with the prediction of the factors instead of the column
itself. Each tree is fitted to a part of the rows and predicts the rest, so known cells have out-of-bag predictions.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from bifactor import kernels
from bifactor.arrays import HOST_ARRAY, Array
from bifactor.kernels.threading import run, shares
from bifactor.models.imputation.encoding import TableEncoding
from bifactor.models.imputation.stacking import HeldOut
from bifactor.models.imputation.trees_reference import BINS, Trees

TREES, PROBE = 24, 6
"""Trees of a forest, fewer if there are many columns, and of a first part; the others grow only if these help."""

LEVELS, LEAF, SHARE = 10, 2, 0.63
"""Depth, smallest number of rows of a leaf, and the share of rows that a tree is fitted to."""

TRIES, MOST_TRIES = 1 / 3, 12
"""Features tried per level: as a share, and at most."""

WORK = 5e8
"""Largest total number of steps to grow all trees, about a second on one core."""

FEWEST = 30
"""Smallest number of rows of a table, and of known cells of a column, for forests."""

MARGIN = 1e-7
"""Distance of the edges of bins from the numbers that they separate, in standard deviations. Predictions of rows with
the same known cells are equal up to rounding, which must not decide their bins."""

FINE = 1 << 16
"""Parts of a standard deviation that targets are rounded to."""


@dataclass(frozen=True, eq=False)
class Forest:
    """Forest of one encoded column: trees of its values, and of the residuals of the factors."""

    values: Trees
    rest: Trees

    def correct(self, bins: Array, middle: Array) -> Array:
        """Corrections to the predictions of factors, n × 2."""
        kernel = kernels.get("models.imputation.trees", HOST_ARRAY, bins.shape[1] * self.values.mean.size)
        used = np.ones((len(self.values.mean), bins.shape[1]), bool)
        scale = FINE * len(used)
        values, rest = (kernel.descend(bins, trees, used) / scale for trees in (self.values, self.rest))
        return np.column_stack([values - middle, rest])


@dataclass(frozen=True, eq=False)
class Forests:
    """Forests of all encoded columns, None for those with too few known cells."""

    edges: Array
    """Edges of the bins of features, q × 31."""
    forests: tuple[Forest | None, ...]

    @classmethod
    def of(cls, layout: TableEncoding, held_out: HeldOut, seed: int) -> tuple[Self, Array]:
        """Grow forests; also returns out-of-bag corrections of known cells, n × q × 2."""
        completed, q = held_out.completed, layout.width
        edges = np.quantile(completed[0], np.arange(1, BINS) / BINS, axis=0).T + MARGIN
        bins = np.stack([_binned(rows, edges) for rows in completed])
        corrections = np.zeros((*held_out.known.shape, 2))
        tries = int(np.clip(np.ceil(TRIES * q), 1, MOST_TRIES))
        work = LEVELS * SHARE * float(held_out.mask.sum()) * tries * 2
        count = int(np.clip(WORK / max(work, 1), PROBE, TREES))

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

    def correct(self, completed: Array, middle: Array, holes: Array) -> Array:
        """Corrections of the missing cells of completed rows, n × q × 2."""
        bins, found = _binned(completed, self.edges), np.zeros((*middle.shape, 2))

        def tell(places: list[int]) -> None:
            for k in places:
                forest, rows = self.forests[k], np.flatnonzero(holes[:, k])
                if forest is not None and rows.size:
                    own = bins[:, rows]
                    own[k] = np.searchsorted(self.edges[k], middle[rows, k])
                    found[rows, k] = forest.correct(own, middle[rows, k])

        run(tell, [(list(range(a, b)),) for a, b in shares(len(self.forests), holes.mean() * len(holes) * 500)])
        return found


def _planted(
    layout: TableEncoding,
    held_out: HeldOut,
    bins: Array,
    edges: Array,
    k: int,
    size: tuple[int, int],
    rng: np.random.Generator,
) -> tuple[Forest | None, Array, Array]:
    """The forest of an encoded column, the rows that it is fitted to, and their out-of-bag corrections."""
    rows = np.flatnonzero(held_out.mask[:, k])
    features = np.flatnonzero((layout.own != layout.own[k]) | (np.arange(layout.width) == k))
    if rows.size < FEWEST or features.size < 2:
        return None, rows, np.zeros((rows.size, 2))
    own = np.ascontiguousarray(bins[held_out.fold[rows, k], :, rows].T)
    middle = held_out.middle[rows, k]
    own[k] = np.searchsorted(edges[k], middle)
    targets = held_out.known[rows, k], held_out.known[rows, k] - middle
    lots = _lots(rows.size, features, size, rng)
    first = [lot[:PROBE] for lot in lots]
    trees = _grown(own, targets, *first)
    corrections = _left_out(own, trees, first[0], middle)
    gain = corrections * targets[1][:, None]
    if not np.any(gain.sum(axis=0) > np.sqrt((gain**2).sum(axis=0))):  # no more than chance
        return None, rows, np.zeros((rows.size, 2))
    if size[0] > PROBE:
        more = _grown(own, targets, *(lot[PROBE:] for lot in lots))
        trees = [Trees(*map(np.concatenate, zip(*pair, strict=True))) for pair in zip(trees, more, strict=True)]
        corrections = _left_out(own, trees, lots[0], middle)
    return Forest(*trees), rows, corrections


def _grown(bins: Array, targets: tuple[Array, Array], drawn: Array, tried: Array) -> list[Trees]:
    """The trees of each target."""
    kernel = kernels.get("models.imputation.trees", HOST_ARRAY, drawn.size * LEVELS * tried.shape[2])
    return [kernel.grow(bins, np.rint(FINE * y), drawn, tried, LEAF) for y in targets]


def _left_out(bins: Array, trees: list[Trees], drawn: Array, middle: Array) -> Array:
    """Out-of-bag corrections to the predictions of factors, n × 2; 0 for rows that all trees were fitted to."""
    left = np.ones((len(drawn), middle.size), bool)
    np.put_along_axis(left, drawn, False, axis=1)
    kernel, counts = kernels.get("models.imputation.trees", HOST_ARRAY, left.size * LEVELS), left.sum(axis=0)
    values, rest = (kernel.descend(bins, one, left) / (FINE * np.maximum(counts, 1)) for one in trees)
    return np.column_stack([np.where(counts > 0, values - middle, 0), rest])


def _lots(n: int, features: Array, size: tuple[int, int], rng: np.random.Generator) -> tuple[Array, Array]:
    """Rows that each tree is fitted to, and features that each of its levels tries."""
    count, tries = size
    drawn = rng.permuted(np.broadcast_to(np.arange(n), (count, n)), axis=1)[:, : max(2, int(SHARE * n))]
    tries = min(tries, features.size)
    keys = rng.random((count, LEVELS, features.size), np.float32)
    tried = features[np.argpartition(keys, tries - 1, axis=2)[:, :, :tries]]
    return np.ascontiguousarray(drawn), np.ascontiguousarray(tried)


def _binned(rows: Array, edges: Array) -> Array:
    """Bins of the features, q × n, as the kernels need them."""
    found = np.empty(rows.shape[::-1], np.uint8)
    for k, cuts in enumerate(edges):
        found[k] = np.searchsorted(cuts, rows[:, k])
    return found
