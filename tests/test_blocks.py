"""Blocks of curvature: one small matrix for each row of a factor, against dense matrices."""

import numpy as np
import pytest

import bifactor as bf
from bifactor.arrays import gaussian, herm
from bifactor.blocks import Exact, Shared, two_weights
from bifactor.factors import Free
from bifactor.kernels import row_blocks_numba, row_blocks_reference

DTYPES = (np.float32, np.float64, np.complex64, np.complex128)


def semidefinite(rng, rank, dtype=np.float64):
    A = gaussian(rng, (2 * rank, rank), dtype)
    return herm(A) @ A


def dense(blocks: Shared | Exact, rows: int, rank: int) -> np.ndarray:
    if isinstance(blocks, Exact):
        return np.swapaxes(row_blocks_reference.transposed(blocks.packed, blocks.rank), 1, 2)
    total = np.multiply.outer(np.broadcast_to(blocks.ridge, rows), np.eye(rank))
    for a, B in blocks.pairs:
        total = total + np.multiply.outer(np.broadcast_to(a, rows), B)
    return total


def divided(rows: np.ndarray, M: np.ndarray) -> np.ndarray:
    return np.stack([np.linalg.solve(m.T, a) for m, a in zip(M, rows, strict=True)])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("case", ["one", "one varied", "varied ridge", "both", "several alike"])
def test_a_few_shared_matrices_are_divided_by_exactly(dtype, case):
    rng = np.random.default_rng(0)
    B, C, w = semidefinite(rng, 4, dtype), semidefinite(rng, 4, dtype), rng.random(9) + 0.1
    blocks = {
        "one": Shared(((2.0, B),), 0.3),
        "one varied": Shared(((w, B),), 0.3),
        "varied ridge": Shared(((w, B),), w[::-1].copy()),
        "both": Shared(((w, B), (1.5, C)), 0.3),
        "several alike": Shared(((0.5, B), (1.5, C)), 0.3),
    }[case]
    rows = gaussian(rng, (9, 4), dtype)
    found = blocks.divide(rows)
    assert found.dtype == rows.dtype
    wanted = divided(rows, dense(blocks, 9, 4))
    assert np.linalg.norm(found - wanted) <= 1e3 * np.finfo(dtype).eps * np.linalg.norm(wanted)


def test_of_several_varied_ones_the_most_varied_is_kept():
    rng = np.random.default_rng(0)
    B, C, w = semidefinite(rng, 3), semidefinite(rng, 3), rng.random(7) + 0.1
    rows = rng.standard_normal((7, 3))
    even = np.full(7, 2.0)
    found = Shared(((even, C), (w, B))).divide(rows)
    np.testing.assert_allclose(found, divided(rows, dense(Shared(((w, B), (2.0, C))), 7, 3)), rtol=1e-9)


def test_weights_that_are_combinations_of_two_are_divided_by_exactly():
    rng = np.random.default_rng(0)
    B, C, D = (semidefinite(rng, 4) for _ in range(3))
    p, q = rng.random(9) * 100, rng.random(9) + 0.1
    p[2] = 0
    rows = rng.standard_normal((9, 4))
    for blocks in (
        Shared(((p, B), (2.0, C)), 0.1 * p + 3.0),
        Shared(((p, B), (2.0, C)), 0.1 * p),
        Shared(((2.0, C), (p, B), (0.5 * p + 1.0, D))),
        Shared(((p, B), (q, C)), 0.1 * p + 0.4 * q),
        Shared(((p, B), (q, C), (p + q, D)), 2.0 * q),
        Shared(((p, B), (3 * p, C)), 0.1),
        Shared(((np.zeros(9), D), (q, B), (2.0, C))),
    ):
        found, wanted = blocks.divide(rows), divided(rows, dense(blocks, 9, 4))
        assert np.linalg.norm(found - wanted) <= 1e-9 * np.linalg.norm(wanted)


