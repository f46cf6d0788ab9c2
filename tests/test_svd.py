"""Truncated SVD and eigenpairs of lazy matrices against LAPACK."""

import numpy as np
import pytest

from bifactor.arrays import gaussian, herm, thin_svd
from bifactor.factors import Free, Symmetric
from bifactor.linear_map import Dense, LinearMap, RowsAndColumns, ScaledMap
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


class Counted(Dense):
    """Notes its products."""

    def __init__(self, matrix):
        super().__init__(matrix)
        self.passes = []

    def matmul(self, V):
        self.passes.append("G")
        return super().matmul(V)

    def normal(self, V, rows=None):
        self.passes.append("GᴴG")
        return super().rmatmul(super().matmul(V))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(90, 70), (70, 90), (300, 30), (4, 3), (1, 5), (200, 1)], ids=str)
def test_a_sketch_takes_four_passes_and_is_exact_for_low_rank(shape, dtype):
    rank = min(3, *shape)
    X = decaying(*shape, dtype)
    G = Counted(X if shape[0] >= shape[1] else X.conj().T)
    truncated_svd(G, rank, np.random.default_rng(0), restarts=0)
    assert len(G.passes) <= 4
    A, s, B = truncated_svd(Dense(X), rank, np.random.default_rng(0), restarts=0)
    np.testing.assert_allclose(s, np.linalg.svd(X, compute_uv=False)[:rank], rtol=1e-3)
    left, values, right = thin_svd(X)
    low = ((left[:, :rank] * values[:rank]) @ right[:rank]).astype(dtype)
    A, s, B = truncated_svd(Dense(low), rank, np.random.default_rng(0), restarts=0)
    tol = 1e-4 if np.finfo(dtype).eps > 1e-10 else 1e-10
    np.testing.assert_allclose((A * s) @ herm(B), low, atol=tol)
    np.testing.assert_allclose(herm(A) @ A, np.eye(rank), atol=tol)
    np.testing.assert_allclose(herm(B) @ B, np.eye(rank), atol=tol)


def test_a_sketch_of_noise_is_close():
    X = np.random.default_rng(3).standard_normal((500, 400))
    wanted = np.linalg.svd(X, compute_uv=False)[:10]
    s = truncated_svd(Dense(X), 10, np.random.default_rng(0), restarts=0)[1]
    assert np.all(s <= wanted * (1 + 1e-12))
    assert np.all(s >= 0.85 * wanted)


def test_the_normal_product_of_scaled_rows_and_columns():
    rng = np.random.default_rng(0)
    X, a, b, w = rng.standard_normal((9, 6)), rng.uniform(1, 2, 9), rng.uniform(1, 2, 6), rng.uniform(1, 2, (9, 1))
    Y, V = a[:, None] * X * b, rng.standard_normal((6, 2))
    for G in (RowsAndColumns(a, Dense(X), b), RowsAndColumns(b, Dense(X).H, a).H):
        np.testing.assert_allclose(G.normal(V), Y.T @ Y @ V)
        np.testing.assert_allclose(G.normal(V, w), Y.T @ (w**2 * (Y @ V)))
    np.testing.assert_allclose(ScaledMap(2.0, Dense(X)).normal(V, w), 4 * X.T @ (w**2 * (X @ V)))


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


class Counting(LinearMap):
    """A matrix that knows how many columns it has been multiplied with."""

    def __init__(self, matrix):
        self.inner, self.shape, self.dtype, self.columns = Dense(matrix), matrix.shape, matrix.dtype, 0

    def matmul(self, V):
        self.columns += V.shape[1]
        return self.inner.matmul(V)

    def rmatmul(self, U):
        self.columns += U.shape[1]
        return self.inner.rmatmul(U)

    def products(self, U, V):
        return self.matmul(V), self.rmatmul(U)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(300, 200), (200, 300)], ids=str)
def test_a_start_saves_work_and_changes_nothing(shape, dtype):
    X = decaying(*shape, dtype, rate=0.95)
    near = X + 1e-4 * decaying(*shape, dtype, seed=1, rate=0.95)
    tol = 1e-4 if np.finfo(dtype).eps > 1e-10 else 1e-8
    wanted = np.linalg.svd(near, compute_uv=False)[:6]
    known = truncated_svd(Dense(X), 6, np.random.default_rng(0), 1e-9)
    costs = []
    for start in (None, (known[0] * known[1], 2 * known[2])):
        G = Counting(near)
        A, s, B = truncated_svd(G, 6, np.random.default_rng(0), tol, start=start)
        np.testing.assert_allclose(s, wanted, rtol=tol)
        assert np.linalg.norm(near @ B - A * s) <= 10 * tol
        assert A.dtype == B.dtype == dtype
        costs.append(G.columns)
    assert costs[1] < costs[0]


