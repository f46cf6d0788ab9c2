"""The balance term λ·g(UᴴU − VᴴV): Sect. 4.2 of the paper, its Appendix B, and the toy example of Sect. 6.2."""

import numpy as np
import pytest

import bifactor as bf
from bifactor.arrays import gaussian, inner
from bifactor.penalties import balance

SHAPE, R = (7, 5), 3
SOFT = balance.Elementwise(lambda x: x**2 / 4 + np.logaddexp(x, -x), lambda x: x / 2 + np.tanh(x), mu=0.5, L=1.5)
LOPSIDED = balance.Elementwise(
    lambda x: np.where(x < 0, 0.3, 2.0) / 2 * x**2, lambda x: np.where(x < 0, 0.3, 2.0) * x, mu=0.3, L=2.0
)
CASES = [(g, np.float64) for g in (balance.Frobenius(0.7), balance.Frobenius(), SOFT, LOPSIDED)]
CASES += [(g, np.complex128) for g in (balance.Frobenius(0.7), balance.Frobenius(), SOFT)]  # g even
EVERY_G = pytest.mark.parametrize(("g", "dtype"), CASES)


def nothing(dtype=np.float64):
    """f = 0, which leaves the balance term alone."""
    return bf.Objective(bf.Function(lambda X: 0.0, np.zeros_like, SHAPE, dtype=dtype))


def factors(rng, dtype=np.float64):
    return tuple(gaussian(rng, (k, R), dtype) for k in SHAPE)


def descended(solver, problem, U, V):
    """The point of f + λ·g, where the iteration sees itself."""
    return solver.init(problem, problem.kind.pair(U, V), R).own.at


def imbalance(U, V):
    return U.conj().T @ U - V.conj().T @ V


@EVERY_G
@pytest.mark.parametrize("lam", [0.25, 1.0])
@pytest.mark.parametrize("seed", range(3))
def test_the_direction_is_the_true_gradient_of_lambda_g(seed, lam, g, dtype):
    """∇_U = 2λ U∇g, ∇_V = −2λ V∇g: the chain rule's 2, which Appendix B drops, against central differences."""
    rng = np.random.default_rng(seed)
    (U, V), (D, E) = factors(rng, dtype), factors(rng, dtype)
    at = descended(bf.solvers.BFGD(bf.steps.Constant(1.0), g, lam), nothing(dtype), U, V)
    h = 1e-5
    ahead, behind = (lam * g.value(imbalance(U + t * D, V + t * E), 1.0) for t in (h, -h))
    assert at.gradient.inner(at.x.kind.pair(D, E)) == pytest.approx((ahead - behind) / (2 * h), rel=1e-6, abs=1e-6)
    assert at.value == pytest.approx(lam * g.value(imbalance(U, V), 1.0), rel=1e-14)


