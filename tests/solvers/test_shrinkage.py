"""Singular values lowered and cut off, against dense SVDs."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bifactor.arrays import epsilon, gaussian, herm
from bifactor.factors import Free, Symmetric
from bifactor.linear_map import Dense, LowRankPlus
from bifactor.metrics import nuclear_norm, triplets
from bifactor.solvers.shrinkage import ball_threshold, blend, shrink_singular_values

DTYPES = [np.float32, np.float64, np.complex64, np.complex128]
SHAPES = [(9, 7), (7, 9), (1, 6), (6, 1), (1, 1), (120, 90), (80, 130)]
"""The last two are large enough for a Krylov space."""
KINDS = [Free(), Symmetric()]


def decaying(shape, dtype=np.float64, seed=0, rate=0.7):
    rng, k = np.random.default_rng(seed), min(shape)
    A, B = (np.linalg.qr(gaussian(rng, (size, k), dtype))[0] for size in shape)
    return ((A * (3.0 * rate ** np.arange(k))) @ herm(B)).astype(dtype)


def semidefinite(n, dtype=np.float64, seed=0, rate=0.7):
    """Hermitian, with eigenvalues of both signs."""
    Q = np.linalg.qr(gaussian(np.random.default_rng(seed), (n, n), dtype))[0]
    return ((Q * (3.0 * (-rate) ** np.arange(n))) @ herm(Q)).astype(dtype)


def level(theta):
    return lambda s: theta


def run(M, limit, threshold, kind=KINDS[0], start=None, tol=1e-10):
    A, s, B = shrink_singular_values(kind, Dense(M), limit, threshold, tol, 25, start)
    assert A.dtype == B.dtype == M.dtype
    assert A.shape[1] == B.shape[1] == s.size <= limit
    assert np.all(s > 0)
    assert np.all(np.diff(s) <= 0)
    if kind == Symmetric():
        np.testing.assert_array_equal(A, B)
    return (A * s) @ herm(B)


def one_array_where_symmetric(x):
    assert (x.right is x.left) == (x.kind == Symmetric())


def lowered(M, theta, limit=None):
    A, s, Bh = np.linalg.svd(M, full_matrices=False)
    return (A[:, :limit] * np.maximum(s - theta, 0)[:limit]) @ Bh[:limit]


def close(X, wanted, size=None, tol=1e-8):
    eps = np.finfo(X.dtype).eps
    size = np.linalg.norm(wanted) if size is None else size
    assert np.linalg.norm(X - wanted) <= max(tol, 2e3 * eps) * size


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_constant_is_the_soft_threshold(shape, dtype):
    M = decaying(shape, dtype)
    for theta in (0.0, 0.01, 0.5, 2.9, 3.1, 100.0):
        close(run(M, min(shape), level(theta)), lowered(M, theta), 3.0)
    assert not run(M, min(shape), level(3.01)).any()


def test_it_is_the_proximal_map_of_the_nuclear_norm():
    # M − X = θ(ABᴴ + W) with ‖W‖₂ ≤ 1 and W orthogonal to X on both sides.
    M = np.random.default_rng(3).standard_normal((40, 60))
    X = run(M, 40, level(9.0))
    N = (M - X) / 9.0
    assert 0 < np.linalg.matrix_rank(X) < 40
    assert np.linalg.norm(N, 2) <= 1 + 1e-8
    assert np.vdot(N, X) == pytest.approx(np.linalg.norm(X, "nuc"), rel=1e-8)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_ball_threshold_is_the_projection(shape, dtype):
    M = decaying(shape, dtype)
    size = np.linalg.norm(M, "nuc")
    for radius in (0.1, 2.0, 0.99 * size, 1.01 * size):
        X = run(M, min(shape), partial(ball_threshold, radius=radius))
        assert np.linalg.norm(X, "nuc") <= radius * (1 + 1e3 * np.finfo(dtype).eps)
        # M − X is normal to the ball at X: nothing in the ball is further along it than X is.
        N = M - X
        slack = radius * np.linalg.norm(N, 2) - np.vdot(N, X).real
        assert abs(slack) <= max(1e-8, 1e3 * np.finfo(dtype).eps) * radius * np.linalg.norm(M)
        if radius > size:
            close(X, M)


@pytest.mark.parametrize("n", [8, 120])
@pytest.mark.parametrize("dtype", DTYPES)
def test_semidefinite_matrices(n, dtype):
    M = semidefinite(n, dtype)
    w, Q = np.linalg.eigh(M)
    for theta in (0.0, 0.3, 2.9, 3.1):
        close(run(M, n, level(theta), Symmetric()), (Q * np.maximum(w - theta, 0)) @ herm(Q), 3.0)
    X = run(M, n, partial(ball_threshold, radius=1.5), Symmetric())
    assert np.trace(X).real == pytest.approx(1.5, rel=1e-4)
    assert np.linalg.eigvalsh(X)[0] >= -1e-5
    assert not run(-np.eye(n, dtype=dtype), n, level(0.0), Symmetric()).any()
    # Only the Hermitian part counts.
    skew = gaussian(np.random.default_rng(1), (n, n), dtype)
    close(run(M + skew - herm(skew), n, level(0.3), Symmetric()), run(M, n, level(0.3), Symmetric()), 3.0)


@pytest.mark.parametrize("shape", [(9, 7), (120, 90)], ids=str)
def test_limits(shape):
    M = decaying(shape)
    for limit in (1, 3, 5, 6):
        close(run(M, limit, level(0.2)), lowered(M, 0.2, limit))
        A, s, Bh = np.linalg.svd(M, full_matrices=False)
        s = s[:limit]
        wanted = (A[:, :limit] * np.maximum(s - ball_threshold(s, 2.0), 0)) @ Bh[:limit]
        close(run(M, limit, partial(ball_threshold, radius=2.0)), wanted)
    close(run(M, 1000, level(0.2)), lowered(M, 0.2))


def test_starts_change_the_work_and_not_the_result():
    M = decaying((300, 200), rate=0.9)
    rng = np.random.default_rng(2)
    A, s, Bh = np.linalg.svd(M, full_matrices=False)
    for theta, rank in ((0.5, 20), (2.0, 4)):
        for start in (
            (A[:, :rank] * s[:rank], herm(Bh)[:, :rank]),
            (rng.standard_normal((300, rank)), rng.standard_normal((200, rank))),
            (A[:, -3:], herm(Bh)[:, -3:]),  # nothing of what is to be found
            (np.zeros((300, 1)), np.zeros((200, 1))),
            (np.ones((300, 6)), np.ones((200, 6))),  # one direction, six times
            (A[:, :50], herm(Bh)[:, :50]),
        ):
            kept = [np.array(side) for side in start]
            close(run(M, 200, level(theta), start=Free().pair(*start)), lowered(M, theta), tol=1e-6)
            assert all(np.array_equal(a, b) for a, b in zip(start, kept, strict=True))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(9, 7), (120, 90)], ids=str)
def test_scales(shape, dtype):
    M = decaying(shape, dtype)
    for scale in (1e-12, 1e-6, 1e6, 1e12):
        c = M.real.dtype.type(scale)
        close(run(c * M, min(shape), level(0.5 * scale)) / c, lowered(M, 0.5), 3.0)
        X = run(c * M, min(shape), partial(ball_threshold, radius=2 * scale)) / c
        close(X, run(M, min(shape), partial(ball_threshold, radius=2.0)), 3.0)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_threshold_in_the_last_digits(dtype):
    # The ball is far below the singular values. In single precision s − θ would be wrong in its first digit.
    M = decaying((9, 7), dtype, rate=0.5)
    X = run(M * M.real.dtype.type(1e8), 7, partial(ball_threshold, radius=1.0))
    A, _, Bh = np.linalg.svd(M, full_matrices=False)
    close(X, A[:, :1] @ Bh[:1], tol=1e-7)


@pytest.mark.parametrize("n", [6, 100])
def test_ties(n):
    Q = np.linalg.qr(np.random.default_rng(0).standard_normal((n, n)))[0]
    close(run(Q, n, level(0.25)), 0.75 * Q)
    close(run(Q, n, partial(ball_threshold, radius=0.5 * n)), 0.5 * Q)
    assert not run(Q, n, level(1 + 1e-9)).any()
    few = run(Q, 3, level(0.25))
    np.testing.assert_allclose(np.linalg.svd(few, compute_uv=False)[:4], [0.75, 0.75, 0.75, 0], atol=1e-9)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_nothing_comes_of_nothing(shape, kind):
    M = np.zeros((shape[0], shape[0]) if kind == Symmetric() else shape)
    for threshold in (level(0.0), level(1.0), partial(ball_threshold, radius=1.0)):
        A, s, B = shrink_singular_values(kind, Dense(M), 3, threshold, 1e-9, 6)
        assert s.size == 0
        x = kind.from_triplets(A, s, B)
        assert (x.shape, x.width, x.kind) == (M.shape, 1, kind)
        assert not x.left.any()
        assert not x.right.any()
        one_array_where_symmetric(x)


def test_of_a_lazy_matrix():
    rng = np.random.default_rng(9)
    U, V = rng.standard_normal((150, 3)), rng.standard_normal((110, 3))
    G = rng.standard_normal((150, 110))
    A, s, B = shrink_singular_values(
        Free(), LowRankPlus(U, V, -0.3, Dense(G)), 110, level(8.0), 1e-10, 25, Free().pair(U, V)
    )
    close((A * s) @ B.T, lowered(U @ V.T - 0.3 * G, 8.0), tol=1e-7)


@given(
    st.lists(st.floats(0, 1e6), min_size=1, max_size=12),
    st.floats(1e-6, 1e7),
    st.sampled_from([np.float32, np.float64]),
)
@settings(max_examples=300, deadline=None)
def test_ball_threshold(values, radius, dtype):
    s = np.sort(np.array(values, dtype))[::-1]
    theta = ball_threshold(s, radius)
    exact = s.astype(np.float64)
    total = np.maximum(exact - theta, 0).sum()
    rounding = 1e-12 * (exact.sum() + radius)
    assert theta >= 0
    if exact.sum() <= radius:
        assert theta <= rounding
    else:
        # The sum falls with θ, so that brute force is bisection.
        assert abs(total - radius) <= rounding
        low, high = 0.0, float(exact[0])
        for _ in range(100):
            middle = (low + high) / 2
            low, high = (middle, high) if np.maximum(exact - middle, 0).sum() > radius else (low, middle)
        assert theta == pytest.approx(high, abs=rounding)


def test_ball_threshold_counts_negative_eigenvalues_as_nothing():
    assert ball_threshold(np.array([3.0, 1.0, -2.0]), 2.0) == 1.0
    assert ball_threshold(np.array([-1.0, -2.0]), 2.0) == 0.0


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", KINDS)
def test_factors_and_triplets_are_each_others_inverse(dtype, kind):
    rng = np.random.default_rng(4)
    for m, n, r in ((9, 7, 3), (7, 9, 7), (5, 5, 1), (1, 4, 1)):
        x = kind.random(rng, (m, m if kind == Symmetric() else n), r, dtype)
        U, V = x.left, x.right
        A, s, B = x.triplets()
        for ours, theirs in zip((A, s, B), triplets(U, V), strict=True):
            np.testing.assert_array_equal(ours, theirs)
        tol = 100 * epsilon(U)
        for Q in (A, B):
            np.testing.assert_allclose(herm(Q) @ Q, np.eye(r), atol=tol)
        np.testing.assert_allclose(s, np.linalg.svd(U @ herm(V), compute_uv=False)[:r], rtol=tol, atol=tol)
        again = kind.from_triplets(A, s, B)
        one_array_where_symmetric(again)
        P, Q = again.left, again.right
        assert P.dtype == Q.dtype == dtype
        assert P.flags.c_contiguous
        np.testing.assert_allclose(P @ herm(Q), U @ herm(V), atol=10 * tol)
        np.testing.assert_allclose(herm(P) @ P, herm(Q) @ Q, atol=10 * tol)  # balanced


def two(kind, dtype, seed=5):
    """Factors of X with three columns, and of Y with two."""
    rng, shape = np.random.default_rng(seed), (9, 9 if kind == Symmetric() else 7)
    return kind.random(rng, shape, 3, dtype), kind.random(rng, shape, 2, dtype)


def dense(x):
    return x.left @ herm(x.right)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", KINDS)
def test_blend_is_exact_where_there_is_room(dtype, kind):
    x, y = two(kind, dtype)
    tol = 100 * epsilon(x.left)
    for t in (0.0, 1e-9, 0.3, 1.0):
        for limit in (5, 7):
            between, exact = blend(x, y, t, limit)
            assert exact
            one_array_where_symmetric(between)
            assert between.width <= limit
            assert between.left.dtype == between.right.dtype == dtype
            np.testing.assert_allclose(dense(between), (1 - t) * dense(x) + t * dense(y), atol=tol)
    between, exact = blend(kind.zero(x.shape, 1, dtype), y, 0.5, 2)
    assert exact
    one_array_where_symmetric(between)
    np.testing.assert_allclose(dense(between), 0.5 * dense(y), atol=tol)


@pytest.mark.parametrize("kind", KINDS)
def test_blend_leaves_out_the_least_singular_values(kind):
    x, y = two(kind, np.float64)
    A, s, Bh = np.linalg.svd(0.6 * dense(x) + 0.4 * dense(y))
    for limit in (1, 3, 4):
        between, exact = blend(x, y, 0.4, limit)
        assert not exact
        assert between.width == limit
        one_array_where_symmetric(between)
        np.testing.assert_allclose(dense(between), (A[:, :limit] * s[:limit]) @ Bh[:limit], atol=1e-12)
        assert nuclear_norm(between.left, between.right) <= s.sum()
    # Directions that are there already take no room.
    part = x.columns(slice(2))
    between, exact = blend(x, part, 0.4, 3)
    assert exact
    assert between.width == 3
    np.testing.assert_allclose(dense(between), 0.6 * dense(x) + 0.4 * dense(part), atol=1e-12)
