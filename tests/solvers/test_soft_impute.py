"""Soft-impute by alternating least squares, beside its formulas on dense matrices."""

import tracemalloc

import numpy as np
import pytest

import bifactor as bf
from bifactor.arrays import gaussian, herm
from bifactor.solvers import PCG
from bifactor.solvers.soft_impute import SoftImpute
from bifactor.testing import check_solver

DTYPES = [np.float32, np.float64, np.complex64, np.complex128]


def naive(filled, U, n, lam):
    """Algorithm 3.1 from U with orthonormal columns, D = I and V = 0; `filled` is X ↦ X*."""
    r = U.shape[1]
    V, D = np.zeros((n, r)), np.ones(r)
    while True:
        F = filled((U * D**2) @ herm(V))
        Bh = np.diag(D / (D**2 + lam)) @ herm(U) @ F
        V, square, Rh = np.linalg.svd(herm(Bh) * D, full_matrices=False)
        U, D = U @ herm(Rh), np.sqrt(square)
        F = filled((U * D**2) @ herm(V))
        A = F @ V @ np.diag(D / (D**2 + lam))
        U, square, Rh = np.linalg.svd(A * D, full_matrices=False)
        V, D = V @ herm(Rh), np.sqrt(square)
        yield (U * D**2) @ herm(V)


def orthonormal(m, r, dtype=np.float64):
    return np.linalg.qr(gaussian(np.random.default_rng(8), (m, r), dtype))[0]


@pytest.mark.parametrize("rho", [None, 0.3, 2.0])
@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_iterates_of_completion(make_problem, follow, dtype, rho):
    for m, n in ((14, 11), (11, 14)):
        plain = make_problem(m, n, observed=0.7, dtype=dtype)
        rows, cols = plain.operator.rows, plain.operator.cols

        def filled(X, seen=(rows, cols), y=plain.y):
            F = X.astype(y.dtype)
            F[seen] = y  # observed where observed, fitted elsewhere
            return F

        U = orthonormal(m, 3, dtype)
        problem = plain if rho is None else plain.penalized(bf.penalties.Ridge(rho))
        start = bf.inits.Given(U, np.zeros((n, 3), dtype))
        follow(problem, 3, SoftImpute(), naive(filled, U, n, rho or 0.0), start)


@pytest.mark.parametrize("rho", [None, 0.5])
def test_iterates_of_sensing(sensing, dense, follow, rho):
    plain = sensing(noise=0.1)
    gradient, L = dense(plain)[1], plain.smoothness
    m, n = plain.shape
    U = orthonormal(m, 2)
    problem = plain if rho is None else plain.penalized(bf.penalties.Ridge(rho))
    theirs = naive(lambda X: X - gradient(X) / L, U, n, (rho or 0.0) / L)
    follow(problem, 2, SoftImpute(), theirs, bf.inits.Given(U, np.zeros((n, 2))))