def test_other_weights_are_fitted_by_two():
    rng = np.random.default_rng(1)
    B, C, D = (semidefinite(rng, 4) for _ in range(3))
    p, q = 1 + 50 * rng.random(200), 10 + rng.random(200)
    rows = rng.standard_normal((200, 4))
    blocks = Shared(((p, B), (q, C), (0.1, D)), 3 + 0.1 * rng.random(200))
    found, wanted = blocks.divide(rows), divided(rows, dense(blocks, 200, 4))
    assert np.linalg.norm(found - wanted) <= 0.02 * np.linalg.norm(wanted)
    a, b, first, second = two_weights([p, 60 - p, 1.0], [1.0, 1.0, 1.0])
    assert min(*first, *second) >= 0
    assert np.all(a >= 0)
    assert np.all(np.isfinite(a + b))


def test_a_row_without_any_weight_counts_as_the_mean_one():
    rng = np.random.default_rng(2)
    B, C, p, q = semidefinite(rng, 3), semidefinite(rng, 3), rng.random(6) + 0.1, rng.random(6) + 0.1
    p[4] = q[4] = 0
    found = Shared(((p, B), (q, C))).divide(np.ones((6, 3)))
    assert np.all(np.isfinite(found))
    for dtype in (np.float32, np.float64):
        nothing = np.zeros((3, 3), dtype)
        assert np.all(np.isfinite(Shared(((p, nothing), (0.2, nothing))).divide(np.ones((6, 3), dtype))))


@pytest.mark.parametrize("kernel", [row_blocks_numba, row_blocks_reference])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_exact_blocks_are_solved(kernel, dtype):
    rng = np.random.default_rng(1)
    for rank in (1, 2, 5, 17):
        M = np.stack([semidefinite(rng, rank, dtype) for _ in range(6)])
        k, h = row_blocks_reference.triangle(rank)
        packed, rows = M[:, k, h], gaussian(rng, (6, rank), dtype)
        found = kernel.solve(kernel.cholesky(packed, rank), rows)
        wanted = divided(rows.astype(float), M.astype(float))
        assert np.linalg.norm(found - wanted) <= 1e4 * np.finfo(dtype).eps * np.linalg.norm(wanted)
        R = gaussian(rng, (rank, rank), dtype)
        close = {"rtol": 0, "atol": 1e3 * np.finfo(dtype).eps * rank**2 * np.abs(M).max() * np.abs(R).max() ** 2}
        np.testing.assert_allclose(kernel.times(packed, rows), np.einsum("ikl,il->ik", M, rows), **close)
        some = np.flatnonzero(k != h)
        wanted = rows[:, k] * rows[:, h] + np.where(k != h, packed, 0)
        np.testing.assert_allclose(kernel.moments(rows, packed[:, some], some), wanted, **close)
        np.testing.assert_allclose(kernel.turned(packed, R), (R.T @ M @ R)[:, k, h], **close)


