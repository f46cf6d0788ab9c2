"""Clicks, plays and purchases as ones with weights that express confidence."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from bifactor.arrays import Array
from bifactor.data import Observations, Summary, read
from bifactor.errors import InputError
from bifactor.executors import BlockData
from bifactor.kernels.entry_layout import EntryLayout


def weights_of(counts: Array) -> Array:
    """Weights of counts r: 1 + log r if r > 1, else r."""
    if np.any(counts < 0):
        raise InputError(f"A value is {counts.min():g}, but choices have counts above 0. Leave it out.")
    return np.where(counts > 1, 1 + np.log(np.maximum(counts, 1)), counts)


def counts_to_weights(data: Observations) -> Observations:
    """Each entry once, as 1, with the weight of its count r: 1 + log r if r > 1, else r. Pairs count as 1."""
    values = data.values if data.values.size == data.rows.size else np.ones(data.rows.size)
    counts = sparse.csr_array((values, (data.rows, data.cols)), shape=data.shape)
    weights_of(counts.data)
    counts.eliminate_zeros()
    weights = weights_of(counts.data)
    if data.weights is not None:
        weighed = sparse.csr_array((values * data.weights, (data.rows, data.cols)), shape=data.shape)
        weights *= weighed[counts.nonzero()] / counts.data
    counts.data = weights.astype(counts.dtype, copy=False)
    found = chosen_entries(counts)
    return replace(
        found,
        row_names=data.row_names,
        column_names=data.column_names,
        origin=data.origin,
        row_features=data.row_features,
        column_features=data.column_features,
    )


def chosen_entries(weights: sparse.csr_array) -> Observations:
    """The stored entries of a matrix, as ones with these weights."""
    rows, cols = weights.tocoo().coords
    shape = (int(weights.shape[0]), int(weights.shape[1]))
    return Observations(rows.astype(np.int64), cols.astype(np.int64), np.ones_like(weights.data), shape, weights.data)


@dataclass(frozen=True)
class CountsToClicks:
    """The recoding of `counts_to_weights`: each entry once, as 1, with a weight from its count."""

    def observations(self, data: Observations) -> Observations:
        return counts_to_weights(data)

    def block(self, loaded: BlockData) -> BlockData:
        layout, y, given = loaded
        outer, inner = layout.outer, layout.inner
        again = (outer[1:] == outer[:-1]) & (inner[1:] == inner[:-1])  # entries at the same place are adjacent
        if again.any() or np.any(y <= 0):
            first = np.flatnonzero(np.concatenate([[True], ~again]))
            counts = np.add.reduceat(y.astype(np.float64), first)
            weights = weights_of(counts)
            if given is not None:
                weights *= np.add.reduceat(y.astype(np.float64) * given, first) / np.where(counts > 0, counts, 1)
            stay = counts > 0
            first, weights = first[stay], weights[stay]
            tiles = np.searchsorted(first, layout.tiles).astype(np.int64)
            layout = EntryLayout(outer[first], inner[first], layout.n_outer, layout.n_inner, tiles)
        else:
            weights = weights_of(y) if given is None else weights_of(y) * given
        sure = None if np.all(weights == 1) else weights.astype(y.dtype)
        return BlockData(layout, np.ones(layout.size, y.dtype), sure)

    def summary(self, summary: Summary) -> Summary | None:
        return None

    def is_weighted(self, before: bool) -> bool:
        return True


# Reading of choices: clicks, plays and purchases with one line for each.


def lines_of(
    source: Any, row: Any, col: Any, value: Any, weight: Any, hints: tuple[str, ...] | None = None, **how: Any
) -> Observations:
    """Choices, with counts if there is a column of them; `how` is as for `data.read`."""
    if value is None and weight is None:
        data = read(source, row=row, col=col, wide=False, values=False, hints=hints, **how)
        return replace(data, values=np.ones(data.rows.size))
    if value is not None:
        return read(source, row=row, col=col, value=value, weight=weight, wide=False, **how)
    data = read(source, row=row, col=col, value=weight, wide=False, **how)
    origin = None if data.origin is None else replace(data.origin, header=data.origin.header[:2])
    return replace(data, values=np.ones_like(data.values), weights=data.values, origin=origin).known().weighed()


def later_lines(source: Any, hints: tuple[str, ...], weight: Any = None, **how: Any) -> Observations:
    """More choices, in the same columns as those of a fit; counts are read if the fit had them."""
    if weight is not None:
        named = {name: how.pop(name, None) for name in ("row", "col", "value")}
        return lines_of(source, **named, weight=weight, hints=hints, **how)
    data = read(source, wide=False, values=None, hints=hints, **how)
    return data if data.values.size else replace(data, values=np.ones(data.rows.size))


def matrix_of(data: Observations) -> sparse.csr_array:
    """Matrix of the weights of choices."""
    return sparse.csr_array((data.weights, (data.rows, data.cols)), shape=data.shape)