def test_weighted_sides_only_scale_the_factors(make_problem):
    plain = make_problem(14, 11)
    one, two = (
        bf.solve(plain.penalized(bf.penalties.Ridge(rho)), 4, SoftImpute(), max_iter=30, tol=0)
        for rho in (1.0, (0.25, 4.0))
    )
    np.testing.assert_allclose(two.matrix(), one.matrix(), rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(two.history.objective, one.history.objective, rtol=1e-10)
    np.testing.assert_allclose(np.linalg.norm(two.U), 4 * np.linalg.norm(two.V), rtol=1e-10)


def test_it_starts_as_the_article_does(make_problem):
    for dtype in DTYPES:
        problem = make_problem(14, 11, dtype=dtype)
        state = SoftImpute().init(problem, problem.zero(3), 3)
        np.testing.assert_allclose(herm(state.U) @ state.U, np.eye(3), atol=1e-5)
        assert not state.V.any()
        assert state.U.dtype == state.V.dtype == dtype


def test_iterates_are_an_svd(make_problem):
    problem = make_problem(14, 11).penalized(bf.penalties.Ridge(0.3))
    result = bf.solve(problem, 3, SoftImpute(), bf.inits.Random(), rng=1, max_iter=2)
    left, right = result.U.T @ result.U, result.V.T @ result.V
    np.testing.assert_allclose(left, np.diag(np.diag(left)), atol=1e-12)
    np.testing.assert_allclose(left, right, atol=1e-12)


@pytest.mark.parametrize("dtype", DTYPES)
def test_it_recovers(make_problem, sensing, dtype):
    single = np.finfo(dtype).eps > 1e-10
    for problem in (
        make_problem(40, 30, dtype=dtype, noiseless=True),
        sensing(m=15, n=12, size=150, dtype=dtype),
    ):
        result = bf.solve(problem, 2, SoftImpute(), rng=1, tol=1e-8)
        assert result.status.converged
        assert result.U.dtype == result.V.dtype == dtype
        assert bf.metrics.relative_error(result.U, result.V, *problem.truth) < (1e-4 if single else 1e-5)


def test_the_objective_never_rises(make_problem, sensing, loss):
    if loss.smoothness is None:
        pytest.skip("there is no majorant without a smoothness constant")
    problems = [make_problem(14, 11, loss=loss), make_problem(14, 11, loss=loss, weights=3.0)]
    problems += [sensing(noise=0.1)] if isinstance(loss, bf.losses.Squared) else []
    for plain in problems:
        for problem in (plain, plain.penalized(bf.penalties.Ridge((0.1, 0.9)))):
            for start in (None, bf.inits.Random(), bf.inits.Spectral()):
                values = bf.solve(problem, 3, SoftImpute(), start, rng=3, max_iter=40, tol=0).history.objective
                assert np.all(np.diff(values) <= 1e-13 * values[0])
                assert values[-1] < values[0]


def test_it_agrees_with_pcg_on_convex_problems(make_problem, sensing):
    for problem, rho in (
        (make_problem(14, 11), 1.0),
        (make_problem(11, 14, dtype=np.complex128), (0.5, 2.0)),
        (make_problem(14, 11, loss=bf.losses.Logistic()), 0.7),
        (sensing(m=12, n=11, noise=0.3), 0.5),
    ):
        ridge = problem.penalized(bf.penalties.Ridge(rho))
        ours = bf.solve(ridge, 11, SoftImpute(), rng=0, tol=1e-9, max_iter=5000)
        theirs = bf.solve(ridge, 11, PCG(), rng=0, tol=1e-9)
        assert ours.objective == pytest.approx(theirs.objective, rel=1e-6)
        assert ours.certificate.optimal(1e-4)


def test_of_a_whole_matrix_it_lowers_the_singular_values():
    Y = np.random.default_rng(4).standard_normal((9, 7))
    A, s, Bh = np.linalg.svd(Y, full_matrices=False)
    problem = bf.Problem(bf.losses.Squared(), bf.operators.Full((9, 7)), Y, penalty=bf.penalties.Ridge(1.5))
    result = bf.solve(problem, 7, SoftImpute(), tol=1e-12)
    assert 0 < np.count_nonzero(s > 1.5) < 7
    np.testing.assert_allclose(result.matrix(), (A * np.maximum(s - 1.5, 0)) @ Bh, atol=1e-8)


@pytest.mark.parametrize("dtype", [np.float64, np.complex64])
@pytest.mark.parametrize("start", [None, bf.inits.Spectral(), bf.inits.Random(100.0)])
def test_a_heavy_ridge_leaves_nothing(make_problem, dtype, start):
    plain = make_problem(14, 11, dtype=dtype)
    top = float(np.linalg.norm(plain.gradient_at_zero() @ np.eye(11, dtype=dtype), 2))
    for heavy in (1.3, 1e3):
        problem = plain.penalized(bf.penalties.Ridge(heavy * top))
        result = bf.solve(problem, 3, SoftImpute(), start, rng=2)
        assert result.status is bf.Status.GRADIENT
        assert np.abs(result.matrix()).max() < 10 * np.finfo(dtype).eps
        assert np.all(np.isfinite(result.U))
    light = bf.solve(plain.penalized(bf.penalties.Ridge(0.9 * top)), 3, SoftImpute(), start, rng=2)
    assert light.matrix().any()
    assert light.certificate.optimal(1e-2)


def test_a_faint_start_is_not_taken_for_an_end(make_problem):
    problem = make_problem(14, 11).penalized(bf.penalties.Ridge(4.0))
    faint = bf.solve(problem, 3, SoftImpute(), bf.inits.Random(1e-25), rng=2, tol=1e-9)
    assert faint.objective == pytest.approx(bf.solve(problem, 3, SoftImpute(), tol=1e-9).objective, rel=1e-8)


def test_columns_of_zeros(make_problem):
    U, V = (gaussian(np.random.default_rng(k), (k, 3), np.float64) * [1.0, 0.0, 1.0] for k in (14, 11))
    plain = make_problem(14, 11)
    for problem in (plain, plain.penalized(bf.penalties.Ridge(0.5))):
        result = bf.solve(problem, 3, SoftImpute(), bf.inits.Given(U, V), max_iter=300)
        assert result.status is not bf.Status.DIVERGED
        # Without a ridge the third direction is found; with one it has no length to begin with.
        assert np.linalg.matrix_rank(result.matrix(), 1e-6) == (3 if problem is plain else 2)


def test_more_columns_than_the_matrix_has(make_problem):
    X = np.random.default_rng(4).standard_normal((8, 1)) @ np.ones((1, 6))
    result = bf.solve(bf.Problem(bf.losses.Squared(), bf.operators.Full((8, 6)), X), 6, SoftImpute())
    np.testing.assert_allclose(result.matrix(), X, atol=1e-10)


@pytest.mark.parametrize("shape", [(1, 6), (7, 1), (5, 4)])
def test_small_shapes_and_full_rank(shape):
    X = np.random.default_rng(4).standard_normal(shape)
    problem = bf.Problem(bf.losses.Squared(), bf.operators.Full(shape), X)
    np.testing.assert_allclose(bf.solve(problem, min(shape), SoftImpute()).matrix(), X, atol=1e-10)


def test_no_data_no_matrix():
    problem = bf.Problem(bf.losses.Squared(), bf.operators.Full((5, 4)), np.zeros((5, 4)))
    for penalty in (None, bf.penalties.Ridge(1.0)):
        result = bf.solve(problem.penalized(penalty), 2, SoftImpute())
        assert result.status.converged
        assert not result.matrix().any()


def test_any_smooth_function():
    f = bf.Function(lambda X: 0.5 * float(np.sum((X - 3) ** 2)), lambda X: X - 3, (6, 5))
    np.testing.assert_allclose(bf.solve(f, 1, SoftImpute()).matrix(), 3, rtol=1e-6)


def test_nothing_of_the_size_of_the_matrix_is_formed():
    rng, m, n = np.random.default_rng(0), 3000, 1000
    seen = rng.choice(m * n, 60_000, replace=False)
    problem = bf.Problem(
        bf.losses.Squared(),
        bf.operators.Entries(seen // n, seen % n, (m, n)),
        rng.standard_normal(60_000),
        penalty=bf.penalties.Ridge(1.0),
    )
    bf.solve(problem, 5, SoftImpute(), max_iter=1)
    tracemalloc.start()
    bf.solve(problem, 5, SoftImpute(), max_iter=3)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < m * n * 8 / 4


@pytest.mark.parametrize("dtype", DTYPES)
def test_laws(make_problem, sensing, dtype):
    problem = make_problem(15, 15, dtype=dtype)
    for each in (problem, problem.penalized(bf.penalties.Ridge((0.5, 1.0))), sensing(dtype=dtype, noise=0.1)):
        check_solver(SoftImpute(), each, rank=2)


def test_refusals(make_problem):
    entries = make_problem()
    with pytest.raises(bf.errors.SmoothnessError):
        bf.solve(make_problem(loss=bf.losses.Poisson()), 2, SoftImpute())
    offsets = bf.Problem(entries.loss, entries.operator, entries.y, offsets=True)
    for other in (offsets, make_problem(symmetric=True)):
        with pytest.raises(bf.errors.InputError, match="finds X = UVᴴ"):
            bf.solve(other, 2, SoftImpute())
    with pytest.raises(bf.errors.InputError, match="penalty"):
        bf.solve(entries.penalized(Other()), 2, SoftImpute())


class Other(bf.penalties.Penalty):
    curvature = (0.0, 0.0)

    def evaluate(self, x):
        return 0.0, 0 * x

    def polynomial(self, x, d):
        return np.zeros(5)

    def hessian(self, x, d):
        return 0 * d
