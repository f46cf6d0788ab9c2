"""Matrices with holes and triples as observations."""

import numpy as np
import pytest
from scipy import sparse

from bifactor.data.observations import LARGEST_SIDE, from_matrix, from_triples, is_triples
from bifactor.errors import InputError


def test_what_are_triples():
    assert is_triples(([0], [0], [1.0]))
    assert not is_triples([[0], [0], [1.0]])
    assert not is_triples((np.eye(2), np.eye(2), np.eye(2)))
    assert not is_triples(([0], [0]))


def test_repeated_coordinates():
    rows, cols, values = np.array([0, 0, 1]), np.array([1, 1, 0]), np.array([2.0, 5.0, 1.0])
    matrix = sparse.coo_array((values, (rows, cols)), shape=(2, 2))
    assert sorted(from_matrix(matrix).values) == [1, 7]
    assert matrix.nnz == 3  # the caller's is as it was
    assert sorted(from_triples((rows, cols, values)).values) == [1, 2, 5]


def test_an_unstored_zero_is_missing_and_a_stored_nan_too():
    data = from_matrix(sparse.csr_array(([np.nan, 0.0], ([0, 1], [0, 1])), shape=(2, 2)))
    assert (data.rows.tolist(), data.cols.tolist(), data.values.tolist()) == ([1], [1], [0.0])


def test_matrices_have_numbers_for_names():
    for data in (from_matrix(np.ones((2, 3))), from_triples(([1], [2], [1.0]))):
        assert data.shape == (2, 3)
        assert (data.row_names, data.column_names, data.origin, data.weights) == (None, None, None, None)


def test_the_shape_is_that_of_the_matrix():
    table = np.full((4, 3), np.nan)
    table[1, 1] = 5
    assert from_matrix(table).shape == (4, 3)
    assert from_matrix(sparse.csr_array((4, 3))).values.size == 0
    assert from_triples(([1], [1], [5.0])).shape == (2, 2)
    assert from_triples(([1], [1], [5.0]), columns=9).shape == (2, 9)
    assert from_triples(([], [], []), columns=9).values.size == 0


def test_many_triples_may_have_large_indices():
    assert from_triples((np.array([LARGEST_SIDE - 1]), np.array([0]), np.ones(1))).shape == (LARGEST_SIDE, 1)
    with pytest.raises(InputError, match=f"rows goes up to {LARGEST_SIDE}, but there are 1 triples"):
        from_triples((np.array([LARGEST_SIDE]), np.array([0]), np.ones(1)))


def test_weights_go_with_their_entries():
    table = np.array([[1.0, np.nan], [2.0, 3.0]])
    weights = np.array([[1.0, 9.0], [0.0, 4.0]])
    data = from_matrix(table, weights)
    assert (data.values.tolist(), data.weights.tolist()) == ([1, 3], [1, 4])
    rows, cols = np.nonzero(~np.isnan(table))
    same = from_triples((rows, cols, table[rows, cols]), weights[rows, cols])
    assert (same.values.tolist(), same.weights.tolist(), same.shape) == ([1, 3], [1, 4], (2, 2))
