"""Any matrix or linear operator on vec(X)."""

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, aslinearoperator

import bifactor as bf
from bifactor.arrays import gaussian
from bifactor.errors import InputError
from bifactor.operators.linear import EXACT, Linear
from bifactor.testing import check_operator

RNG = np.random.default_rng(0)
SHAPE = (4, 5)
DTYPES = [np.float32, np.float64, np.complex64, np.complex128]


class Duck:
    """What pylops operators look like from outside: shape, dtype, matvec, rmatvec, and real code for real dtypes."""

    def __init__(self, B, dtype=None):
        self.B, self.shape = B, B.shape
        if dtype is not None:
            self.dtype = np.dtype(dtype)

    def matvec(self, x):
        return self._real(self.B @ self._real(x))

    def rmatvec(self, w):
        return self._real(self.B.conj().T @ self._real(w))

    def _real(self, x):
        assert x.ndim == 1
        return x if np.iscomplexobj(self.B) else np.asarray(x, dtype=np.float64)  # warns on a complex x


def dense(kind=float, size=12, density=1.0):
    return gaussian(RNG, (size, 20), kind) * (RNG.random((size, 20)) < density)


def function_operator(B):
    return LinearOperator(B.shape, matvec=lambda x: B @ x, rmatvec=lambda w: B.conj().T @ w, dtype=B.dtype)