@pytest.mark.parametrize("shape", [(12, 7), (7, 12)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_blocks_of_entries_are_sums_over_a_row(shape, dtype):
    rng = np.random.default_rng(2)
    i, j = np.nonzero(rng.random(shape) < 0.6)
    y, w = gaussian(rng, i.shape, dtype), (rng.random(i.size) + 0.1).astype(np.finfo(dtype).dtype)
    problem = bf.Problem(bf.losses.Squared(), bf.operators.Entries(i, j, shape), y, w)
    x = Free().random(rng, shape, 3, dtype)
    W = np.zeros(shape)
    W[i, j] = w
    for side, (other, curvature) in enumerate(((x.right, W), (x.left, W.T))):
        wanted = np.einsum("ij,jk,jl->ikl", curvature, other.conj(), other)
        for rows in (None, (2, 5)):
            blocks = problem.f.exact(x, side, rows)
            found = dense(blocks, len(blocks.packed), 3)
            part = wanted if rows is None else wanted[slice(*rows)]
            assert np.linalg.norm(found - part) <= 1e3 * np.finfo(dtype).eps * np.linalg.norm(part)


@pytest.mark.parametrize("name", ["Squared", "Logistic", "Poisson", "Huber"])
def test_exact_blocks_are_the_diagonal_of_the_hessian(name, make_problem):
    from tests.conftest import LOSSES

    problem = make_problem(8, 6, loss=LOSSES[name], weights=None)
    x = Free().random(np.random.default_rng(0), (8, 6), 2, np.float64)
    hessian = problem.f.hessian(x)
    for side, rows in ((0, 8), (1, 6)):
        blocks = dense(problem.f.exact(x, side), rows, 2)
        for i in range(rows):
            for k in range(2):
                d = 0.0 * x
                (d.right if side else d.left)[i, k] = 1.0
                np.testing.assert_allclose(hessian(d)[side][i], blocks[i, k], atol=1e-9)


def test_rows_that_fix_nothing_are_lifted():
    rank, packed = 3, np.zeros((4, 6))
    packed[1] = [1, 0, 1, 0, 0, 1]
    blocks = Exact(packed, rank)
    assert np.all(np.isfinite(blocks.lifted(1e-12, 0.0).divide(np.ones((4, 3)))))
    np.testing.assert_allclose(blocks.lifted(0.0, 0.1).divide(np.ones((4, 3)))[1], 1 / 1.025, rtol=1e-3)


def test_wrapped_operators_keep_their_blocks():
    rng = np.random.default_rng(3)
    i, j = np.nonzero(rng.random((9, 7)) < 0.7)
    y, half = rng.standard_normal(i.size), rng.random(i.size) < 0.5
    A, x = bf.operators.Entries(i, j, (9, 7)), Free().random(rng, (9, 7), 2, np.float64)
    first, second = (bf.operators.Entries(i[part], j[part], (9, 7)) for part in (half, ~half))
    plain = bf.Problem(bf.losses.Squared(), A, y).f
    others = {
        "Stacked(A, B)": (bf.operators.Stacked(first, second), np.concatenate([y[half], y[~half]]), 1.0),
        "Stacked(A)": (bf.operators.Stacked(A), y, 1.0),
        "Recomputed": (bf.operators.Recomputed(A), y, 1.0),
        "Scaled": (bf.operators.Scaled(A, -3.0), y, 9.0),
    }
    for name, (operator, data, scale) in others.items():
        f = bf.Problem(bf.losses.Squared(), operator, data).f
        for side in (0, 1):
            np.testing.assert_allclose(f.exact(x, side).packed, scale * plain.exact(x, side).packed, err_msg=name)
            (own, mean), (other, B) = *plain.expected(x, side).pairs, *f.expected(x, side).pairs
            np.testing.assert_allclose(np.multiply.outer(other, B), scale * np.multiply.outer(own, mean), err_msg=name)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rank", [1, 2, 5, 17])
def test_inverses_and_determinants(rank, dtype):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((30, rank, rank + 4))
    M = A @ A.transpose(0, 2, 1)
    first, second = row_blocks_reference.triangle(rank)
    exact = Exact(M[:, first, second].astype(dtype), rank)
    tol = 1e-3 if dtype == np.float32 else 1e-9
    inverse = row_blocks_reference.transposed(exact.inverse().packed, rank)
    np.testing.assert_allclose(inverse @ M, np.broadcast_to(np.eye(rank), M.shape), atol=tol)
    np.testing.assert_allclose(exact.log_determinants(), np.linalg.slogdet(M)[1], atol=tol)
    rows = rng.standard_normal((30, rank)).astype(dtype)
    np.testing.assert_allclose(exact.times(rows), np.einsum("ik,ikl->il", rows, M), rtol=tol, atol=tol)
    np.testing.assert_allclose(exact.divide(exact.times(rows)), rows, atol=10 * tol)