@pytest.mark.parametrize(
    "start",
    [
        lambda A: 0 * A[:, :1],
        lambda A: 1e-30 * A[:, :4],
        lambda A: 1e30 * A[:, :4],
        lambda A: A[:, [0, 0, 0]],
        lambda A: A[:, 10:],
        lambda A: A,  # more than are asked for
        lambda A: A[:, ::-1],
    ],
)
def test_a_bad_start_does_no_harm(start):
    X = decaying(120, 100, np.float64)
    A, _, Bh = np.linalg.svd(X, full_matrices=False)
    wanted = np.linalg.svd(X, compute_uv=False)[:3]
    known = start(A), start(herm(Bh))
    np.testing.assert_allclose(truncated_svd(Dense(X), 3, np.random.default_rng(0), start=known)[1], wanted, rtol=1e-9)
    H = X.T @ X
    values = truncated_eigh(Dense(H), 3, np.random.default_rng(0), start=(start(herm(Bh)), start(herm(Bh))))[0]
    np.testing.assert_allclose(values, wanted**2, rtol=1e-9)


def test_the_start_is_on_its_own_side():
    # Of a wide matrix the search is for left directions.
    for shape in ((300, 100), (100, 300)):
        X = decaying(*shape, np.float64)
        A, s, Bh = np.linalg.svd(X, full_matrices=False)
        exact = (A[:, :3], herm(Bh)[:, :3])
        G = Counting(X)
        found = truncated_svd(G, 3, np.random.default_rng(0), 1e-9, 1, exact)
        np.testing.assert_allclose(found[1], s[:3], rtol=1e-12)
        assert np.linalg.norm(X @ found[2] - found[0] * s[:3]) <= 1e-8


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("entries", [1, 2, 3])
def test_few_entries_and_many_restarts(dtype, entries):
    # The Krylov space holds all there is at once; what comes after is rounding, and must stay orthonormal.
    for seed in range(12):
        rng = np.random.default_rng(seed)
        m, n = (int(k) for k in rng.integers(40, 80, 2))
        op = Entries(rng.integers(m, size=entries), rng.integers(n, size=entries), (m, n))
        G = op.adjoint(gaussian(rng, (entries,), dtype))
        wanted = np.linalg.svd(G @ np.eye(n, dtype=dtype), compute_uv=False)
        for rank in (1, 4, 7):
            A, s, B = truncated_svd(G, rank, np.random.default_rng(0), 0.0, 25)
            tol = 100 * np.finfo(dtype).eps
            np.testing.assert_allclose(s, wanted[:rank], atol=tol * wanted[0])
            np.testing.assert_allclose(herm(A) @ A, np.eye(rank), atol=tol)
            np.testing.assert_allclose(herm(B) @ B, np.eye(rank), atol=tol)


@pytest.mark.parametrize("dtype", DTYPES)
def test_leading_pairs_of_minus_a_matrix(dtype):
    X = decaying(60, 50, dtype)
    A, s, B = Free().leading(Dense(X), 3, np.random.default_rng(0), 1e-8, 25, sign=-1)
    np.testing.assert_allclose((A * s) @ herm(B), -_cut(X, 3), atol=1e-4)
    H = X[:50] + herm(X[:50])
    A, w, B = Symmetric().leading(Dense(H), 3, np.random.default_rng(0), 1e-8, 25, sign=-1)
    assert B is A
    np.testing.assert_allclose(w, np.linalg.eigvalsh(-H)[::-1][:3], rtol=1e-4)


def _cut(X, rank):
    A, s, Bh = np.linalg.svd(X)
    return (A[:, :rank] * s[:rank]) @ Bh[:rank]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(7, 4), (4, 7), (5, 1), (1, 1)], ids=str)
def test_a_thin_svd_where_the_fast_routine_gives_up(monkeypatch, shape, dtype):
    X = gaussian(np.random.default_rng(0), shape, dtype)
    wanted = np.linalg.svd(X, compute_uv=False)

    def give_up(*args, **kwargs):
        raise np.linalg.LinAlgError("SVD did not converge")

    monkeypatch.setattr(np.linalg, "svd", give_up)
    A, s, Bh = thin_svd(X)
    assert A.shape == (shape[0], min(shape))
    assert Bh.shape == (min(shape), shape[1])
    assert A.dtype == Bh.dtype == dtype
    assert s.dtype == np.finfo(dtype).dtype
    np.testing.assert_allclose(s, wanted, rtol=1e-5)
    np.testing.assert_allclose((A * s) @ Bh, X, atol=1e-5)
    for bad in (np.nan, np.inf):
        broken = X.copy()
        broken[0, 0] = bad
        with pytest.raises(np.linalg.LinAlgError):
            thin_svd(broken)


def test_a_thin_svd_is_that_of_lapack():
    X = np.random.default_rng(0).standard_normal((6, 4))
    for ours, theirs in zip(thin_svd(X), np.linalg.svd(X, full_matrices=False), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    with pytest.raises(np.linalg.LinAlgError):
        thin_svd(np.full((3, 3), np.nan))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("scale", [1e-14, 1e-9, 1e9, 1e14])
def test_scales(dtype, scale):
    # Fourth powers of this leave the range of single precision, and so would a test of convergence.
    X = decaying(200, 150, dtype, rate=0.97)
    wanted = np.linalg.svd(X, compute_uv=False)[:4]
    scaled = X * X.real.dtype.type(scale)
    G = Counting(scaled)
    s = truncated_svd(G, 4, np.random.default_rng(0), 1e-5)[1]
    np.testing.assert_allclose(s / scale, wanted, rtol=1e-4)
    same = Counting(X)
    truncated_svd(same, 4, np.random.default_rng(0), 1e-5)
    assert G.columns == same.columns
