"""Sums in place are those of new arrays, and leave what must not be written to alone."""

import numpy as np
import pytest

from bifactor.arrays import gaussian
from bifactor.kernels import blas


@pytest.fixture(autouse=True)
def few_rows(monkeypatch):
    monkeypatch.setattr(blas, "AT_A_TIME", 40)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64])
def test_sums_in_place(dtype):
    rng = np.random.default_rng(0)
    a, b = (gaussian(rng, (37, 4), dtype) for _ in range(2))
    wanted, turned = a + 3.0 * b, -a + 3.0 * b
    own = a.copy()
    assert blas.accumulated(own, lambda rows: 3.0 * b[rows]) is own
    np.testing.assert_array_equal(own, wanted)
    own = a.copy()
    assert blas.negated_axpy_(own, 3.0, b) is own
    np.testing.assert_array_equal(own, turned)
    own = a.copy()
    np.testing.assert_array_equal(blas.negated_axpy_(own, 0.0, own), -a)


def test_what_is_read_only_is_left_alone():
    a = np.ones((5, 2))
    a.flags.writeable = False
    np.testing.assert_array_equal(blas.accumulated(a, lambda rows: np.ones((5, 2))[rows]), 2 * np.ones((5, 2)))
    np.testing.assert_array_equal(a, 1)


def test_another_precision_is_an_error():
    with pytest.raises(TypeError):
        blas.accumulated(np.ones((5, 2), np.float32), lambda rows: np.ones((5, 2))[rows])


@pytest.mark.parametrize("shape", [(0, 3), (1, 3), (7, 0), (100, 3)])
def test_some_rows_are_all_rows(shape):
    a = np.arange(np.prod(shape)).reshape(shape)
    np.testing.assert_array_equal(np.concatenate([a[rows] for rows in blas.some_rows(a)]), a)
