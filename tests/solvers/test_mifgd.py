"""Factored gradient descent with momentum, beside its formulas on dense matrices."""

import numpy as np
import pytest

import bifactor as bf
from bifactor.arrays import gaussian, herm
from bifactor.errors import InputError
from bifactor.solvers import FGD
from bifactor.solvers.mifgd import MiFGD
from bifactor.testing import check_solver

DTYPES = [np.float32, np.float64, np.complex64, np.complex128]


def naive(gradient, Z, curvature, mu, delta=0.1):
    """U⁺ = Z − η ∇f(ZZᴴ) Z, Z⁺ = U⁺ + μ(U⁺ − U), from a factor."""
    U, G = Z, gradient(Z @ herm(Z))
    eta = 1 / (4 * ((1 + delta) * curvature * np.linalg.norm(Z, 2) ** 2 + np.linalg.norm(G, 2)))
    while True:
        G = gradient(Z @ herm(Z))
        new = Z - eta * (G + herm(G)) / 2 @ Z
        U, Z = new, new + mu * (new - U)
        yield Z @ herm(Z)


def lifted(gradient, m):
    """∇ of the f that a Hermitian matrix of size m + n has by its upper right block."""

    def of(Y):
        G = gradient(Y[:m, m:])
        m_, n_ = G.shape
        return np.block([[np.zeros((m_, m_)), G], [herm(G), np.zeros((n_, n_))]]) / 2

    return of


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("mu", [0.25, 0.75])
def test_iterates_of_sensing(sensing, dense, follow, mu, dtype):
    problem = sensing(12, symmetric=True, size=120, noise=0.1, dtype=dtype)
    Z = gaussian(np.random.default_rng(7), (12, 2), dtype)
    theirs = naive(dense(problem)[1], Z, problem.scale, mu)
    follow(problem, 2, MiFGD(mu), theirs, bf.inits.Given(Z), steps=20)


def test_iterates_of_completion(make_problem, dense, follow):
    problem = make_problem(12, symmetric=True, observed=0.8)
    Z = gaussian(np.random.default_rng(7), (12, 3), float)
    theirs = naive(dense(problem)[1], Z, problem.scale, 0.75, delta=0.3)
    follow(problem, 3, MiFGD(delta=0.3), theirs, bf.inits.Given(Z), steps=20)


def test_iterates_of_tomography(follow):
    pauli = {"I": np.eye(2), "X": np.array([[0, 1], [1, 0]]), "Y": np.array([[0, -1j], [1j, 0]]), "Z": np.diag([1, -1])}
    operator = bf.operators.Pauli(3, 40, rng=0)
    P = np.array([np.kron(np.kron(pauli[a], pauli[b]), pauli[c]) for a, b, c in operator.labels])
    rng = np.random.default_rng(1)
    X, Z = gaussian(rng, (8, 2), complex), gaussian(rng, (8, 2), complex)
    y = operator.forward(X, X)

    def gradient(X):
        return np.einsum("t,tij->ij", np.einsum("tij,ji->t", P, X).real - y, P)

    problem = bf.Problem(bf.losses.Squared(), operator, y, symmetric=True)
    # 40 of the 64 strings, each of norm 8^½: what f curves by over Hermitian X is 40·8/64 on average.
    follow(problem, 2, MiFGD(0.5), naive(gradient, Z, 40 / 8, 0.5), bf.inits.Given(Z), steps=20)


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_iterates_of_rectangular_matrices_are_those_of_the_stacked_factor(make_problem, dense, dtype):
    problem = make_problem(9, 7, dtype=dtype, observed=0.8)
    rng = np.random.default_rng(7)
    U, V = gaussian(rng, (9, 2), dtype), 2 * gaussian(rng, (7, 2), dtype)
    # As a function of that Hermitian matrix f has half the curvature, the block being there twice.
    theirs = naive(lifted(dense(problem)[1], 9), np.vstack([U, V]), problem.scale / 2, 0.75)
    seen = []
    bf.solve(problem, 2, MiFGD(), bf.inits.Given(U, V), max_iter=20, tol=0, callback=lambda t, s: seen.append(s))
    for state, Y in zip(seen, theirs, strict=False):
        W = np.vstack([state.U, state.V])
        assert np.linalg.norm(W @ herm(W) - Y) <= 1e-10 * np.linalg.norm(Y)


