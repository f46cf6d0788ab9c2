"""Arrays in parts elsewhere: the same numbers as NumPy's."""

import numpy as np
import pytest

from bifactor import arrays
from bifactor.executors.row_array import RowArray, RowPlacement, map_parts, spread
from bifactor.kernels.blas import gram, matmul, products, wide_gram


class Nearby(RowPlacement):
    """Parts in a list."""

    def __init__(self, cuts):
        super().__init__(cuts)
        self.questions = 0

    def run(self, plan):
        self.questions += 1
        count = len(self.cuts) - 1
        both = [plan.program.run(plan.each_of(k), [a.handles[k] for a in plan.bundles]) for k in range(count)]
        plan.settle([kept for kept, _ in both], len(plan.kept))
        return [asked for _, asked in both]

    def spread(self, parts):
        return [(part,) for part in parts]


@pytest.fixture(params=[np.float32, np.float64])
def pairs(request):
    rng = np.random.default_rng(0)
    near = Nearby((0, 7, 8, 30))
    both = [rng.standard_normal((30, 3)).astype(request.param) for _ in range(2)]
    return near, both, [spread(a, near) for a in both]


def close(found, known):
    assert found.dtype == known.dtype
    assert found.shape == known.shape
    np.testing.assert_allclose(
        arrays.to_numpy(found), known, rtol=1e-5 if known.dtype == np.float32 else 1e-12, atol=1e-6
    )


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
    assert isinstance(Q, RowArray)
    np.testing.assert_allclose(gram(Q, Q), np.eye(3), atol=1e-5)
    np.testing.assert_allclose(arrays.to_numpy(Q) @ R, a, atol=1e-5)
    np.testing.assert_allclose(np.abs(arrays.triangular(A)), np.abs(np.linalg.qr(a, mode="r")), atol=1e-5)


def test_only_arrays_as_long_as_all_parts_are_spread(pairs):
    _, _, (A, _) = pairs
    assert isinstance(arrays.to_device_of(np.ones(30), A), RowArray)
    assert isinstance(arrays.to_device_of(np.ones((29, 2)), A), np.ndarray)
    assert isinstance(arrays.zeros((30, 2), np.float32, A), RowArray)
    assert isinstance(arrays.zeros((3, 2), np.float32, A), np.ndarray)
    assert arrays.empty_of(A).shape[0] == 0
    assert arrays.dtype_of(arrays.zeros((30, 2), np.float32, A)) == np.float32


def test_rows_are_not_taken_one_by_one(pairs):
    _, _, (A, _) = pairs
    with pytest.raises(TypeError, match="host"):
        A[3:5]


def counted(calls):
    def function(part):
        calls.append(part)
        return part + 1

    return function


def test_functions_run_when_a_number_is_asked_for(pairs):
    near, (a, b), (A, B) = pairs
    C = A + B
    for _ in range(3000):
        C = C * 1.0
    assert near.questions == 0
    np.testing.assert_allclose(arrays.inner(C, A), arrays.inner(a + b, a), rtol=1e-5)
    assert near.questions == 1


def test_what_is_held_is_made_once_and_what_is_not_is_not_kept(pairs):
    _, (a, b), (A, B) = pairs
    calls = []
    held = map_parts(counted(calls), A)
    calls.clear()  # of its shape
    for _ in range(2):
        np.testing.assert_allclose(arrays.inner(held * 2 - B, B), arrays.inner(2 * (a + 1) - b, b), rtol=1e-4)
    assert len(calls) == 3
    assert held.noted.bundle.count == 2  # itself and the difference, which inner holds
    assert not held.noted.operands


def test_products_come_in_one_round_and_are_known_from_then_on(pairs):
    near, (a, b), (A, B) = pairs
    found, (gram_AB, small) = products([(A, A), (A, B), (B, B), (a, b)], [(A, B), (a, b)])
    np.testing.assert_allclose(found, arrays.inners((a, a), (a, b), (b, b), (a, b)), rtol=1e-5)
    np.testing.assert_allclose(gram_AB, small, rtol=1e-5)
    assert near.questions == 1
    for _ in range(2):
        np.testing.assert_allclose(arrays.inner(A, A), arrays.inner(a, a), rtol=1e-5)
        np.testing.assert_allclose(arrays.inner(A, B), arrays.inner(a, b), rtol=1e-5)
        np.testing.assert_allclose(arrays.norm(B), arrays.norm(b), rtol=1e-5)
        np.testing.assert_allclose(gram(A, B), gram(a, b), rtol=1e-5)
    assert near.questions == 1


def test_sums_of_arrays_that_are_gone_are_not_known(pairs):
    near, (a, b), (A, B) = pairs
    known = arrays.inners((a, a + a), (a, a + b))
    for _ in range(2):
        np.testing.assert_allclose(arrays.inners((A, A + A), (A, A + B)), known, rtol=1e-5)
    assert near.questions == 2


def test_small_operands_may_be_written_to_afterwards(pairs):
    _, (a, _), (A, _) = pairs
    small = np.eye(3, dtype=a.dtype)
    product = A @ small
    small[:] = 7
    np.testing.assert_array_equal(arrays.to_numpy(product), a)
