"""Truncated SVD and eigenpairs of lazy matrices against LAPACK."""

import numpy as np
import pytest

from bifactor.arrays import gaussian
from bifactor.linear_map import Dense
from bifactor.operators import Entries
from bifactor.svd import spectral_norm, truncated_eigh, truncated_svd

DTYPES = [np.float32, np.float64, np.complex64, np.complex128]


def decaying(m, n, dtype, seed=0, rate=0.8):
    rng = np.random.default_rng(seed)
    k = min(m, n)
    A, B = (
        np.linalg.qr(gaussian(rng, (size, k), np.complex128 if np.dtype(dtype).kind == "c" else float))[0]
        for size in (m, n)
    )
    return ((A * rate ** np.arange(k)) @ B.conj().T).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(90, 70), (70, 90), (300, 80), (4, 3), (1, 5), (200, 1)], ids=str)
def test_svd(shape, dtype):
    X = decaying(*shape, dtype)
    rank = min(3, *shape)
    A, s, B = truncated_svd(Dense(X), rank, np.random.default_rng(0))
    wanted = np.linalg.svd(X, compute_uv=False)[:rank]
    tol = 1e-4 if np.finfo(dtype).eps > 1e-10 else 1e-9
    np.testing.assert_allclose(s, wanted, rtol=tol)
    np.testing.assert_allclose(A.conj().T @ A, np.eye(rank), atol=10 * tol)
    np.testing.assert_allclose(B.conj().T @ B, np.eye(rank), atol=10 * tol)
    assert np.linalg.norm(X @ B - A * s) <= 10 * tol
    assert A.dtype == B.dtype == dtype


def test_svd_of_a_flat_spectrum_still_gives_singular_values():
    X = np.linalg.qr(np.random.default_rng(0).standard_normal((200, 200)))[0]
    np.testing.assert_allclose(truncated_svd(Dense(X), 5, np.random.default_rng(0))[1], np.ones(5), rtol=1e-10)


def test_svd_of_noise_is_close():
    X = np.random.default_rng(3).standard_normal((500, 400))
    wanted = np.linalg.svd(X, compute_uv=False)[:10]
    np.testing.assert_allclose(truncated_svd(Dense(X), 10, np.random.default_rng(0))[1], wanted, rtol=1e-4)


@pytest.mark.parametrize("rank_of_matrix", [0, 1, 3])
def test_svd_of_low_rank_and_zero_matrices(rank_of_matrix):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((120, rank_of_matrix)) @ rng.standard_normal((rank_of_matrix, 100))
    A, s, B = truncated_svd(Dense(X), 5, rng)
    assert np.isfinite(A).all()
    assert np.isfinite(B).all()
    np.testing.assert_allclose(s, np.linalg.svd(X, compute_uv=False)[:5], atol=1e-6)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [6, 120])
def test_eigh_takes_the_hermitian_part_and_the_largest_values(n, dtype):
    X = gaussian(np.random.default_rng(2), (n, n), dtype)
    X += np.diag(np.linspace(0, 3 * n**0.5, n)).astype(dtype)
    H = (X + X.conj().T) / 2
    for sign in (1, -1):
        values, A = truncated_eigh(Dense(X), 2, np.random.default_rng(0), sign=sign)
        np.testing.assert_allclose(values, np.linalg.eigvalsh(sign * H)[::-1][:2], rtol=1e-4)
        assert np.linalg.norm(sign * H @ A - A * values) <= 1e-3 * abs(values[0])


def test_sampled_matrix_is_never_formed():
    # 10¹¹ entries: a dense step anywhere would not fit.
    m, n = 1_000_000, 100_000
    rng = np.random.default_rng(0)
    op = Entries(rng.integers(m, size=2000), rng.integers(n, size=2000), (m, n))
    assert 1.0 <= spectral_norm(op.adjoint(np.ones(2000)), rng) < 4.0