def test_without_momentum_it_is_fgd(make_problem):
    problem = make_problem(15, symmetric=True, dtype=np.complex128)
    U = gaussian(np.random.default_rng(3), (15, 2), complex)
    eta = MiFGD(0).init(problem, problem.kind.pair(U, U), 2).own.eta
    ours = bf.solve(problem, 2, MiFGD(momentum=0), bf.inits.Given(U), max_iter=30, tol=0)
    theirs = bf.solve(problem, 2, FGD(bf.steps.Constant(eta)), bf.inits.Given(U), max_iter=30, tol=0)
    np.testing.assert_allclose(ours.U, theirs.U, rtol=1e-12, atol=1e-12)
    assert np.all(np.diff(ours.history.objective) <= 0)


def test_recovery(sensing, make_problem):
    square = [sensing(20, symmetric=True, size=250), make_problem(40, symmetric=True, observed=0.6, noiseless=True)]
    others = [sensing(20, 15, size=250), make_problem(40, 30, observed=0.6, noiseless=True)]
    for problem in square + others:
        result = bf.solve(problem, 2, MiFGD(), rng=0, max_iter=3000, tol=1e-9)
        assert result.status is bf.Status.CONVERGED
        assert bf.metrics.relative_error(result.U, result.V, *problem.truth) < 1e-5


def test_a_pure_state_from_a_fifth_of_the_strings_and_what_momentum_saves():
    psi = np.linalg.qr(gaussian(np.random.default_rng(0), (32, 1), complex))[0]
    operator = bf.operators.Pauli(5, 205, rng=1)
    problem = bf.Problem(bf.losses.Squared(), operator, operator.forward(psi, psi), symmetric=True)
    needed = {}

    def near(t, state):
        return bf.metrics.relative_error(state.U, state.V, psi, psi) < 1e-6

    for mu in (0.0, 0.75):
        result = bf.solve(problem, 1, MiFGD(mu), rng=2, tol=0, callback=near)
        assert result.status is bf.Status.CALLBACK
        needed[mu] = result.n_iter
    assert needed[0.75] < 0.5 * needed[0.0]


def test_it_serves_the_estimator():
    psi = np.linalg.qr(gaussian(np.random.default_rng(0), (8, 1), complex))[0]
    operator = bf.operators.Pauli(3)
    fit = bf.StateTomography(3, 1, solver=MiFGD(), random_state=0, tol=1e-9)
    fit.fit_expectations(operator.labels[:50], operator.forward(psi, psi)[:50])
    assert fit.fidelity(psi[:, 0]) > 1 - 1e-8


def test_a_run_goes_on_where_it_stopped(make_problem, tmp_path):
    for symmetric in (True, False):
        problem = make_problem(15, symmetric=symmetric)
        whole = bf.solve(problem, 2, MiFGD(), rng=0, max_iter=30, tol=0)
        for stop in (11, 30):
            path = tmp_path / f"{symmetric}.npz"
            parts = bf.solve(problem, 2, MiFGD(), rng=0, max_iter=stop, tol=0, checkpoint=path)
        np.testing.assert_array_equal(parts.U, whole.U)
        np.testing.assert_array_equal(parts.history.objective, whole.history.objective)


def test_no_data_no_matrix():
    for symmetric in (True, False):
        problem = bf.Problem(bf.losses.Squared(), bf.operators.Full((5, 5)), np.zeros((5, 5)), symmetric=symmetric)
        result = bf.solve(problem, 2, MiFGD(), rng=0)
        assert result.status is bf.Status.GRADIENT
        assert not result.matrix().any()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("solver", "symmetric"), [(MiFGD(), True), (MiFGD(0.25), True), (MiFGD(), False)])
def test_laws(make_problem, solver, symmetric, dtype):
    data = make_problem(15, dtype=dtype, symmetric=True)
    problem = bf.Problem(data.loss, data.operator, data.y, symmetric=symmetric)
    check_solver(solver, problem, rank=2)
    assert bf.solve(problem, 2, solver, rng=0, max_iter=3).U.dtype == dtype


def test_bad_settings_are_refused():
    for settings in (
        {"momentum": 1},
        {"momentum": -0.1},
        {"momentum": "1"},
        {"delta": -1},
        {"delta": np.nan},
    ):
        with pytest.raises(InputError):
            MiFGD(**settings)


def test_penalties_and_offsets_are_refused(make_problem):
    entries = make_problem(10, 10)
    with pytest.raises(InputError, match="minimises f alone"):
        bf.solve(bf.Problem(entries.loss, entries.operator, entries.y, penalty=bf.penalties.Ridge(1.0)), 2, MiFGD())
    offset = bf.Problem(entries.loss, entries.operator, entries.y, offsets=True)
    with pytest.raises(InputError, match="offsets"):
        bf.solve(offset, 2, MiFGD())
