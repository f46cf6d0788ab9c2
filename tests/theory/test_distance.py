"""DIST and the set X*_r of balanced factors: the paper's preliminaries, eq. (prelim:eq_footing), and Appendix B.1."""

import numpy as np
import pytest
from scipy.optimize import minimize

import bifactor as bf
from bifactor.arrays import gaussian

DTYPES = pytest.mark.parametrize("dtype", [np.float64, np.complex128])
SEEDS = pytest.mark.parametrize("seed", range(5))


def unitary(rng, r, dtype):
    return np.linalg.qr(gaussian(rng, (r, r), dtype))[0]


def pair(rng, dtype, shape=(9, 7), r=3):
    return tuple(gaussian(rng, (k, r), dtype) for k in shape)


def stacked_norm(U, V):
    return np.hypot(np.linalg.norm(U), np.linalg.norm(V))


@DTYPES
@SEEDS
def test_distance_is_zero_on_the_balanced_factors_and_only_there(seed, dtype):
    rng = np.random.default_rng(seed)
    U, V = bf.metrics.balanced(*pair(rng, dtype))
    R = unitary(rng, 3, dtype)
    assert bf.metrics.distance(U @ R, V @ R, U, V) < 1e-13 * stacked_norm(U, V)
    # The same X, off balance: not in X*_r.
    assert bf.metrics.distance(2 * U, V / 2, U, V) > 0.1 * stacked_norm(U, V)


@DTYPES
@SEEDS
def test_distance_is_invariant(seed, dtype):
    rng = np.random.default_rng(seed)
    U, V, Us, Vs = *pair(rng, dtype), *pair(rng, dtype)
    d = bf.metrics.distance(U, V, Us, Vs)
    R, T = unitary(rng, 3, dtype), gaussian(rng, (3, 3), dtype) + 2 * np.eye(3)
    assert bf.metrics.distance(U @ R, V @ R, Us, Vs) == pytest.approx(d, rel=1e-12)
    # Any factorisation of X* means the same X*.
    assert bf.metrics.distance(U, V, Us @ T, Vs @ np.linalg.inv(T).conj().T) == pytest.approx(d, rel=1e-10)
    # Rotations of the two spaces, and the scale.
    P, Q = unitary(rng, 9, dtype), unitary(rng, 7, dtype)
    assert bf.metrics.distance(P @ U, Q @ V, P @ Us, Q @ Vs) == pytest.approx(d, rel=1e-12)
    assert bf.metrics.distance(3 * U, 3 * V, 3 * Us, 3 * Vs) == pytest.approx(3 * d, rel=1e-12)


@DTYPES
@SEEDS
def test_distance_is_a_metric_between_balanced_pairs(seed, dtype):
    rng = np.random.default_rng(seed)
    a, b, c = (bf.metrics.balanced(*pair(rng, dtype)) for _ in range(3))
    ab, bc, ac = (bf.metrics.distance(*p, *q) for p, q in ((a, b), (b, c), (a, c)))
    assert ab == pytest.approx(bf.metrics.distance(*b, *a), rel=1e-12)
    assert ac <= ab + bc
    assert ab <= np.hypot(np.linalg.norm(a[0] - b[0]), np.linalg.norm(a[1] - b[1]))  # R = I is one of the choices


@SEEDS
def test_distance_is_the_least_over_all_rotations_and_reflections(seed):
    rng = np.random.default_rng(seed)
    (U, V), (Us, Vs) = pair(rng, np.float64, r=2), bf.metrics.balanced(*pair(rng, np.float64, r=2))
    if seed % 2:  # make a reflection the best choice: the closest rotation is then far
        U, V = Us[:, ::-1] + 0.1 * U, Vs[:, ::-1] + 0.1 * V
    angle = np.linspace(0, 2 * np.pi, 20001)
    c, s = np.cos(angle), np.sin(angle)
    turns = np.stack([np.stack([c, -s], -1), np.stack([s, c], -1)], -2)
    grid = np.concatenate([turns, turns * [1, -1]])
    W, Ws = np.vstack([U, V]), np.vstack([Us, Vs])
    brute = np.linalg.norm(W - Ws @ grid, axis=(1, 2)).min()
    d = bf.metrics.distance(U, V, Us, Vs)
    assert d <= brute + 1e-12
    assert d == pytest.approx(brute, rel=1e-5)