WRAPPERS = {
    "array": lambda B: B,
    "fortran": np.asfortranarray,
    "list": lambda B: B.tolist(),
    "csr_array": sparse.csr_array,
    "csc_matrix": sparse.csc_matrix,
    "lil": sparse.lil_array,
    "LinearOperator": function_operator,
    "aslinearoperator": aslinearoperator,
    "duck": lambda B: Duck(B, B.dtype),
    "duck without dtype": Duck,
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", [float, complex])
@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_is_the_matrix(wrapper, kind, dtype):
    B = dense(kind, density=0.6)
    op = Linear(WRAPPERS[wrapper](B), SHAPE)
    assert op.complex_matrix is (True if kind is complex else None)
    U, V = gaussian(RNG, (4, 2), dtype), gaussian(RNG, (5, 2), dtype)
    z = op.forward(U, V)
    w = gaussian(RNG, 12, z.dtype)
    tol = 100 * np.finfo(dtype).eps
    np.testing.assert_allclose(z, B @ (U @ V.conj().T).ravel(), rtol=tol, atol=tol)
    np.testing.assert_allclose(op.adjoint(w) @ V, (B.conj().T @ w).reshape(SHAPE) @ V, rtol=tol, atol=10 * tol)
    assert z.dtype == op.adjoint(w).dtype == np.result_type(dtype, *([np.complex64] if kind is complex else []))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", [float, complex])
@pytest.mark.parametrize("wrapper", ["csr_array", "LinearOperator"])
def test_laws(wrapper, kind, dtype):
    check_operator(Linear(WRAPPERS[wrapper](dense(kind, size=8)[:, :6]), (2, 3)), dtype)


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_norms_are_those_of_the_matrix(wrapper):
    B, weights = dense(complex, 30), RNG.random(30)
    op = Linear(WRAPPERS[wrapper](B), SHAPE)
    for c in (None, weights):
        root = np.ones((30, 1)) if c is None else np.sqrt(c)[:, None]
        assert op.norm_squared(c) == pytest.approx(np.linalg.norm(root * B, 2) ** 2, rel=0.02)
        assert op.mean_square(c) == pytest.approx(np.linalg.norm(root * B) ** 2 / 20)


def test_mean_square_of_a_large_operator_is_probed():
    m, n = 20, 30
    assert m * n > EXACT
    B = RNG.standard_normal((300, m * n))
    assert Linear(Duck(B), (m, n)).mean_square() == pytest.approx(np.linalg.norm(B) ** 2 / (m * n), rel=0.3)


def test_one_unit_row_per_entry_is_entries():
    rows, cols = RNG.integers(4, size=9), RNG.integers(5, size=9)
    B = sparse.coo_array((np.ones(9, dtype=int), (np.arange(9), 5 * rows + cols)), shape=(9, 20))
    op, entries = Linear(B, SHAPE), bf.operators.Entries(rows, cols, SHAPE)
    U, V = RNG.standard_normal((4, 2)), RNG.standard_normal((5, 2))
    np.testing.assert_allclose(op.forward(U, V), entries.forward(U, V))
    np.testing.assert_allclose(op.adjoint(np.arange(9.0)) @ V, entries.adjoint(np.arange(9.0)) @ V)
    assert op.mean_square() == pytest.approx(entries.mean_square())


def test_repeated_sparse_entries_add_up_and_the_caller_keeps_his():
    B = sparse.csr_array((np.array([1.0, 2.0, 4.0]), np.array([3, 3, 1]), np.array([0, 2, 3])), shape=(2, 4))
    op = Linear(B, (2, 2))
    assert op.mean_square() == pytest.approx((9 + 16) / 4)
    np.testing.assert_array_equal(B.data, [1, 2, 4])
    np.testing.assert_allclose(op.forward(np.eye(2), np.ones((2, 2))), [3, 4])


@pytest.mark.parametrize("wrapper", ["array", "csr_array", "LinearOperator"])
@pytest.mark.parametrize("kind", [float, complex])
def test_recovers_a_low_rank_matrix(wrapper, kind):
    rng = np.random.default_rng(1)
    U, V = gaussian(rng, (7, 2), kind), gaussian(rng, (6, 2), kind)
    op = Linear(WRAPPERS[wrapper](gaussian(rng, (40, 42), kind)), (7, 6))
    result = bf.solve(bf.Problem(bf.losses.Squared(), op, op.forward(U, V)), 2, rng=0, tol=1e-10)
    X = U @ V.conj().T
    assert np.linalg.norm(result.matrix() - X) < 1e-5 * np.linalg.norm(X)


class Adjointless:
    shape = (3, 20)

    def matvec(self, x):
        return x[:3]


class Wrong(Duck):
    def rmatvec(self, w):
        return w


BAD = {
    "not the shape of a matrix": lambda: Linear(dense(), (20,)),
    "20 columns, but a 4×4 matrix has 16 entries": lambda: Linear(dense(), (4, 4)),
    "has shape \\(20,\\)": lambda: Linear(np.ones(20), SHAPE),
    "one row per measurement": lambda: Linear(np.ones((0, 20)), SHAPE),
    "operator has shape \\(20,\\)": lambda: Linear(sparse.coo_array(np.ones(20)), SHAPE),
    "operator holds 1 NaN": lambda: Linear(np.full((1, 1), np.nan), (1, 1)),
    "2 NaN or infinite values": lambda: Linear(sparse.csr_array(np.full((1, 2), np.inf)), (1, 2)),
    "dtype <U3": lambda: Linear("abc", SHAPE),
    "dtype object": lambda: Linear(object(), SHAPE),
    "Adjointless has matvec but not both": lambda: Linear(Adjointless(), SHAPE),
    "has no adjoint. Implement its rmatvec": lambda: Linear(
        LinearOperator((3, 20), matvec=lambda x: x[:3], dtype=float), SHAPE
    ),
    "return 12 and 12 numbers": lambda: Linear(Wrong(dense()), SHAPE),
}


@pytest.mark.parametrize("message", BAD)
def test_mistakes_get_one_clear_error(message):
    with pytest.raises(InputError, match=message):
        BAD[message]()


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (4, 3), (30, 20)])
def test_a_wrong_adjoint_is_noticed(dtype, shape):
    """At the price of one product each way; the right one passes in every precision."""
    rng = np.random.default_rng(0)
    N = shape[0] * shape[1]
    B = gaussian(rng, (2 * N + 3, N), dtype)
    C = gaussian(rng, B.shape, dtype)
    right = {"Bᴴw": lambda w: B.conj().T @ w}
    wrong = {
        "2Bᴴw + 1": lambda w: 2 * B.conj().T @ w + 1,
        "−Bᴴw": lambda w: -(B.conj().T @ w),
        "another": lambda w: C.conj().T @ w,
    }
    if B.dtype.kind == "c":
        wrong["Bᵀw"] = lambda w: B.T @ w
    for ways in (right, wrong):
        for rmatvec in ways.values():
            operator = LinearOperator(B.shape, matvec=lambda x: B @ x, rmatvec=rmatvec, dtype=B.dtype)
            if ways is right:
                Linear(operator, shape)
            else:
                with pytest.raises(InputError, match=r"not the adjoint of matvec.*check_operator"):
                    Linear(operator, shape)


def test_a_foreign_operator_is_tried_once_each_way():
    B, calls = np.random.default_rng(0).standard_normal((9, 6)), []
    operator = LinearOperator(
        B.shape,
        matvec=lambda x: calls.append("there") or B @ x,
        rmatvec=lambda w: calls.append("back") or B.T @ w,
        dtype=B.dtype,
    )
    Linear(operator, (3, 2))
    assert calls == ["there", "back"]


def test_an_operator_that_is_zero_or_not_finite():
    zero = LinearOperator((4, 6), matvec=lambda x: np.zeros(4), rmatvec=lambda w: np.zeros(6), dtype=np.float64)
    assert Linear(zero, (2, 3)).size == 4
    bad = LinearOperator((4, 6), matvec=lambda x: np.full(4, np.nan), rmatvec=lambda w: np.zeros(6), dtype=np.float64)
    with pytest.raises(InputError, match="is not finite"):
        Linear(bad, (2, 3))
