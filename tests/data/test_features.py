"""Zeros and units of features: where they are, and that no size of numbers overflows."""

import numpy as np
import pytest
from scipy import sparse

from bifactor.data.features import Standard
from bifactor.errors import InputError


def read(table):
    matrix = sparse.csr_array(np.asarray(table, float))
    return Standard.of(matrix).apply(matrix, "features").toarray()


@pytest.mark.parametrize("zero", [0.0, -3.0, 2000.0])
@pytest.mark.parametrize("unit", [1.0, 2.0**-20, 1024.0])
def test_only_what_varies_is_left(zero, unit):
    rng = np.random.default_rng(0)
    numbers = np.round(rng.standard_normal((40, 2)), 3)
    table = np.c_[numbers, np.arange(40) % 5 == 0, np.arange(40) % 5 > 0, 3.0 * (np.arange(40) % 3 == 0), np.ones(40)]
    found = read(unit * table + zero)
    np.testing.assert_allclose(found, read(table), atol=1e-6 if zero else 1e-12)
    np.testing.assert_allclose(found[:, :2].mean(axis=0), 0, atol=1e-6)
    np.testing.assert_allclose(found[:, :2].std(axis=0), 1)
    np.testing.assert_allclose(found[:, 2], table[:, 2])
    np.testing.assert_allclose(found[:, 3], table[:, 3] - 1)
    np.testing.assert_allclose(found[:, 4], table[:, 4] / 3)
    assert not found[:, 5].any()


@pytest.mark.parametrize("size", [1e300, 1e-310, 5e-324])
@pytest.mark.parametrize("known", [2, 4, 9])
def test_numbers_of_any_size(size, known):
    table = np.zeros((9, 1))
    table[:known, 0] = size * (-1.0) ** np.arange(known)
    with np.errstate(over="raise", divide="raise", invalid="raise"):
        found = read(table)
    assert np.all(np.isfinite(found))
    assert 0.9 < np.max(np.abs(found)) < 3


@pytest.mark.parametrize("shape", [(0, 3), (5, 0), (1, 3), (0, 0)])
def test_little_or_nothing(shape):
    assert read(np.ones(shape)).shape == shape
    assert not read(np.ones(shape)).any()


def test_another_number_of_columns():
    with pytest.raises(InputError, match="features has 2 columns, but the fit had 3"):
        Standard.of(sparse.csr_array(np.eye(3))).apply(sparse.csr_array(np.ones((1, 2))), "features")
