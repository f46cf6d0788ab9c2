"""Accelerated proximal gradients for the nuclear norm, beside their formulas on dense matrices."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import bifactor as bf
from bifactor.arrays import herm
from bifactor.factors import Symmetric
from bifactor.penalties import Ridge
from bifactor.solvers import PCG, NuclearNorm
from bifactor.testing import check_solver

DTYPES = [np.float32, np.float64, np.complex64, np.complex128]


def inner(A, B):
    return np.vdot(A, B).real


def soft(M, level, rank, symmetric=False):
    """The singular values (where X = UUᴴ, eigenvalues) of M lowered by a level, the `rank` largest of them kept."""
    if symmetric:
        w, Q = np.linalg.eigh((M + herm(M)) / 2)
        return (Q[:, -rank:] * np.maximum(w[-rank:] - level, 0)) @ herm(Q[:, -rank:])
    A, s, Bh = np.linalg.svd(M, full_matrices=False)
    return (A[:, :rank] * np.maximum(s[:rank] - level, 0)) @ Bh[:rank]


def naive(problem, f, gradient, rank=100, factor=0.25):
    """The iterates from X = 0: λ in stages, L eased by 0.9 and doubled, no momentum where the objective rises."""
    symmetric = problem.kind == Symmetric()
    left, right = problem.penalties[0].sides
    rho = (left + right) / 2 if symmetric else (left * right) ** 0.5

    def proximal(Y, L):
        G = gradient(Y)
        while True:
            Z = soft(Y - G / L, lam / L, rank, symmetric)
            bend = inner(gradient(Z) - G, Z - Y) / 2
            if max(bend, f(Z) - f(Y) - inner(G, Z - Y)) <= L / 2 * np.linalg.norm(Z - Y) ** 2:
                return Z, L
            L *= 2

    def F(X):
        return f(X) + lam * np.linalg.norm(X, "nuc")

    X = P = np.zeros(problem.shape, problem.dtype)
    G = -gradient(X)
    top = np.linalg.eigvalsh((G + herm(G)) / 2)[-1] if symmetric else np.linalg.norm(G, 2)
    t, L, over = 1.0, problem.scale, False
    lam = first = max(factor * top, rho)
    while True:
        lam = max(factor * lam, rho) if over else lam
        ahead = (1 + (1 + 4 * t * t) ** 0.5) / 2
        new, L = proximal(X + (t - 1) / ahead * (X - P), 0.9 * L)
        if t > 1 and F(new) > F(X):
            ahead, (new, L) = 1.0, proximal(X, L)
        over = lam > rho and np.linalg.norm(new - X) <= 0.05 * lam / first * np.linalg.norm(new)
        P, X, t = X, new, ahead
        yield X


def of_entries(problem):
    """(f, ∇f) of observed entries with any loss, as functions of a dense X."""
    seen = problem.operator.rows, problem.operator.cols

    def gradient(X):
        G = np.zeros_like(X)
        G[seen] = problem.loss.gradient(X[seen], problem.y)
        return G

    return lambda X: float(np.sum(problem.loss.value(X[seen], problem.y))), gradient


def top_of(problem):
    """‖∇f(0)‖₂."""
    eye = np.eye(problem.shape[1], dtype=problem.dtype)
    return float(np.linalg.norm(problem.gradient_at_zero() @ eye, 2))


@pytest.mark.parametrize("factor", [0.25, 0.6])
def test_iterates_of_sensing(sensing, dense, follow, factor):
    problem = sensing(noise=0.3, penalty=Ridge(0.4))
    theirs = naive(problem, *dense(problem), factor=factor)
    follow(problem, 10, NuclearNorm(factor), theirs, steps=40)


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_iterates_of_completion(make_problem, dense, follow, dtype):
    for shape in ((14, 11), (11, 14)):
        problem = make_problem(*shape, observed=0.7, dtype=dtype, penalty=Ridge((0.2, 0.45)))
        follow(problem, 11, NuclearNorm(), naive(problem, *dense(problem)), steps=40)


def test_iterates_of_every_loss(make_problem, follow, loss):
    problem = make_problem(14, 11, observed=0.7, loss=loss)
    problem = problem.penalized(Ridge(0.05 * top_of(problem)))
    follow(problem, 11, NuclearNorm(), naive(problem, *of_entries(problem)), steps=40)


def test_iterates_of_semidefinite_matrices(make_problem, dense, follow):
    problem = make_problem(12, symmetric=True, observed=0.8, penalty=Ridge((0.2, 0.6)))
    follow(problem, 12, NuclearNorm(), naive(problem, *dense(problem)), steps=40)


def test_iterates_of_limited_rank(make_problem, dense, follow):
    problem = make_problem(14, 11, rank=5, observed=0.9, penalty=Ridge(0.3))
    follow(problem, 2, NuclearNorm(), naive(problem, *dense(problem), rank=2), steps=30)


def test_the_rules_are_all_in_use(make_problem):
    """Stages, restarts and backtracking do happen in runs as long as those above."""
    problem = make_problem(14, 11, observed=0.7, penalty=Ridge(0.3))
    lams, ts, Ls = [], [], []

    def look(_, state):
        for column, number in ((lams, state.own.lam), (ts, state.own.t), (Ls, state.own.L)):
            column.append(number)

    bf.solve(problem, 11, NuclearNorm(), max_iter=40, tol=0, callback=look)
    assert len(set(lams)) >= 3
    assert 1.0 in ts[2:]
    assert any(b > a for a, b in pairwise(Ls))


@pytest.mark.parametrize("share", [0.3, 0.03])
def test_the_optimum_is_that_of_the_factors(make_problem, loss, share):
    problem = make_problem(25, 20, observed=0.6, loss=loss)
    problem = problem.penalized(Ridge(share * top_of(problem)))
    ours = bf.solve(problem, 20, NuclearNorm(), tol=1e-10, max_iter=5000)
    theirs = bf.solve(problem, 20, PCG(), rng=0, tol=1e-10, max_iter=5000)
    assert ours.status.converged
    assert ours.objective == pytest.approx(theirs.objective, rel=1e-8)
    assert ours.certificate.optimal(1e-5)


def test_the_optimum_of_sensing_and_of_semidefinite_matrices(sensing, make_problem):
    for problem in (
        sensing(m=12, n=11, noise=0.3, penalty=Ridge(0.5)),
        sensing(m=12, n=11, noise=0.3, dtype=np.complex128, penalty=Ridge(0.5)),
        make_problem(15, symmetric=True, observed=0.7, penalty=Ridge((0.5, 1.5))),
        make_problem(15, symmetric=True, observed=0.7, dtype=np.complex128, penalty=Ridge(1.0)),
    ):
        rank = min(problem.shape)
        ours = bf.solve(problem, rank, NuclearNorm(), tol=1e-10, max_iter=5000)
        theirs = bf.solve(problem, rank, PCG(), rng=0, tol=1e-10, max_iter=5000)
        assert ours.objective == pytest.approx(theirs.objective, rel=1e-8)
        assert ours.certificate.optimal(1e-5)
        assert np.array_equal(ours.U, ours.V) == (problem.kind == Symmetric())


def test_of_a_whole_matrix_it_lowers_the_singular_values():
    Y = np.random.default_rng(4).standard_normal((9, 7))
    A, s, Bh = np.linalg.svd(Y, full_matrices=False)
    assert 0 < np.count_nonzero(s > 1.5) < 7
    wanted = (A * np.maximum(s - 1.5, 0)) @ Bh
    problem = bf.Problem(bf.losses.Squared(), bf.operators.Full((9, 7)), Y, penalty=Ridge(1.5))
    np.testing.assert_allclose(bf.solve(problem, 7, NuclearNorm(), tol=1e-12).matrix(), wanted, atol=1e-10)
    box = bf.Function(lambda X: 0.5 * float(np.sum((X - Y) ** 2)), lambda X: X - Y, (9, 7))
    f = bf.Objective(box, Ridge(1.5))
    np.testing.assert_allclose(bf.solve(f, 7, NuclearNorm(), tol=1e-12).matrix(), wanted, atol=1e-10)


@pytest.mark.parametrize("loss", [bf.losses.Squared(), bf.losses.Poisson(), bf.losses.ExpectedCounts(0.5)])
def test_no_stage_lets_its_objective_rise(make_problem, loss):
    problem = make_problem(25, 20, loss=loss)
    rho = 0.02 * top_of(problem)
    problem = problem.penalized(Ridge(rho))
    seen = []

    def look(_, state):
        X = state.U @ state.V.T
        seen.append((state.own.lam, state.point.f, np.linalg.norm(X, "nuc")))
        # The penalty of balanced factors.
        assert state.value == pytest.approx(state.point.f + rho * np.linalg.norm(X, "nuc"), rel=1e-10)

    bf.solve(problem, 20, NuclearNorm(), max_iter=150, tol=0, callback=look)
    assert len({lam for lam, _, _ in seen}) >= 3
    for (_, f0, n0), (lam, f1, n1) in pairwise(seen):
        assert f1 + lam * n1 <= f0 + lam * n0 + 1e-12 * (abs(f0) + lam * n0)


def test_momentum_does_not_run_into_a_wall():
    # Ahead of X, where means are negative, the curvature is 1/floor: a step from there raised the objective by 10⁷.
    entry = bf.operators.Entries([0], [3], (1, 5))
    loss = bf.losses.ExpectedCounts(0.5)
    problem = bf.Problem(loss, entry, np.array([7e6]), np.array([0.37]), Ridge((1e6, 1e7)))
    start = bf.inits.Given(np.array([[3700.0]]), 1200.0 * np.eye(5)[:, [3]])
    result = bf.solve(problem, 1, NuclearNorm(), start, tol=1e-9)
    assert result.status.converged
    assert np.all(np.diff(result.history.objective) <= 1e-12 * np.abs(result.history.objective[:-1]))
    # w(1 − y/z) + ρ = 0
    assert result.matrix()[0, 3] == pytest.approx(0.37 * 7e6 / (0.37 + 1e13**0.5), rel=1e-3)


def test_momentum_does_not_run_out_of_range():
    box = bf.Function(lambda X: float(np.exp(X[0, 0])) - 3 * X[0, 0], lambda X: np.exp(X) - 3, (1, 1))
    f = bf.Objective(box, Ridge(1.0))
    solver = NuclearNorm()
    now = solver.init(f, f.kind.pair(np.array([[3.0]]), np.array([[3.0]])), 1)
    before = f.evaluate_keeping_z(f.kind.pair(np.array([[30.0]]), np.array([[-30.0]])))
    with np.errstate(all="ignore"):
        new = solver.step(f, replace(now, own=replace(now.own, before=before, t=1e3)))  # from e⁹⁰⁸
    assert np.isfinite(new.value)
    assert new.value < now.value


def test_the_curvature_of_a_function_need_not_be_that_at_zero():
    # e^x − yx: the curvature is 1 at 0 and y at the optimum.
    Y = np.random.default_rng(3).uniform(5, 500, (6, 5))
    box = bf.Function(lambda X: float(np.sum(np.exp(X) - Y * X)), lambda X: np.exp(X) - Y, (6, 5))
    result = bf.solve(bf.Objective(box, Ridge(1.0)), 5, NuclearNorm(), tol=1e-9, max_iter=3000)
    same = bf.Problem(bf.losses.Poisson(), bf.operators.Full((6, 5)), Y, penalty=Ridge(1.0))
    assert result.status.converged
    assert result.objective == pytest.approx(bf.solve(same, 5, PCG(), rng=0, tol=1e-10).objective, rel=1e-8)


def test_a_heavy_ridge_leaves_nothing(make_problem):
    for dtype in DTYPES:
        plain = make_problem(14, 11, dtype=dtype)
        for heavy in (1.001, 1e3):
            problem = plain.penalized(Ridge(heavy * top_of(plain)))
            for start in (None, bf.inits.Random(10.0)):
                result = bf.solve(problem, 3, NuclearNorm(), start, rng=2)
                assert result.status is bf.Status.GRADIENT
                assert not result.matrix().any()
        light = bf.solve(plain.penalized(Ridge(0.9 * top_of(plain))), 3, NuclearNorm())
        assert light.matrix().any()


def test_a_step_to_nothing_is_not_the_end():
    # From −5/4 and with L = 9/5, the first step leads to 0 exactly; the optimum is 2/5.
    problem = bf.Problem(bf.losses.Squared(), bf.operators.Full((1, 1)), [1.0], penalty=Ridge(0.6))
    root = 1.25**0.5
    result = bf.solve(problem, 1, NuclearNorm(), bf.inits.Given([[root]], [[-root]]), tol=1e-10)
    assert result.history.objective[1] == 0.5
    np.testing.assert_allclose(result.matrix(), [[0.4]], rtol=1e-6)


def test_weighted_sides_only_scale_the_factors(make_problem):
    plain = make_problem(14, 11)
    one, two = (
        bf.solve(plain.penalized(Ridge(rho)), 11, NuclearNorm(), max_iter=30, tol=0) for rho in (1.0, (0.25, 4.0))
    )
    np.testing.assert_allclose(two.matrix(), one.matrix(), atol=1e-9)
    np.testing.assert_allclose(two.history.objective, one.history.objective, rtol=1e-10)
    np.testing.assert_allclose(np.linalg.norm(two.U), 4 * np.linalg.norm(two.V), rtol=1e-10)


def test_too_few_columns_give_the_best_thresholding_of_that_rank(make_problem):
    problem = make_problem(25, 20, rank=6, observed=0.8, penalty=Ridge(0.5))
    whole = bf.solve(problem, 20, NuclearNorm(), tol=1e-9)
    assert np.linalg.matrix_rank(whole.matrix(), tol=1e-6) > 4
    f, gradient = of_entries(problem)
    values = []
    for rank in (1, 3):
        result = bf.solve(problem, rank, NuclearNorm(), tol=1e-10, max_iter=5000)
        assert result.status.converged
        X = result.matrix()
        again = soft(X - gradient(X) / problem.smoothness, 0.5 / problem.smoothness, rank)
        assert np.linalg.norm(again - X) <= 1e-6 * np.linalg.norm(X)
        assert result.objective == pytest.approx(f(X) + 0.5 * np.linalg.norm(X, "nuc"), rel=1e-12)
        values.append(result.objective)
    assert f(np.zeros((25, 20))) > values[0] > values[1] > whole.objective


def test_from_a_solution_it_ends_at_once(make_problem, loss):
    problem = make_problem(20, 15, loss=loss)
    problem = problem.penalized(Ridge((0.05 * top_of(problem), 0.2 * top_of(problem))))
    first = bf.solve(problem, 15, NuclearNorm(), tol=1e-10, max_iter=5000)
    again = bf.solve(problem, 15, NuclearNorm(), bf.inits.Given(first.U, first.V), tol=1e-7)
    assert again.n_iter <= 4
    assert again.status.converged
    assert again.objective == pytest.approx(first.objective, rel=1e-10)


def test_the_first_rank_does_not_matter(make_problem):
    # Where not all columns are in use, the others change nothing.
    problem = make_problem(30, 20, penalty=Ridge(6.0))
    results = [bf.solve(problem, rank, NuclearNorm(), tol=1e-10) for rank in (6, 13, 20)]
    assert np.count_nonzero(np.linalg.norm(results[0].U, axis=0)) < 6
    for result in results:
        assert result.certificate.optimal(1e-6)
        np.testing.assert_allclose(result.matrix(), results[0].matrix(), atol=1e-6)


@pytest.mark.parametrize("dtype", DTYPES)
def test_laws(make_problem, sensing, dtype):
    check_solver(NuclearNorm(), sensing(dtype=dtype, noise=0.1, penalty=Ridge((0.5, 1.0))), rank=4)
    check_solver(NuclearNorm(0.7), make_problem(12, 17, dtype=dtype, penalty=Ridge(1.0)), rank=12)
    check_solver(NuclearNorm(), make_problem(12, symmetric=True, dtype=dtype, penalty=Ridge((0.5, 1.0))), rank=6)


@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
def test_single_precision(make_problem, dtype):
    double = np.result_type(dtype, np.float64)
    single, exact = (make_problem(25, 20, dtype=d, noiseless=True, penalty=Ridge(2.0)) for d in (dtype, double))
    results = [bf.solve(each, 20, NuclearNorm(), tol=1e-8, max_iter=1000) for each in (single, exact)]
    assert results[0].U.dtype == dtype
    assert results[0].objective == pytest.approx(results[1].objective, rel=1e-4)


def test_no_data_no_matrix():
    problem = bf.Problem(bf.losses.Squared(), bf.operators.Full((5, 4)), np.zeros((5, 4)), penalty=Ridge(1.0))
    result = bf.solve(problem, 2, NuclearNorm(), rng=0)
    assert result.status is bf.Status.GRADIENT
    assert not result.matrix().any()


@pytest.mark.parametrize("shape", [(1, 6), (7, 1), (1, 1)])
def test_small_shapes(shape):
    X = np.random.default_rng(4).standard_normal(shape)
    problem = bf.Problem(bf.losses.Squared(), bf.operators.Full(shape), X, penalty=Ridge(0.1))
    wanted = X * (1 - 0.1 / np.linalg.norm(X))
    np.testing.assert_allclose(bf.solve(problem, 1, NuclearNorm(), tol=1e-10).matrix(), wanted, atol=1e-9)


def test_refusals(make_problem):
    entries = make_problem()
    with pytest.raises(bf.errors.InputError, match="ridge"):
        bf.solve(entries, 2, NuclearNorm())
    with pytest.raises(bf.errors.InputError, match="offsets"):
        bf.solve(
            bf.Problem(entries.loss, entries.operator, entries.y, penalty=Ridge(1.0), offsets=True), 2, NuclearNorm()
        )


@pytest.mark.parametrize("settings", [{"factor": 0.0}, {"factor": 1.0}, {"factor": "a"}, {"factor": np.nan}])
def test_bad_settings(settings):
    with pytest.raises(bf.errors.InputError):
        NuclearNorm(**settings)
