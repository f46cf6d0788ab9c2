"""Lemma (lem:initialize) on the start P_r(−∇f(0)/L), and what the fitted multiple in place of 1/L is for."""

import numpy as np
import pytest

import bifactor as bf
from bifactor.arrays import gaussian

SPECTRAL = bf.inits.Spectral()
PLAIN = bf.inits.Spectral(fit=False)  # the paper's, eq. (initial_sol)


def start(init, problem, rank):
    x = init(problem, rank, np.random.default_rng(0))
    return x.left, x.right


def value(problem, U, V):
    return problem.f.value(problem.kind.pair(U, V))


@pytest.mark.parametrize("kappa", [1.0, 1.01, 1.5, 5.0, 100.0])
@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("tail", [0.0, 0.7])
@pytest.mark.parametrize("seed", range(5))
def test_the_lemma_s_bound(make_target, seed, tail, dtype, kappa):
    """‖U₀V₀ᴴ − X*_r‖_F ≤ 2√(2(1 − 1/κ)) ‖X*‖_F + 2‖X* − X*_r‖_F, f = ½ Σ wᵢⱼ|Xᵢⱼ − X*ᵢⱼ|² with w in [L/κ, L]."""
    rng = np.random.default_rng(seed)
    X, U, V = make_target(rng, (12, 9), np.array([3.0, 2.0, 1.0]), dtype, tail)
    for L in (0.01, 1.0, 50.0):  # the bound knows nothing of the scale of f
        w = L * rng.choice([1 / kappa, 1.0], X.shape)
        w.flat[:2] = L / kappa, L
        U0, V0 = start(PLAIN, bf.Problem(bf.losses.Squared(), bf.operators.Full(X.shape), X, w), 3)
        off = np.linalg.norm(U0 @ V0.conj().T - U @ V.conj().T)
        bound = 2 * np.sqrt(2 * (1 - 1 / kappa)) * np.linalg.norm(X) + 2 * tail
        assert off <= bound + 1e-12 * np.linalg.norm(X)


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("shape", [(12, 9), (9, 12), (60, 70)])
def test_the_start_is_the_truncated_svd_split_evenly(shape, dtype):
    """U₀ = A₀Σ₀^½, V₀ = B₀Σ₀^½ of the best rank-r approximation of −∇f(0)/L (Corollary cor:init)."""
    rng = np.random.default_rng(1)
    Y = gaussian(rng, shape, dtype) + 3 * gaussian(rng, (shape[0], 3), dtype) @ gaussian(rng, (3, shape[1]), dtype)
    w = rng.uniform(1.0, 3.0, shape)
    U, V = start(PLAIN, bf.Problem(bf.losses.Squared(), bf.operators.Full(shape), Y, w), 3)
    A, s, Bh = np.linalg.svd(w * Y / w.max(), full_matrices=False)
    best = (A[:, :3] * s[:3]) @ Bh[:3]
    np.testing.assert_allclose(U @ V.conj().T, best, atol=1e-5 * s[0])
    np.testing.assert_allclose(U.conj().T @ U, V.conj().T @ V, atol=1e-10 * s[0])


def losses_with_data(rng, p):
    y = 2 * rng.standard_normal(p)
    return [
        (bf.losses.Squared(), y),
        (bf.losses.Huber(0.5), y),
        (bf.losses.Huber(20.0), y),
        (bf.losses.Logistic(), np.sign(y)),
        (bf.losses.Probit(), np.sign(y)),
        (bf.losses.Probit(3.0), np.sign(y)),
    ]


@pytest.mark.parametrize("case", range(6))
@pytest.mark.parametrize("sampled", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_fitted_start_is_never_worse(case, sampled, weighted):
    for seed in range(6):
        rng = np.random.default_rng(seed)
        shape = (int(rng.integers(4, 30)), int(rng.integers(4, 30)))
        operator = bf.operators.Full(shape)
        if sampled:
            operator = bf.operators.Entries(*np.nonzero(rng.random(shape) < 0.4), shape)
        loss, y = losses_with_data(rng, operator.size)[case]
        problem = bf.Problem(loss, operator, y, rng.uniform(0.1, 5.0, operator.size) if weighted else None)
        fitted, plain = (value(problem, *start(init, problem, 2)) for init in (SPECTRAL, PLAIN))
        assert fitted <= plain * (1 + 1e-9)
        assert fitted < value(problem, np.zeros((shape[0], 1)), np.zeros((shape[1], 1)))


def test_the_fitted_start_is_exact_where_the_paper_s_is(make_target):
    """f = ½‖X − X*‖²_F with X* of rank r: −∇f(0)/L is X*, and so is the best multiple."""
    for rows in range(6, 30):
        X, _, _ = make_target(np.random.default_rng(rows), (rows, 25), np.array([2.0, 1.0]))
        problem = bf.Problem(bf.losses.Squared(), bf.operators.Full(X.shape), X)
        for init in (PLAIN, SPECTRAL):
            U, V = start(init, problem, 2)
            assert np.linalg.norm(U @ V.T - X) < 1e-5 * np.linalg.norm(X)


def test_the_fitted_multiple_is_exact_for_quadratics():
    """s = ⟨A(P), y⟩/‖A(P)‖² in the weighted norm, by the dense formula."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X, w = rng.standard_normal((30, 2)) @ rng.standard_normal((2, 25)), rng.uniform(0.8, 1.2, (30, 25))
        U, V = start(SPECTRAL, bf.Problem(bf.losses.Squared(), bf.operators.Full(X.shape), X, w), 2)
        P = U @ V.T
        assert np.sum(w * P * X) / np.sum(w * P * P) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("case", [0, 1, 2])
def test_the_fitted_multiple_is_the_least_point_of_its_line(case):
    for seed in range(6):
        rng = np.random.default_rng(seed)
        shape = (int(rng.integers(6, 30)), int(rng.integers(6, 30)))
        operator = bf.operators.Entries(*np.nonzero(rng.random(shape) < 0.6), shape)
        loss, y = losses_with_data(rng, operator.size)[case]
        problem = bf.Problem(loss, operator, y)
        U, V = start(SPECTRAL, problem, 2)
        assert value(problem, U, V) < min(value(problem, t * U, V) for t in (0.99, 1.01))
        # L-smoothness alone puts the least point at 1/L or beyond.
        P, Q = start(PLAIN, problem, 2)
        assert np.linalg.norm(U @ V.T) >= np.linalg.norm(P @ Q.T) * (1 - 1e-5)


@pytest.mark.parametrize("fraction", [0.15, 0.3])
@pytest.mark.parametrize("seed", range(4))
def test_completion_starts_at_the_right_scale(make_target, seed, fraction):
    """With a fraction ρ seen, −∇f(0) ≈ ρ X* while L = 1: the paper's start is too short by 1/ρ."""
    rng = np.random.default_rng(seed)
    X, _, _ = make_target(rng, (400, 300), np.array([3.0, 2.0]))
    problem = bf.Problem(bf.losses.Squared(), *bf.operators.Entries.from_dense(X, rng.random(X.shape) < fraction))
    fitted, plain = (U @ V.T for U, V in (start(init, problem, 2) for init in (SPECTRAL, PLAIN)))
    truth = np.linalg.norm(X)
    assert truth / 2 < np.linalg.norm(fitted) < 2 * truth
    assert np.linalg.norm(plain) < truth / 2
    assert np.linalg.norm(fitted - X) < 0.9 * np.linalg.norm(plain - X)
