"""Arrays in parts elsewhere: the same numbers as NumPy's."""

import numpy as np
import pytest

from bifactor import arrays
from bifactor.arrays.rows import Each, Placement, Rows, spread
from bifactor.kernels.blas import gram, matmul, wide_gram


class Nearby(Placement):
    """Parts in a list."""

    def __init__(self, cuts):
        self.cuts = cuts

    def apply(self, function, operands):
        def at(a, k):
            return a.handles[k] if isinstance(a, Rows) else a[k] if isinstance(a, Each) else a

        return [function(*(at(a, k) for a in operands)) for k in range(len(self.cuts) - 1)]

    def collect(self, handles):
        return list(handles)

    def spread(self, parts):
        return list(parts)


@pytest.fixture(params=[np.float32, np.float64])
def pairs(request):
    rng = np.random.default_rng(0)
    near = Nearby((0, 7, 8, 30))
    both = [rng.standard_normal((30, 3)).astype(request.param) for _ in range(2)]
    return near, both, [spread(a, near) for a in both]


def close(found, known):
    assert found.dtype == known.dtype
    assert found.shape == known.shape
    np.testing.assert_allclose(arrays.host(found), known, rtol=1e-5 if known.dtype == np.float32 else 1e-12, atol=1e-6)


def test_arithmetic(pairs):
    _, (a, b), (A, B) = pairs
    small = np.arange(3, dtype=a.dtype)
    for function in (
        lambda x, y: x + 2 * y,
        lambda x, y: (x - y) / 3,
        lambda x, y: small * x - y,
        lambda x, y: -x / (1 + y * y),
        lambda x, y: arrays.hstack(x, y),
        lambda x, y: arrays.columns(x, np.array([True, False, True])),
        lambda x, y: arrays.columns(x, slice(1, 3)),
        lambda x, y: matmul(x, np.eye(3, dtype=a.dtype)[:, :2]),
        lambda x, y: arrays.cast(x, np.float64),
        lambda x, y: arrays.spread(x, np.array([0, 2, 3]), 5),
        lambda x, y: x[:, 0][:, None] * y,
    ):
        close(function(A, B), function(a, b))


def test_what_comes_out_small_is_numpys(pairs):
    _, (a, b), (A, B) = pairs
    for function in (arrays.inner, gram, wide_gram, lambda x, y: arrays.column_norms(x), arrays.product_norm):
        np.testing.assert_allclose(function(A, B), function(a, b), rtol=1e-5)
    for function in (arrays.norm, arrays.mean_of, arrays.largest_of, arrays.smallest_of):
        np.testing.assert_allclose(function(A[:, 1]), function(a[:, 1]), rtol=1e-5)


def test_orthonormal_columns(pairs):
    _, (a, _), (A, _) = pairs
    Q, R = arrays.orthonormal(A)
    assert isinstance(Q, Rows)
    np.testing.assert_allclose(gram(Q, Q), np.eye(3), atol=1e-5)
    np.testing.assert_allclose(arrays.host(Q) @ R, a, atol=1e-5)
    np.testing.assert_allclose(np.abs(arrays.triangular(A)), np.abs(np.linalg.qr(a, mode="r")), atol=1e-5)


def test_only_arrays_as_long_as_all_parts_are_spread(pairs):
    _, _, (A, _) = pairs
    assert isinstance(arrays.beside(np.ones(30), A), Rows)
    assert isinstance(arrays.beside(np.ones((29, 2)), A), np.ndarray)
    assert isinstance(arrays.zeros((30, 2), np.float32, A), Rows)
    assert isinstance(arrays.zeros((3, 2), np.float32, A), np.ndarray)
    assert arrays.none_of(A).shape[0] == 0
    assert arrays.dtype_of(arrays.zeros((30, 2), np.float32, A)) == np.float32


def test_rows_are_not_taken_one_by_one(pairs):
    _, _, (A, _) = pairs
    with pytest.raises(TypeError, match="host"):
        A[3:5]
