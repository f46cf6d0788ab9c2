"""Gaussian measurements, held and drawn again."""

import tracemalloc

import numpy as np
import pytest

import bifactor as bf
from bifactor.arrays import gaussian
from bifactor.errors import InputError
from bifactor.factors import Free
from bifactor.losses import DataFit
from bifactor.operators.gaussian import EXACT, Gaussian
from bifactor.testing import check_operator

RNG = np.random.default_rng(0)
DTYPES = [np.float32, np.float64, np.complex64, np.complex128]


def explicit(op):
    """The size × mn matrix of A, from its adjoint of unit vectors."""
    return np.stack([(op.adjoint(e) @ np.eye(op.shape[1])).ravel() for e in np.eye(op.size)])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("block", [None, 7])
@pytest.mark.parametrize(("shape", "size"), [((3, 4), 8), ((1, 1), 1)])
def test_laws(shape, size, block, dtype):
    check_operator(Gaussian(shape, size, rng=1, block=block), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("block", [1, 3, 16, 100])
def test_the_block_changes_nothing(block, dtype):
    held, drawn = Gaussian((5, 4), 16, rng=3), Gaussian((5, 4), 16, rng=3, block=block)
    U, V, w = (gaussian(RNG, shape, dtype) for shape in ((5, 2), (4, 2), (16,)))
    weights = RNG.random(16)
    tol = 100 * np.finfo(dtype).eps
    np.testing.assert_allclose(drawn.forward(U, V), held.forward(U, V), rtol=tol, atol=tol)
    np.testing.assert_allclose(drawn.adjoint(w) @ V, held.adjoint(w) @ V, rtol=tol, atol=tol)
    x, d, fit = Free().pair(U, V), Free().pair(2 * U, V), DataFit.of(bf.losses.Squared(), w)
    for a, b in zip(drawn.bind(fit).motion(x, d), held.bind(fit).motion(x, d), strict=True):
        np.testing.assert_allclose(a, b, rtol=tol, atol=tol)
    assert drawn.norm_squared(weights) == pytest.approx(held.norm_squared(weights))
    assert drawn.mean_square(weights) == pytest.approx(held.mean_square(weights))


@pytest.mark.parametrize("block", [None, 8])
def test_agrees_with_its_matrix(block):
    op = Gaussian((6, 5), 20, rng=0, block=block)
    A, weights = explicit(op), RNG.random(20)
    U, V, w = (gaussian(RNG, shape, complex) for shape in ((6, 3), (5, 3), (20,)))
    np.testing.assert_allclose(op.forward(U, V), A @ (U @ V.conj().T).ravel())
    np.testing.assert_allclose(op.adjoint(w) @ V, (A.T @ w).reshape(6, 5) @ V)
    np.testing.assert_allclose(op.adjoint(w).H @ U, (A.T @ w).reshape(6, 5).conj().T @ U)
    for c in (None, weights):
        root = np.ones((20, 1)) if c is None else np.sqrt(c)[:, None]
        assert op.norm_squared(c) == pytest.approx(np.linalg.norm(root * A, 2) ** 2)
        assert op.mean_square(c) == pytest.approx(np.linalg.norm(root * A) ** 2 / 30)


@pytest.mark.parametrize("block", [None, 20])
def test_norm_of_a_larger_one(block):
    op = Gaussian((27, 20), 60, rng=0, block=block)
    assert op.shape[0] * op.shape[1] > EXACT
    A, weights = explicit(Gaussian((27, 20), 60, rng=0)), RNG.random(60)
    assert op.norm_squared() == pytest.approx(np.linalg.eigvalsh(A @ A.T)[-1], rel=1e-3)
    assert op.norm_squared() == pytest.approx((1 + 3) ** 2, rel=0.1)  # (1 + √(mn/size))²
    B = np.sqrt(weights)[:, None] * A
    assert op.norm_squared(weights) == pytest.approx(np.linalg.eigvalsh(B @ B.T)[-1], rel=1e-3)


def test_draws_are_standard():
    A = explicit(Gaussian((20, 10), 400, rng=0)) * 20
    assert abs(A.mean()) < 4 / np.sqrt(A.size)
    assert abs(A.var() - 1) < 4 * np.sqrt(2 / A.size)
    assert abs((A**4).mean() - 3) < 4 * np.sqrt(96 / A.size)
    # Rows are independent: neighbours do not correlate beyond chance.
    assert np.abs(np.einsum("ij,ij->i", A[1:], A[:-1]) / 200).max() < 5 / np.sqrt(200)


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("block", [None, 5])
def test_keeps_the_norm_on_average(block, dtype):
    U, V = gaussian(RNG, (8, 2), dtype), gaussian(RNG, (6, 2), dtype)
    square = np.linalg.norm(U @ V.conj().T) ** 2
    ratios = [np.linalg.norm(Gaussian((8, 6), 12, seed, block).forward(U, V)) ** 2 / square for seed in range(100)]
    assert abs(np.mean(ratios) - 1) < 4 * np.sqrt(2 / (12 * 100))


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("block", [None, 64])
def test_recovers_a_low_rank_matrix(block, dtype):
    rng = np.random.default_rng(1)
    U, V = gaussian(rng, (12, 2), dtype), gaussian(rng, (10, 2), dtype)
    op = Gaussian((12, 10), 100, rng=0, block=block)
    problem = bf.Problem(bf.losses.Squared(), op, op.forward(U, V))
    result = bf.solve(problem, 2, rng=0, tol=1e-10)
    X = U @ V.conj().T
    assert np.linalg.norm(result.matrix() - X) < 1e-5 * np.linalg.norm(X)


def test_randomness_is_repeatable_and_enters_in_one_way():
    U, V = RNG.standard_normal((4, 2)), RNG.standard_normal((3, 2))
    rng = np.random.default_rng(5)
    z = [Gaussian((4, 3), 6, rng=r).forward(U, V) for r in (5, 5, 6, rng, rng, None, None)]
    np.testing.assert_array_equal(z[0], z[1])
    np.testing.assert_array_equal(z[0], z[3])
    for other in (z[2], z[4], z[5]):
        assert not np.allclose(z[0], other)
    assert not np.allclose(z[5], z[6])


def test_memory_is_that_of_one_block():
    U, V = RNG.standard_normal((40, 2)), RNG.standard_normal((25, 2))
    op = Gaussian((40, 25), 250, rng=0, block=10)
    matrix, block = 8 * 250 * 1000, 8 * 10 * 1000
    tracemalloc.start()
    z = op.forward(U, V)
    op.adjoint(z).products(U, V)
    op.mean_square()
    passes = tracemalloc.get_traced_memory()[1]
    op.norm_squared()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert passes < 3 * block  # the next is drawn before the last is let go
    assert peak < matrix / 2  # Lanczos keeps some vectors of the size of X


BAD = {
    "not the shape of a matrix": {"shape": (0, 3)},
    "size=0 is not a number of measurements": {"size": 0},
    "size=2.5 .* integer ≥ 1": {"size": 2.5},
    "size=True": {"size": True},
    "block=0 is not a number of rows": {"block": 0},
    "block='a' .* None to store": {"block": "a"},
    "rng=-1 is not a source": {"rng": -1},
}


@pytest.mark.parametrize("message", BAD)
def test_mistakes_get_one_clear_error(message):
    with pytest.raises(InputError, match=message):
        Gaussian(**({"shape": (4, 3), "size": 5} | BAD[message]))
