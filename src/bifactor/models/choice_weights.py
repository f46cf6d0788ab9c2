"""Choices as ones with weights that express confidence."""

from dataclasses import replace

import numpy as np
from scipy import sparse

from bifactor.arrays import Array
from bifactor.errors import InputError
from bifactor.tables import Observations


def weights_of(counts: Array) -> Array:
    """Weights of counts r: 1 + log r if r > 1, else r."""
    if np.any(counts < 0):
        raise InputError(f"A value is {counts.min():g}, but choices have counts above 0. Leave it out.")
    return np.where(counts > 1, 1 + np.log(np.maximum(counts, 1)), counts)


def as_choices(data: Observations) -> Observations:
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
