"""The certificate against the convex problem solved by another method on dense matrices."""

import pickle

import numpy as np
import pytest

import bifactor as bf
from bifactor.errors import InputError
from bifactor.factors import Free
from bifactor.penalties import Ridge
from bifactor.running.certificate import certify
from bifactor.solvers import PCG, Newton

LOSSES = {"Squared": bf.losses.Squared(), "Logistic": bf.losses.Logistic(), "Huber": bf.losses.Huber(0.5)}


def convex(problem, X, rho, symmetric=False):
    """f(X) + ρ‖X‖_*."""
    size = np.trace(X).real if symmetric else np.linalg.svd(X, compute_uv=False).sum()
    return problem.f.value(Free().pair(X, np.eye(X.shape[1], dtype=X.dtype))) + rho * size


def proximal_gradient(problem, rho, symmetric=False, tol=1e-13):
    """min f(X) + ρ‖X‖_*, or over X ⪰ 0 of f(X) + ρ tr X, by accelerated proximal gradient with restarts."""
    eye = np.eye(problem.shape[1], dtype=problem.dtype)
    X = Y = np.zeros(problem.shape, problem.dtype)
    t, L = 1.0, problem.smoothness
    for _ in range(20000):
        W = Y - (problem.f.gradient(Free().pair(Y, eye)) @ eye) / L
        if symmetric:
            values, Q = np.linalg.eigh((W + W.conj().T) / 2)
            new = (Q * np.maximum(values - rho / L, 0)) @ Q.conj().T
        else:
            left, s, right = np.linalg.svd(W, full_matrices=False)
            new = (left * np.maximum(s - rho / L, 0)) @ right
        if np.real(np.vdot(Y - new, new - X)) > 0:  # O'Donoghue and Candès, 2015
            t = 1.0
        after = (1 + np.sqrt(1 + 4 * t * t)) / 2
        change = np.linalg.norm(new - X)
        X, Y, t = new, new + (t - 1) / after * (new - X), after
        if change <= tol * max(np.linalg.norm(X), 1.0):
            break
    return convex(problem, X, rho, symmetric)


@pytest.fixture(scope="module", params=[(name, symmetric) for name in LOSSES for symmetric in (False, True)], ids=str)
def solved(request, make_problem):
    """A problem, its ridge, and the least of the convex problem by proximal gradient."""
    name, symmetric = request.param
    problem = make_problem(20 if symmetric else 30, 20, loss=LOSSES[name], symmetric=symmetric)
    rho = 0.25 * np.linalg.norm(problem.gradient_at_zero() @ np.eye(20), 2)
    return problem, rho, symmetric, proximal_gradient(problem, rho, symmetric)


def test_with_enough_columns_it_is_the_convex_optimum_and_says_so(solved):
    problem, rho, symmetric, least = solved
    for ridge in (Ridge(rho), Ridge((rho / 3, 3 * rho)))[: 1 if symmetric else 2]:
        result = bf.solve(problem.penalized(ridge), 20, PCG(), rng=0, tol=1e-11, max_iter=5000)
        certificate = result.certificate
        assert result.objective == pytest.approx(least, rel=1e-6)
        assert convex(problem, result.matrix(), rho, symmetric) == pytest.approx(least, rel=1e-6)
        assert certificate.optimal()
        assert certificate.rho == pytest.approx(rho)
        assert certificate.dual_norm == pytest.approx(rho, rel=1e-5)
        assert certificate.relative_gradient < 1e-6
        assert certificate.gap <= 1e-5 * least
        assert convex(problem, result.matrix(), rho, symmetric) - least <= certificate.gap + 1e-9 * least


def test_the_gap_is_a_bound_wherever_one_stands(solved):
    problem, rho, symmetric, least = solved
    part = problem.penalized(Ridge(rho))
    for rank in (1, 2, 20):
        for iterations in (0, 3, 10, 30):
            result = bf.solve(part, rank, PCG(), rng=0, max_iter=iterations, tol=0)
            above = convex(problem, result.matrix(), rho, symmetric) - least
            assert 0 <= above + 1e-9 * least <= result.certificate.gap + 2e-9 * least
    rng = np.random.default_rng(0)
    for size in (0.0, 1e-3, 1.0, 10.0):
        U = size * rng.standard_normal((problem.shape[0], 3))
        V = U if symmetric else size * rng.standard_normal((problem.shape[1], 3))
        above = convex(problem, U @ V.T, rho, symmetric) - least
        assert above <= certify(part, part.kind.pair(U, V)).gap + 1e-9 * least


def test_too_few_columns_are_noticed(solved):
    problem, rho, _, least = solved
    result = bf.solve(problem.penalized(Ridge(rho)), 1, PCG(), rng=0, tol=1e-11, max_iter=5000)
    assert result.certificate.relative_gradient < 1e-6  # nothing is left to do with one column
    assert result.objective > least * (1 + 1e-4)
    assert result.certificate.dual_norm > 1.01 * rho
    assert not result.certificate.optimal()
    assert result.certificate.gap >= result.objective - least