@SEEDS
def test_distance_is_the_least_over_all_of_u2(seed):
    rng = np.random.default_rng(seed)
    (U, V), (Us, Vs) = pair(rng, np.complex128, r=2), bf.metrics.balanced(*pair(rng, np.complex128, r=2))
    W, Ws = np.vstack([U, V]), np.vstack([Us, Vs])

    def squared(angles):
        a, p, q, t = angles
        x, y = np.cos(t) * np.exp(1j * p), np.sin(t) * np.exp(1j * q)
        R = np.exp(1j * a)[..., None, None] * np.stack([np.stack([x, y], -1), np.stack([-y.conj(), x.conj()], -1)], -2)
        # ‖W − W*R‖² = ‖W‖² + ‖W*‖² − 2 Re tr(RᴴW*ᴴW), for a whole grid of R at once
        gain = np.einsum("...jk,jk->...", R.conj(), Ws.conj().T @ W).real
        return np.linalg.norm(W) ** 2 + np.linalg.norm(Ws) ** 2 - 2 * gain

    turn = np.linspace(0, 2 * np.pi, 12, endpoint=False)
    grid = np.stack(np.meshgrid(turn, turn, turn, np.linspace(0, np.pi / 2, 7), indexing="ij")).reshape(4, -1)
    best = grid[:, np.argmin(squared(grid))]
    brute = minimize(lambda x: float(squared(x)), best).fun ** 0.5
    assert bf.metrics.distance(U, V, Us, Vs) == pytest.approx(brute, rel=1e-7)


@DTYPES
@SEEDS
def test_balanced_keeps_the_product_and_the_paper_s_footing(seed, dtype):
    """σᵢ(U) = σᵢ(V) = σᵢ(X)^½, eq. (prelim:eq_footing)."""
    rng = np.random.default_rng(seed)
    U, V = pair(rng, dtype)
    U, V = U * [100, 1, 0.01], V * [0.3, 2, 5]
    A, B = bf.metrics.balanced(U, V)
    X = U @ V.conj().T
    np.testing.assert_allclose(A @ B.conj().T, X, atol=1e-13 * np.linalg.norm(X))
    np.testing.assert_allclose(A.conj().T @ A, B.conj().T @ B, atol=1e-13 * np.linalg.norm(X))
    root = np.sqrt(np.linalg.svd(X)[1][:3])
    np.testing.assert_allclose(np.linalg.svd(A)[1], root, rtol=1e-10)
    np.testing.assert_allclose(np.linalg.svd(B)[1], root, rtol=1e-10)


@DTYPES
@pytest.mark.parametrize("size", [1.0, 1e-4, 1e-8, 1e-12])
@SEEDS
def test_relative_error_equals_the_dense_one(seed, size, dtype):
    rng = np.random.default_rng(seed)
    Us, Vs = pair(rng, dtype, (40, 30), 4)
    D, E = pair(rng, dtype, (40, 30), 4)
    T = gaussian(rng, (4, 4), dtype) + 3 * np.eye(4)
    U, V = Us + size * D, Vs + size * E
    X = Us @ Vs.conj().T
    # The difference term by term, so that the reference itself does not cancel.
    dense = np.linalg.norm(size * (D @ Vs.conj().T + Us @ E.conj().T) + size**2 * D @ E.conj().T) / np.linalg.norm(X)
    close = {"rel": 1e-10 + 1e-15 / size}
    assert bf.metrics.relative_error(U, V, Us, Vs) == pytest.approx(dense, **close)
    # Through another factorisation of the same X, which costs a few digits.
    other = bf.metrics.relative_error(U @ T, V @ np.linalg.inv(T).conj().T, Us, Vs)
    assert other == pytest.approx(dense, rel=1e-10 + 2e-14 / size)


@DTYPES
@SEEDS
def test_lifted_error_controls_the_distance(seed, dtype):
    """Appendix B.1, the lemma of Tu et al.: ‖WWᴴ − W*W*ᴴ‖²_F ≥ 2(√2 − 1) σ_r(W*)² DIST², for every W."""
    rng = np.random.default_rng(seed)
    Us, Vs = bf.metrics.balanced(*pair(rng, dtype))
    Ws = np.vstack([Us, Vs])
    for size in (1e-3, 0.1, 1.0, 10.0):
        D, E = pair(rng, dtype)
        U, V = Us + size * D, Vs + size * E
        W = np.vstack([U, V])
        lifted = np.linalg.norm(W @ W.conj().T - Ws @ Ws.conj().T) ** 2
        bound = 2 * (2**0.5 - 1) * np.linalg.svd(Ws, compute_uv=False)[-1] ** 2
        assert lifted >= bound * bf.metrics.distance(U, V, Us, Vs) ** 2
