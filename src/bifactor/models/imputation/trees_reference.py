"""Regression trees on binned columns, in NumPy: the definition of the compiled kernels.

`bins` is q × n, one line for each feature. `values` are integers in double precision, so that their sums are exact in
any order, and trees do not depend on the implementation. Trees are arrays, one line for each tree: the feature of each
node, −1 in a leaf; the last bin that goes left; the place of the left child, with the right one after it; and the mean.
"""

from typing import NamedTuple

import numpy as np

from bifactor.arrays import Array

BINS = 32
"""The number of bins of a feature."""

LEAST = 1.0
"""The smallest gain of a split, in squares of integers: rounding gives less."""

TIE = 1 + 1e-9
"""Gains with a smaller ratio count as equal, such as those of a split and its mirror image; the first is taken."""


class Trees(NamedTuple):
    """The trees of one target."""

    feature: Array
    threshold: Array
    left: Array
    mean: Array


def empty(count: int, nodes: int) -> Trees:
    """Arrays for this many trees of this many nodes, all of them leaves."""
    whole = (count, nodes)
    return Trees(np.full(whole, -1, np.int32), np.zeros(whole, np.int32), np.zeros(whole, np.int32), np.zeros(whole))


def grow(bins: Array, values: Array, drawn: Array, features: Array, leaf: int) -> Trees:
    """Grow one tree for each line of `drawn`, which lists its rows.

    `features` (trees × levels × tries) are those that the nodes of a level try; leaves have at least `leaf` rows.
    """
    (count, size), levels = drawn.shape, features.shape[1]
    trees, which = empty(count, 2 * (size // leaf) + 1), np.arange(count)[:, None]
    node, live, y = np.zeros((count, size), np.int64), np.ones((count, size), bool), values[drawn]
    first, total = np.zeros(count, np.int64), np.ones(count, np.int64)
    for level in range(levels + 1):
        width = int((total - first).max())
        place = which * width + node - first[:, None]
        here, weights = place[live], y[live]
        sums, sizes = (np.bincount(here, w, count * width) for w in (weights, None))
        at = np.broadcast_to(which, node.shape)[live], node[live]
        trees.mean[at] = (sums / np.maximum(sizes, 1))[here]
        if level == levels or not live.any():
            break
        tried = features[:, level]
        cut = bins[tried[:, :, None], drawn[:, None, :]]
        gain, slot, last = _best(cut, place, live, y, sums, sizes, leaf)
        splits = (gain > LEAST).reshape(count, width)
        children = total[:, None] + 2 * (np.cumsum(splits, axis=1) - 1)
        t, k = np.nonzero(splits)
        parent, flat = (t, first[t] + k), t * width + k
        trees.feature[parent] = tried[t, slot[flat]]
        trees.threshold[parent], trees.left[parent] = last[flat], children[splits]
        live &= (gain > LEAST)[place]
        right = np.take_along_axis(cut, slot[place][:, None, :], axis=1)[:, 0] > last[place]
        node = np.where(live, children.ravel()[place] + right, node)
        first, total = total.copy(), total + 2 * splits.sum(axis=1)
        node = np.where(live, node, first[:, None])  # any node for rows that have reached their leaf
    return trees


def _best(
    cut: Array, place: Array, live: Array, y: Array, sums: Array, sizes: Array, leaf: int
) -> tuple[Array, Array, Array]:
    """For each node, the largest gain, the slot of its feature, and the last bin that goes left."""
    tries, nodes = cut.shape[1], len(sums)
    keys = ((place[:, None, :] * tries + np.arange(tries)[:, None]) * BINS + cut)[
        np.broadcast_to(live[:, None], cut.shape)
    ]
    repeated = np.broadcast_to(y[:, None], cut.shape)[np.broadcast_to(live[:, None], cut.shape)]
    shape = nodes, tries, BINS
    here = np.bincount(keys, minlength=nodes * tries * BINS).reshape(shape)
    left = np.cumsum(np.bincount(keys, repeated, nodes * tries * BINS).reshape(shape), axis=2)
    less = np.cumsum(here, axis=2)
    total, size = sums[:, None, None], sizes[:, None, None]
    able = (less >= leaf) & (size - less >= leaf) & (here > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        gain = left * left / less + (total - left) * (total - left) / (size - less) - total * total / size
    gain = np.where(able, gain, 0).reshape(nodes, -1)
    best = (gain * TIE >= gain.max(axis=1, keepdims=True)).argmax(axis=1)
    return gain[np.arange(nodes), best], best // BINS, best % BINS


def descend(bins: Array, trees: Trees, used: Array) -> Array:
    """For each row, the sum of the predictions of the trees that `used`, trees × rows, allows."""
    found = np.zeros(bins.shape[1])
    for feature, threshold, left, mean, rows in zip(*trees, used, strict=True):
        at = np.flatnonzero(rows)
        node = np.zeros(at.size, np.int64)
        while True:
            inner = np.flatnonzero(feature[node] >= 0)
            if inner.size == 0:
                break
            here = node[inner]
            node[inner] = left[here] + (bins[feature[here], at[inner]] > threshold[here])
        found[at] += mean[node]
    return found