@EVERY_G
@pytest.mark.parametrize("seed", range(3))
def test_the_default_lambda_is_the_iteration_of_the_appendix(seed, g, dtype):
    """Appendix B moves by ∇f V + ½ U∇g and ∇fᴴ U − ½ V∇g: that is λ = 1/4, the default."""
    rng = np.random.default_rng(seed)
    U, V = factors(rng, dtype)
    problem = bf.Problem(bf.losses.Squared(), bf.operators.Full(SHAPE), gaussian(rng, SHAPE, dtype))
    moved = descended(bf.solvers.BFGD(bf.steps.Constant(1.0), g), problem, U, V).gradient
    G, slope = problem.f.gradient(problem.kind.pair(U, V)).matrix, g.gradient(imbalance(U, V), problem.scale)
    np.testing.assert_allclose(moved.left, G @ V + U @ slope / 2, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(moved.right, G.conj().T @ U - V @ slope / 2, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_the_two_scalings_in_the_literature_are_one_term(dtype):
    """The toy's g = ¼‖·‖²_F under the appendix's rule, and Tu et al.'s (1/16)‖·‖²_F under its true gradient."""
    rng = np.random.default_rng(0)
    U, V = factors(rng, dtype)
    delta = imbalance(U, V)
    paper = bf.solvers.BFGD(bf.steps.Constant(1.0), balance.Frobenius(1 / 2))
    tu = bf.solvers.BFGD(bf.steps.Constant(1.0), balance.Frobenius(1 / 8), lam=1.0)
    # g = ¼‖Δ‖² is Frobenius(1/2): ∇g = ½Δ, and ½U∇g = ¼UΔ. (1/16)‖Δ‖² has the true gradient 4/16 UΔ.
    assert balance.Frobenius(1 / 2).value(delta, 1.0) == pytest.approx(np.linalg.norm(delta) ** 2 / 4)
    for solver in (paper, tu):
        at = descended(solver, nothing(dtype), U, V)
        assert at.value == pytest.approx(np.linalg.norm(delta) ** 2 / 16, rel=1e-12)
        np.testing.assert_allclose(at.gradient.left, U @ delta / 4, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(at.gradient.right, -V @ delta / 4, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_the_objective_is_f_alone(dtype):
    """λ·g is the solver's own: a state's value and gradient, and so a history, are those of the problem."""
    rng = np.random.default_rng(0)
    U, V = factors(rng, dtype)
    problem = bf.Problem(bf.losses.Squared(), bf.operators.Full(SHAPE), gaussian(rng, SHAPE, dtype))
    solver = bf.solvers.BFGD(bf.steps.Constant(1e-3), balance.Frobenius(2.0))
    state = solver.init(problem, problem.kind.pair(U, V), R)
    for _ in range(3):
        f, GV, GhU, _ = problem.f.evaluate(problem.kind.pair(state.U, state.V))
        assert state.value == pytest.approx(f, rel=1e-14)
        np.testing.assert_allclose(state.point.gradient.left, GV, rtol=1e-12)
        np.testing.assert_allclose(state.point.gradient.right, GhU, rtol=1e-12)
        term = np.linalg.norm(imbalance(state.U, state.V)) ** 2 / 4  # λ·(weight/2)
        assert state.own.at.value == pytest.approx(f + term, rel=1e-14)
        state = solver.step(problem, state)


@EVERY_G
def test_the_declared_constants_bound_g(g, dtype):
    """Conditions (i) to (iii) on g: ∇g(0) = 0, ∇g Hermitian, g μ_g-strongly convex and L_g-smooth."""
    rng = np.random.default_rng(0)
    mu, L = g.convexity(1.0), g.smoothness(1.0)
    zero = np.zeros((R, R), dtype)
    assert not g.gradient(zero, 1.0).any()
    for size in np.logspace(-3, 2, 60):
        A, B = (S + S.conj().T for S in (size * gaussian(rng, (R, R), dtype) for _ in range(2)))
        change = g.gradient(A, 1.0) - g.gradient(B, 1.0)
        along, moved = inner(change, A - B), np.linalg.norm(A - B)
        np.testing.assert_allclose(change, change.conj().T, atol=1e-12 * size)
        assert mu * moved**2 * (1 - 1e-9) <= along
        assert np.linalg.norm(change) <= L * moved * (1 + 1e-9)
        # Appendix B.1 (b), the inequality the rate rests on.
        slope = g.gradient(A, 1.0)
        need = np.linalg.norm(slope) ** 2 / (2 * L) + mu / 2 * np.linalg.norm(A) ** 2
        assert inner(slope, A) >= need * (1 - 1e-9)


def test_the_declared_constants_are_not_idle():
    """g″ of SOFT reaches L at 0 and mu far out, so neither bound above could be tightened."""
    near, far = np.full((1, 1), 1e-6), np.full((1, 1), 20.0)
    assert SOFT.gradient(near, 1.0) / near == pytest.approx(SOFT.L)
    assert (SOFT.gradient(far + 1, 1.0) - SOFT.gradient(far, 1.0)) == pytest.approx(SOFT.mu)


def test_the_default_g_is_no_steeper_than_f():
    """So that max{L, L_g} = L, as the docstring of Frobenius says and Sect. 4.2 advises (g at most L-smooth)."""
    for rows in range(2, 40):
        problem = bf.Problem(bf.losses.Squared(), bf.operators.Full((rows, 10)), np.ones((rows, 10)))
        assert balance.Frobenius().smoothness(problem.scale) <= problem.smoothness


@EVERY_G
@pytest.mark.parametrize("seed", range(3))
def test_plus_balances_and_the_printed_minus_does_not(trajectory, seed, g, dtype):
    """Algorithm 1, lines 5 and 6 print −λ∇g where the text has +. With ∇f = 0 the sign shows alone."""
    rng = np.random.default_rng(seed)
    U, V = factors(rng, dtype)
    eta = 0.5 / g.smoothness(1.0) / np.linalg.norm(np.vstack([U, V]), 2) ** 2
    solver = bf.solvers.BFGD(bf.steps.Constant(eta), g)
    states = trajectory(nothing(dtype), solver, U, V, 60)
    size = [np.linalg.norm(imbalance(s.U, s.V)) for s in states]
    assert np.all(np.diff(size) < 0)
    assert size[-1] < 0.2 * size[0]

    at = states[0].own.at
    for _ in range(40):
        x = at.x.plus(eta, at.gradient)
        at = descended(solver, nothing(dtype), x.left, x.right)
        if np.linalg.norm(imbalance(x.left, x.right)) > 100 * size[0]:
            return
    pytest.fail("the printed sign did not blow up the imbalance")


def toy(rng, size=24, r=5):
    """Sect. 6.2: X* with orthonormal factors, f = ‖UVᵀ − X*‖²_F (L = 2), a start with cond(U) = 100."""
    A, B = (np.linalg.qr(rng.standard_normal((size, r)))[0] for _ in range(2))
    problem = bf.Problem(bf.losses.Squared(), bf.operators.Full((size, size)), A @ B.T, 2.0)
    E = np.logspace(-1, 1, r)
    U, V = A * E + 1e-3 * rng.standard_normal(A.shape), B / E + 1e-3 * rng.standard_normal(B.shape)
    return problem, U, V, A, B


@pytest.mark.parametrize("seed", range(2))
def test_the_toy_example(seed):
    problem, U, V, A, B = toy(np.random.default_rng(seed))
    assert np.linalg.cond(U) > 80

    def run(balance):
        solver = bf.solvers.BFGD(bf.steps.StronglyConvex(), balance)
        result = bf.solve(problem, 5, solver, bf.inits.Given(U, V), max_iter=3000, tol=0)
        return np.linalg.cond(result.U), bf.metrics.relative_error(result.U, result.V, A, B)

    (cond, error), (cond_without, error_without) = run(balance.Frobenius(1 / 2)), run(None)
    assert cond < 2
    assert cond_without > 50
    assert error < error_without
