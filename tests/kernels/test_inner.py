"""Inner products in double precision: compiled against NumPy's of copies."""

import numpy as np
import pytest

from bifactor.kernels import blas_numba, blas_reference
from bifactor.kernels.blas import inner, norm


@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (7, 5), (3001, 37)])
def test_compiled_sums_are_those_of_the_reference(shape):
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape).astype(np.float32) for _ in range(2))
    size = float(np.sum(np.abs(a.astype(np.float64) * b)))
    assert blas_numba.inner(a, b) == pytest.approx(blas_reference.inner(a, b), abs=1e-14 * size)


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_squares_beyond_single_precision(scale):
    a = np.full((500, 200), scale, np.float32)
    assert norm(a) == pytest.approx(scale * 1e5**0.5, rel=1e-6)


def test_any_array_has_an_inner_product():
    rng = np.random.default_rng(0)
    a = rng.standard_normal((400, 300)).astype(np.float32)
    a.flags.writeable = False
    wanted = blas_reference.inner(a, a)
    for one in (a, a.T, np.asfortranarray(a), a[::-1][::-1]):
        assert inner(one, one) == pytest.approx(wanted, rel=1e-12)
    wide = a.astype(np.complex64) * (1 + 1j)
    assert inner(wide, wide) == pytest.approx(2 * wanted, rel=1e-6)
    assert np.isnan(inner(np.full((300, 300), np.nan, np.float32), np.ones((300, 300), np.float32)))