def test_optimality_is_the_statement_of_its_conditions(solved):
    problem, rho, symmetric, _ = solved
    part = problem.penalized(Ridge(rho))
    result = bf.solve(part, 20, PCG(), rng=0, max_iter=12, tol=0)
    c = result.certificate
    assert not c.optimal()
    G = problem.f.gradient(problem.kind.pair(result.U, result.V)) @ np.eye(20)
    dual = np.linalg.eigvalsh(-(G + G.T) / 2)[-1] if symmetric else np.linalg.norm(G, 2)
    assert c.dual_norm == pytest.approx(dual, rel=1e-7)
    assert c.gradient_norm == pytest.approx(result.history.gradient_norm[-1], rel=1e-6)
    assert c.optimal(tol=1e3)
    assert result.certificate is c  # computed once


def test_nothing_is_optimal_under_a_heavy_ridge(make_problem):
    problem = make_problem()
    zero = problem.zero(2)
    top = np.linalg.norm(problem.f.gradient(zero) @ np.eye(20), 2)
    heavy, light = (certify(problem.penalized(Ridge(factor * top)), zero) for factor in (1.01, 0.99))
    assert heavy.optimal()
    assert heavy.gap == 0
    assert not light.optimal()
    assert light.gap > 0


@pytest.mark.parametrize("symmetric", [False, True])
def test_complex_data(make_problem, symmetric):
    problem = make_problem(14, 14, dtype=np.complex128, symmetric=symmetric)
    rho = 2.0
    least = proximal_gradient(problem, rho, symmetric)
    result = bf.solve(problem.penalized(Ridge(rho)), 14, PCG(), rng=0, tol=1e-11, max_iter=5000)
    assert result.objective == pytest.approx(least, rel=1e-6)
    assert result.certificate.optimal()
    early = bf.solve(problem.penalized(Ridge(rho)), 14, PCG(), rng=0, max_iter=3)
    assert convex(problem, early.matrix(), rho, symmetric) - least <= early.certificate.gap


def test_weights_and_sensing():
    rng = np.random.default_rng(0)
    operator = bf.operators.Gaussian((10, 8), 60, rng=0)
    problem = bf.Problem(bf.losses.Squared(), operator, rng.standard_normal(60), weights=rng.random(60))
    least = proximal_gradient(problem, 0.1)
    for solver in (PCG(), Newton()):
        result = bf.solve(problem.penalized(Ridge(0.1)), 8, solver, rng=0, tol=1e-11, max_iter=5000)
        assert result.objective == pytest.approx(least, rel=1e-6)
        assert result.certificate.optimal()


def test_where_the_least_of_f_is_not_known_there_is_no_gap(make_problem):
    T = np.random.default_rng(0).standard_normal((8, 6))
    box = bf.Objective(bf.Function(lambda X: 0.5 * np.sum((X - T) ** 2), lambda X: X - T, T.shape), Ridge(1.0))
    for problem, rank in ((box, 6), (make_problem(12, 9, loss=bf.losses.Poisson()).penalized(Ridge(2.0)), 9)):
        assert problem.least is None
        result = bf.solve(problem, rank, Newton(), rng=0, tol=1e-11)
        assert result.certificate.gap is None
        assert result.certificate.optimal()
    shrunk = np.maximum(np.linalg.svd(T, compute_uv=False) - 1, 0)
    found = np.linalg.svd(bf.solve(box, 6, rng=0, tol=1e-11).matrix(), compute_uv=False)
    np.testing.assert_allclose(found, shrunk, atol=1e-6)


def test_without_a_ridge_it_is_about_f_alone(make_problem):
    problem = make_problem()
    c = bf.solve(problem, 2, rng=0).certificate
    assert c.rho == 0
    assert c.gap is None
    assert c.dual_norm > 0.1  # noise is left
    assert not c.optimal()
    zero = bf.Problem(bf.losses.Squared(), problem.operator, 0 * problem.y)
    assert bf.solve(zero, 2, rng=0).certificate.optimal()


def test_a_result_without_its_problem_has_no_certificate(make_problem, tmp_path):
    result = bf.solve(make_problem().penalized(Ridge(1.0)), 2, rng=0, max_iter=3)
    result.save(tmp_path / "result")
    for copy in (bf.Result.load(tmp_path / "result"), pickle.loads(pickle.dumps(result))):
        with pytest.raises(InputError, match=r"read from a file.*Solve again"):
            _ = copy.certificate
    assert result.certificate.gap >= 0


def test_symmetric_with_two_sides_is_a_trace_penalty_of_their_mean(make_problem):
    problem = make_problem(20, 20, symmetric=True)
    a, b = (
        bf.solve(problem.penalized(Ridge(rho)), 20, PCG(), rng=0, tol=1e-12, max_iter=5000)
        for rho in (1.25, (0.5, 2.0))
    )
    assert a.objective == pytest.approx(b.objective, rel=1e-9)
    for result in (a, b):
        assert result.certificate.rho == pytest.approx(1.25)
        assert result.certificate.optimal()


def test_a_resumed_symmetric_run_has_the_same_certificate(make_problem, tmp_path):
    problem = make_problem(20, 20, symmetric=True).penalized(Ridge(1.25))
    for _ in range(2):
        result = bf.solve(problem, 20, PCG(), rng=0, tol=1e-12, max_iter=5000, checkpoint=tmp_path / "run")
        np.testing.assert_array_equal(result.U, result.V)
        assert result.certificate.optimal()


def test_without_a_ridge_a_perfect_fit_is_optimal(make_problem):
    problem = make_problem(noiseless=True)
    result = bf.solve(problem, 2, rng=0, tol=1e-13)
    assert result.certificate.optimal()
    early = bf.solve(problem, 2, rng=0, max_iter=10)
    assert not early.certificate.optimal()
