"""BFGD without a balance term is FGD on W = [U; V]: Remark (prop:reduction) and Proposition (lem:reduction).

With f̂([A B; C D]) = ½f(B) + ½f(Cᴴ), FGD's direction ∇f̂(WWᴴ) W is half of (∇f V; ∇fᴴ U), so η_BFGD = η_FGD/2.
"""

import numpy as np
import pytest

import bifactor as bf
from bifactor.arrays import gaussian
from bifactor.factors import Free

M, N, R = 7, 5, 2
LOSSES = [bf.losses.Squared(), bf.losses.Huber(0.3), bf.losses.Logistic(), bf.losses.Probit(0.7)]
COMPLEX = [bf.losses.Squared(), bf.losses.Huber(0.3)]
CASES = [(loss, np.float64) for loss in LOSSES] + [(loss, np.complex128) for loss in COMPLEX]
EVERY_CASE = pytest.mark.parametrize(("loss", "dtype"), CASES)


def make(rng, loss, dtype, sampled):
    """The same f twice: as a Problem, and as dense value and gradient of X."""
    Y = gaussian(rng, (M, N), dtype)
    if loss.targets is bf.losses.Logistic.targets:
        Y = np.sign(Y)
    weights = rng.uniform(0.5, 2.0, (M, N))
    mask = rng.random((M, N)) < 0.6 if sampled else np.ones((M, N), bool)
    if sampled:
        operator, y = bf.operators.Entries(*np.nonzero(mask), (M, N)), Y[mask]
        problem = bf.Problem(loss, operator, y, weights[mask])
    else:
        problem = bf.Problem(loss, bf.operators.Full((M, N)), Y, weights)
    weights = weights * mask
    return problem, lambda X: float(np.sum(weights * loss.value(X, Y))), lambda X: weights * loss.gradient(X, Y)


def lift(value, gradient, smoothness, dtype):
    def lifted_value(Z):
        return 0.5 * value(Z[:M, M:]) + 0.5 * value(Z[M:, :M].conj().T)

    def lifted_gradient(Z):
        G = np.zeros_like(Z)
        G[:M, M:] = 0.5 * gradient(Z[:M, M:])
        G[M:, :M] = 0.5 * gradient(Z[M:, :M].conj().T).conj().T
        return G

    function = bf.Function(lifted_value, lifted_gradient, (M + N, M + N), smoothness, dtype)
    return bf.Objective(function, symmetric=True)


@EVERY_CASE
@pytest.mark.parametrize("sampled", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_fgd_on_the_lifted_problem_is_bfgd(trajectory, seed, sampled, loss, dtype):
    rng = np.random.default_rng(seed)
    problem, value, gradient = make(rng, loss, dtype, sampled)
    lifted = lift(value, gradient, problem.smoothness / 2, dtype)
    U, V = gaussian(rng, (M, R), dtype), gaussian(rng, (N, R), dtype)
    W = np.vstack([U, V])
    eta = 0.2 / problem.smoothness / np.linalg.norm(W, 2) ** 2
    two = trajectory(problem, bf.solvers.BFGD(bf.steps.Constant(eta), balance=None), U, V, 15)
    one = trajectory(lifted, bf.solvers.FGD(bf.steps.Constant(2 * eta)), W, W, 15)
    for s, t in zip(two, one, strict=True):
        assert t.value == pytest.approx(s.value, rel=1e-11)
        np.testing.assert_allclose(t.U, np.vstack([s.U, s.V]), rtol=1e-10, atol=1e-12)
        slope = s.point.gradient
        np.testing.assert_allclose(
            2 * t.point.gradient.left, np.vstack([slope.left, slope.right]), rtol=1e-9, atol=1e-11
        )
    assert two[-1].value < two[0].value  # it went somewhere


@EVERY_CASE
@pytest.mark.parametrize("seed", range(3))
def test_the_lifted_function_is_half_as_smooth(seed, loss, dtype):
    """Proposition (lem:reduction): f̂ is convex and L/2-smooth."""
    rng = np.random.default_rng(seed)
    problem, value, gradient = make(rng, loss, dtype, sampled=False)
    L = problem.smoothness
    lifted = lift(value, gradient, None, dtype)
    identity, order = np.eye(M + N), M + N
    for size in (1e-3, 1.0, 10.0):
        Z1 = gaussian(rng, (order, order), dtype)
        Z2 = Z1 + size * gaussian(rng, (order, order), dtype)
        there, here = (lifted.f.gradient(Free().pair(Z, identity)).matrix for Z in (Z2, Z1))
        change = there - here
        monotone = np.vdot(change, Z2 - Z1).real
        assert monotone >= 0
        # Convexity and L/2-smoothness in one inequality (Nesterov, 2.1.8).
        assert np.linalg.norm(change) ** 2 <= L / 2 * monotone * (1 + 1e-12)
    if isinstance(loss, bf.losses.Squared):  # and no smoother: the library's own estimate finds L/2
        assert lifted.smoothness == pytest.approx(L / 2, rel=0.02)
        assert lifted.smoothness <= L / 2 * (1 + 1e-6)


@EVERY_CASE
def test_fgd_s_own_step_in_the_terms_of_bfgd(loss, dtype):
    """η_FGD/2 = 1/(16 L‖W₀‖² + 16‖∇f‖₂), as ‖∇f̂‖₂ = ½‖∇f‖₂ and f̂ is L/2-smooth."""
    rng = np.random.default_rng(0)
    problem, value, gradient = make(rng, loss, dtype, sampled=False)
    L = problem.smoothness
    U, V = gaussian(rng, (M, R), dtype), gaussian(rng, (N, R), dtype)
    W = np.vstack([U, V])
    lifted = lift(value, gradient, L / 2, dtype)
    eta = bf.solvers.FGD().init(lifted, lifted.kind.pair(W, W), R).own.memory.eta
    spectral = np.linalg.norm(gradient(U @ V.conj().T), 2)
    assert eta / 2 == pytest.approx(1 / (16 * L * np.linalg.norm(W, 2) ** 2 + 16 * spectral), rel=1e-9)
