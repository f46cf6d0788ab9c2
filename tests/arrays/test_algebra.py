"""Tall arrays are made orthonormal in parts, as they are at once."""

import numpy as np
import pytest

from bifactor.arrays import gaussian, linalg, orthonormal, triangular


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
@pytest.mark.parametrize("rows", [65, 64, 100, 128])
def test_long_arrays_are_made_orthonormal_in_parts(monkeypatch, dtype, rows):
    monkeypatch.setattr(linalg, "QR_ROWS", 16)
    rng = np.random.default_rng(0)
    A = gaussian(rng, (rows, 5), dtype)
    A[:, 3] = A[:, 1]  # of less than full rank
    A.flags.writeable = False
    Q, R = orthonormal(A)
    eps = np.finfo(dtype).eps
    assert Q.dtype == R.dtype == dtype
    assert Q.shape == (rows, 5)
    np.testing.assert_allclose(Q @ R, A, atol=50 * eps)
    np.testing.assert_allclose(Q.conj().T @ Q, np.eye(5), atol=50 * eps)
    np.testing.assert_allclose(np.triu(R), R, atol=0)
    T = triangular(A)
    np.testing.assert_allclose(T.conj().T @ T, A.conj().T @ A, atol=20 * rows * eps)
