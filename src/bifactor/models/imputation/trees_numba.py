"""Regression trees on binned columns, compiled. The functions are those of `trees_reference`.

They release the GIL: forests of several targets grow on several threads.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, register_jitable

from bifactor.arrays import Array
from bifactor.kernels.compile import compiled
from bifactor.models.imputation.trees_reference import BINS, LEAST, TIE, Trees, empty

SHIFT = 20
"""The number of bits of a count: an integer holds a sum of values above them, so that one addition updates both."""

ROWS = (1 << SHIFT) - 1


@intrinsic
def _first(context, bits):  # type: ignore[no-untyped-def]
    """The position of the lowest bit that is set."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.int64), codegen


@register_jitable
def _best_of(line, rows, y, leaf, total, lots):  # type: ignore[no-untyped-def]
    """The largest gain of a split by one feature, and the last bin that goes left; `lots` are 0 before and after.

    Most nodes have few rows, so empty bins are skipped.
    """
    seen = np.int64(0)
    for i in range(rows.size):
        b = line[rows[i]]
        lots[b] += y[i]
        seen |= 1 << np.int64(b)
    left, less, gain, last, size = 0.0, 0, 0.0, 0, rows.size
    whole = total * total / size
    while seen:
        b = _first(seen)
        seen &= seen - 1
        lot = lots[b]
        lots[b] = 0
        left += lot >> SHIFT
        less += lot & ROWS
        if less >= leaf and size - less >= leaf:
            found = left * left / less + (total - left) * (total - left) / (size - less) - whole
            if found > TIE * gain:
                gain, last = found, b
    return gain, last


@register_jitable
def _divide(line, last, rows, y):  # type: ignore[no-untyped-def]
    """Move the rows that go left to the front; return their number."""
    a, z = 0, rows.size - 1
    while a <= z:
        if line[rows[a]] <= last:
            a += 1
        else:
            rows[a], rows[z] = rows[z], rows[a]
            y[a], y[z] = y[z], y[a]
            z -= 1
    return a


def _grow(bins, values, drawn, features, leaf, feature, threshold, left, mean, spans):  # type: ignore[no-untyped-def]
    lots = np.zeros(BINS, np.int64)
    levels = features.shape[1]
    for t in range(drawn.shape[0]):
        rows, y = drawn[t].copy(), values[drawn[t]]
        count, at = 1, 0
        spans[0, 0], spans[0, 1], spans[0, 2] = 0, rows.size, 0
        while at < count:
            start, stop, level = spans[at, 0], spans[at, 1], spans[at, 2]
            here, there = rows[start:stop], y[start:stop]
            lot = 0
            for i in range(there.size):
                lot += there[i]
            total = float(lot >> SHIFT)
            mean[t, at] = total / there.size
            best, last, chosen = LEAST, 0, -1
            if level < levels and there.size >= 2 * leaf:
                for f in features[t, level]:
                    gain, b = _best_of(bins[f], here, there, leaf, total, lots)
                    if gain > TIE * best:
                        best, last, chosen = gain, b, f
            if chosen >= 0:
                middle = start + _divide(bins[chosen], last, here, there)
                feature[t, at], threshold[t, at], left[t, at] = chosen, last, count
                spans[count, 0], spans[count, 1], spans[count, 2] = start, middle, level + 1
                spans[count + 1, 0], spans[count + 1, 1], spans[count + 1, 2] = middle, stop, level + 1
                count += 2
            at += 1


def _descend(bins, feature, threshold, left, mean, used, found):  # type: ignore[no-untyped-def]
    for t in range(feature.shape[0]):
        for i in range(found.size):
            if used[t, i]:
                at = 0
                while feature[t, at] >= 0:
                    at = left[t, at] + (bins[feature[t, at], i] > threshold[t, at])
                found[i] += mean[t, at]


_grow_compiled, _descend_compiled = compiled(_grow), compiled(_descend)


def grow(bins: Array, values: Array, drawn: Array, features: Array, leaf: int) -> Trees:
    count, size = drawn.shape
    trees = empty(count, 2 * (size // leaf) + 1)
    lots = (values.astype(np.int64) << SHIFT) + 1
    _grow_compiled(bins, lots, drawn, features, leaf, *trees, np.empty((trees.mean.shape[1], 3), np.int64))
    return trees


def descend(bins: Array, trees: Trees, used: Array) -> Array:
    found = np.zeros(bins.shape[1])
    _descend_compiled(bins, *trees, used, found)
    return found
