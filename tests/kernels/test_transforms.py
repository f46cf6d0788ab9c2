"""Compiled transforms, Pauli sums and split products against their NumPy references."""

import numpy as np
import pytest

import bifactor as bf
from bifactor.arrays import gaussian
from bifactor.kernels import blas, threading, transforms_numba, transforms_reference
from bifactor.kernels import transforms_numba as pauli_numba
from bifactor.kernels import transforms_reference as pauli_reference
from bifactor.kernels.threading import blas_at_most

DTYPES = [np.float32, np.float64, np.complex64, np.complex128]


@pytest.fixture(autouse=True)
def threads_for_small_work(monkeypatch):
    monkeypatch.setattr(threading, "SMALL", 0)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1,), (2,), (4,), (8,), (3, 16), (5, 1), (2**13,), (3, 2**14), (2**17,)], ids=str)
def test_walsh_hadamard(shape, dtype):
    x = gaussian(np.random.default_rng(0), shape, dtype)
    wanted = transforms_reference.walsh_hadamard(x.copy())
    got = transforms_numba.walsh_hadamard(x.copy())
    np.testing.assert_allclose(got, wanted, atol=50 * np.finfo(dtype).eps * np.abs(wanted).max())
    again = transforms_numba.walsh_hadamard(got) / shape[-1]
    np.testing.assert_allclose(again, x, atol=50 * np.finfo(dtype).eps * np.abs(x).max())


def test_a_third_trip_through_memory(monkeypatch):
    monkeypatch.setattr(transforms_numba, "RUN", 64)
    monkeypatch.setattr(transforms_numba, "COLUMNS", 8)
    x = np.random.default_rng(0).standard_normal((2, 2**12))
    wanted = transforms_reference.walsh_hadamard(x.copy())
    np.testing.assert_allclose(transforms_numba.walsh_hadamard(x.copy()), wanted, atol=1e-10)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("indexed", [False, True])
@pytest.mark.parametrize("coded", [False, True])
def test_place_take_and_spread(dtype, indexed, coded):
    rng = np.random.default_rng(0)
    source = gaussian(rng, (500,), dtype)
    index = rng.permutation(500).astype(np.int32) if indexed else None
    code = rng.integers(4, size=500).astype(np.uint8) if coded else None
    table = np.array([1, 1, -1, -1], dtype=source.real.dtype)
    got, wanted = (
        kernel.place(source, index, code, table, np.empty_like(source))
        for kernel in (transforms_numba, transforms_reference)
    )
    np.testing.assert_array_equal(got, wanted)
    kept, factor = rng.permutation(500)[:60], gaussian(rng, (60,), dtype)
    z = transforms_numba.take(source, kept, factor)
    np.testing.assert_allclose(z, transforms_reference.take(source, kept, factor), rtol=1e-5)
    got, wanted = (
        kernel.spread(z, kept, factor, np.empty_like(source)) for kernel in (transforms_numba, transforms_reference)
    )
    np.testing.assert_allclose(got, wanted, rtol=1e-5)


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("strings", [None, 3, 40, 400])
def test_pauli_sums(dtype, strings):
    op = bf.operators.Pauli(5, strings, 0)
    rng = np.random.default_rng(1)
    U, V = gaussian(rng, (32, 3), dtype), gaussian(rng, (32, 3), dtype)
    w = rng.standard_normal(op.size).astype(U.real.dtype)
    tol = 2000 * np.finfo(dtype).eps
    np.testing.assert_allclose(
        pauli_numba.expectations(*op._groups, U, V), pauli_reference.expectations(*op._groups, U, V), atol=tol
    )
    got, wanted = pauli_numba.combine(*op._groups, w, U), pauli_reference.combine(*op._groups, w, U)
    np.testing.assert_allclose(got, wanted, atol=tol)
    assert got.dtype == dtype
    real = U.real.copy()
    got, wanted = pauli_numba.combine(*op._groups, w, real), pauli_reference.combine(*op._groups, w, real)
    np.testing.assert_allclose(got, wanted, atol=tol)


@pytest.mark.parametrize("dtype", DTYPES)
def test_split_products(dtype):
    rng = np.random.default_rng(0)
    A, B = gaussian(rng, (37, 23), dtype), gaussian(rng, (23, 5), dtype)
    tol = 100 * np.finfo(dtype).eps
    np.testing.assert_allclose(blas.matmul(A, B), A @ B, atol=tol)
    np.testing.assert_allclose(blas.matmul(A.T, A[:, :4]), A.T @ A[:, :4], atol=10 * tol)
    out = np.empty((37, 5), dtype)
    assert blas.matmul(A, B, out) is out
    with blas_at_most(1):
        np.testing.assert_allclose(blas.matmul(A[:1], B), A[:1] @ B, atol=tol)
