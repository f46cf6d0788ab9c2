"""Alternating minimisation, beside least squares on dense matrices."""

import tracemalloc

import numpy as np
import pytest

import bifactor as bf
from bifactor.arrays import gaussian, herm
from bifactor.solvers import PCG, altmin
from bifactor.solvers.altmin import AltMin
from bifactor.testing import check_solver

DTYPES = [np.float32, np.float64, np.complex64, np.complex128]


def zero_of(slope, shape, dtype):
    """Where an affine map of factors is 0, by its matrix, column by column; real and imaginary parts apart."""

    def at(x):
        return np.ascontiguousarray(slope(x.view(dtype).reshape(shape))).ravel().view(np.float64)

    size = 2 * np.prod(shape) if np.issubdtype(dtype, np.complexfloating) else np.prod(shape)
    b = at(np.zeros(size))
    H = np.array([at(e) - b for e in np.eye(size)]).T
    return np.linalg.lstsq(H, -b)[0].view(dtype).reshape(shape)


def first(gradient, shape, rank, dtype):
    """The leading left singular vectors of A*(y)."""
    return np.linalg.svd(-gradient(np.zeros(shape, dtype)))[0][:, :rank]


def naive(gradient, U, n, ridges=(0.0, 0.0)):
    """V ← argmin f(UVᴴ), U ← argmin f(UVᴴ)."""
    dtype, r = U.dtype, U.shape[1]
    while True:
        V = zero_of(lambda V, U=U: herm(gradient(U @ herm(V))) @ U + ridges[1] * V, (n, r), dtype)
        U = zero_of(lambda U, V=V: gradient(U @ herm(V)) @ V + ridges[0] * U, U.shape, dtype)
        yield U @ herm(V)


def compare(problem, rank, dense, follow, dtype=np.float64, steps=5):
    gradient = dense(problem)[1]
    U = first(gradient, problem.shape, rank, dtype)
    follow(problem, rank, AltMin(), naive(gradient, U, problem.shape[1]), steps=steps)


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_iterates_of_sensing(sensing, dense, follow, dtype):
    compare(sensing(m=9, n=8, noise=0.1, dtype=dtype), 2, dense, follow, dtype)


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_iterates_of_completion(make_problem, dense, follow, dtype):
    for shape in ((14, 11), (11, 14)):
        compare(make_problem(*shape, observed=0.8, dtype=dtype), 3, dense, follow, dtype)


def test_weights_count(make_problem, dense, follow):
    plain = make_problem(14, 11, observed=0.8)
    w = np.random.default_rng(5).uniform(0.1, 3.0, plain.y.size)
    compare(bf.Problem(plain.loss, plain.operator, plain.y, w), 2, dense, follow)


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_rows_are_solved_in_pieces_where_their_blocks_would_be_large(make_problem, dense, follow, dtype, monkeypatch):
    monkeypatch.setattr(altmin, "LARGEST", 0)
    compare(make_problem(14, 11, observed=0.8, dtype=dtype), 3, dense, follow, dtype)


@pytest.mark.parametrize("rank", [2, 8])
def test_each_side_is_measured_once_however_many_columns(make_problem, monkeypatch, rank):
    problem, passes = make_problem(60, 40), []
    forward = problem.operator.forward
    state = AltMin().init(problem, bf.inits.Random()(problem, rank, np.random.default_rng(1)), rank)
    monkeypatch.setattr(problem.operator, "forward", lambda *args: passes.append(1) or forward(*args))
    AltMin().step(problem, state)
    assert len(passes) == 2  # the blocks of least squares need no measurements, and the new point is one pass


def test_a_ridge_may_weigh_the_sides_differently(make_problem, sensing, dense, follow, monkeypatch):
    rng = np.random.default_rng(7)
    for large in (0, altmin.LARGEST):
        monkeypatch.setattr(altmin, "LARGEST", large)
        for plain in (make_problem(12, 9), sensing(noise=0.1)):
            problem = plain.penalized(bf.penalties.Ridge((0.5, 2.0)))
            m, n = problem.shape
            U, V = rng.standard_normal((m, 2)), rng.standard_normal((n, 2))
            theirs = naive(dense(plain)[1], U, n, (0.5, 2.0))
            follow(problem, 2, AltMin(), theirs, bf.inits.Given(U, V), steps=5)


def test_incoherence_clips_the_start_as_the_article_does(make_problem, dense, follow):
    problem = make_problem(14, 11, observed=0.8)
    gradient = dense(problem)[1]
    U = first(gradient, (14, 11), 2, np.float64)
    limit = 2 * 0.6 * np.sqrt(2 / 14)
    assert 0 < np.count_nonzero(np.abs(U) > limit) < 5
    clipped = np.linalg.qr(np.where(np.abs(U) > limit, 0.0, U))[0]
    follow(problem, 2, AltMin(incoherence=0.6), naive(gradient, clipped, 11), steps=5)


def test_incoherence_that_holds_changes_nothing(make_problem):
    problem = make_problem(14, 11)
    a, b = (bf.solve(problem, 2, s, rng=0, max_iter=5) for s in (AltMin(), AltMin(incoherence=10.0)))
    np.testing.assert_array_equal(a.U, b.U)


@pytest.mark.parametrize("dtype", DTYPES)
def test_it_recovers(make_problem, sensing, dtype):
    single = np.finfo(dtype).eps > 1e-10
    for problem in (
        make_problem(40, 30, dtype=dtype, noiseless=True),
        sensing(m=15, n=12, size=150, dtype=dtype),
    ):
        result = bf.solve(problem, 2, AltMin(), rng=1)
        assert result.status.converged
        assert result.U.dtype == result.V.dtype == dtype
        assert bf.metrics.relative_error(result.U, result.V, *problem.truth) < (1e-5 if single else 1e-7)
        assert result.n_iter < 40


def test_more_columns_than_needed_do_no_harm(sensing):
    problem = sensing(m=15, n=12, size=170)
    result = bf.solve(problem, 4, AltMin(), rng=1)
    assert bf.metrics.relative_error(result.U, result.V, *problem.truth) < 1e-5


@pytest.mark.parametrize("rank", [1, 2, 5, 12])
def test_the_objective_never_rises(make_problem, sensing, rank):
    ridge = bf.penalties.Ridge(0.3)
    for plain in (make_problem(20, 12), make_problem(12, 20, observed=0.2), sensing(m=14, n=12, noise=0.1)):
        for problem in (plain, plain.penalized(ridge)):
            values = bf.solve(problem, rank, AltMin(), bf.inits.Random(), rng=3, max_iter=30, tol=0).history.objective
            assert np.all(np.diff(values) <= 1e-13 * values[0])
            assert values[-1] < values[0]


def operators(dtype):
    rng = np.random.default_rng(11)
    shape = (16, 16)
    some = bf.operators.Entries(*np.nonzero(rng.random(shape) < 0.5), shape)
    yield some
    yield bf.operators.Full(shape)
    if dtype == np.complex128:  # real measurements of complex matrices
        yield bf.operators.Pauli(4, 150, rng=0)
        yield bf.operators.RankOne(gaussian(rng, (150, 16), dtype))
        yield bf.operators.Scaled(some, 1 + 2j)
    else:
        yield bf.operators.Noiselet(shape, 150, rng=1)
        yield bf.operators.Stacked(some, bf.operators.Noiselet(shape, 50, rng=1))


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_the_last_half_leaves_no_gradient_in_U(dtype):
    rng = np.random.default_rng(2)
    for operator in operators(dtype):
        z = operator.forward(gaussian(rng, (16, 3), dtype), gaussian(rng, (16, 3), dtype))
        problem = bf.Problem(bf.losses.Squared(), operator, z)
        start = AltMin().init(problem, bf.inits.Random()(problem, 2, rng), 2)
        state = AltMin().step(problem, start)
        after, before = (np.linalg.norm(s.point.gradient.left) for s in (state, start))
        assert after <= 1e-8 * before
        assert state.value < start.value


def test_it_agrees_with_pcg_on_a_convex_problem(make_problem, sensing):
    for problem in (
        make_problem(20, 15).penalized(bf.penalties.Ridge(1.5)),
        sensing(noise=0.3, penalty=bf.penalties.Ridge((0.2, 0.8))),
    ):
        ours, theirs = (bf.solve(problem, 8, s, rng=0, tol=1e-10) for s in (AltMin(), PCG()))
        assert ours.objective == pytest.approx(theirs.objective, rel=1e-9)
        assert ours.certificate.optimal(1e-4)


def test_the_truth_stays(make_problem):
    problem = make_problem(20, 15, noiseless=True, observed=0.8)
    result = bf.solve(problem, 2, AltMin(), bf.inits.Given(*problem.truth), max_iter=3, tol=0)
    assert bf.metrics.relative_error(result.U, result.V, *problem.truth) < 1e-12


def test_another_basis_of_the_start_gives_the_same_matrices(make_problem):
    problem, rng = make_problem(20, 15), np.random.default_rng(3)
    U, V = rng.standard_normal((20, 2)), rng.standard_normal((15, 2))
    R = np.array([[1e3, 2.0], [0.0, 1e-3]])
    a, b = (
        bf.solve(problem, 2, AltMin(), bf.inits.Given(*pair), max_iter=4, tol=0).matrix()
        for pair in ((U, V), (U @ R, V @ np.linalg.inv(R).T))
    )
    np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-8)


def test_what_was_held_is_orthonormal_but_under_a_ridge(make_problem):
    plain = make_problem(20, 15)
    free, ridge = (
        bf.solve(p, 3, AltMin(), rng=0, max_iter=2).V for p in (plain, plain.penalized(bf.penalties.Ridge(0.1)))
    )
    np.testing.assert_allclose(free.T @ free, np.eye(3), atol=1e-12)
    assert np.linalg.norm(ridge.T @ ridge - np.eye(3)) > 0.1


@pytest.mark.parametrize("large", [0, altmin.LARGEST])
def test_rows_and_columns_without_observations_stay(make_problem, large, monkeypatch):
    monkeypatch.setattr(altmin, "LARGEST", large)
    full = make_problem(12, 10, observed=0.9)
    rows, cols = full.operator.rows, full.operator.cols
    keep = (rows != 3) & (cols != 4)
    weights = np.where(rows[keep] == 5, 0.0, 1.0)  # seen, but not counted
    problem = bf.Problem(full.loss, bf.operators.Entries(rows[keep], cols[keep], (12, 10)), full.y[keep], weights)
    spectral = bf.solve(problem, 2, AltMin(), rng=0)
    assert spectral.status.converged
    assert not spectral.U[[3, 5]].any()
    assert not spectral.V[4].any()
    rng = np.random.default_rng(1)
    U, V = rng.standard_normal((12, 2)), rng.standard_normal((10, 2))
    one = bf.solve(problem, 2, AltMin(), bf.inits.Given(U, V), max_iter=1)
    fit = V.copy()  # the best V beside this U, but for the column that nothing is known of
    for j in np.unique(problem.operator.cols):
        seen = (problem.operator.cols == j) & (problem.weights > 0)
        fit[j] = np.linalg.lstsq(U[problem.operator.rows[seen]], problem.y[seen])[0]
    np.testing.assert_allclose(one.matrix()[[3, 5]], U[[3, 5]] @ fit.T, atol=1e-9)
    heavy = bf.solve(problem.penalized(bf.penalties.Ridge(1.0)), 2, AltMin(), bf.inits.Given(U, V), max_iter=2, tol=0)
    assert np.abs(heavy.U[[3, 5]]).max() < 1e-9
    assert np.abs(heavy.V[4]).max() < 1e-9


def test_pieces_make_no_difference(make_problem, monkeypatch):
    problem = make_problem(20, 15)
    whole = bf.solve(problem, 3, AltMin(), rng=0, max_iter=3)
    monkeypatch.setattr(altmin, "LARGEST", 25)  # two rows at a time
    np.testing.assert_allclose(bf.solve(problem, 3, AltMin(), rng=0, max_iter=3).U, whole.U, rtol=1e-9)


@pytest.mark.parametrize("shape", [(1, 6), (7, 1), (5, 4)])
def test_small_shapes_and_full_rank(shape):
    X = np.random.default_rng(4).standard_normal(shape)
    problem = bf.Problem(bf.losses.Squared(), bf.operators.Full(shape), X)
    np.testing.assert_allclose(bf.solve(problem, min(shape), AltMin(), rng=0).matrix(), X, atol=1e-12)


def test_no_data_no_matrix():
    problem = bf.Problem(bf.losses.Squared(), bf.operators.Full((5, 4)), np.zeros((5, 4)))
    result = bf.solve(problem, 2, AltMin(), rng=0)
    assert result.status.converged
    assert not result.matrix().any()


@pytest.mark.parametrize("dtype", DTYPES)
def test_laws(make_problem, sensing, dtype):
    for solver in (AltMin(), AltMin(incoherence=5.0)):
        problem = make_problem(15, 15, dtype=dtype)
        check_solver(solver, problem, rank=2)
        check_solver(solver, problem.penalized(bf.penalties.Ridge(0.5)), rank=2)
    check_solver(AltMin(), sensing(dtype=dtype, noise=0.1), rank=2)


def test_refusals(make_problem):
    entries = make_problem()
    for other in (
        make_problem(loss=bf.losses.Huber(1.0)),
        bf.Function(lambda X: 0.5 * np.sum(X**2), lambda X: X, (6, 5)),
    ):
        with pytest.raises(bf.errors.InputError, match="least squares"):
            bf.solve(other, 2, AltMin())
    offsets = bf.Problem(entries.loss, entries.operator, entries.y, offsets=True)
    for other in (offsets, make_problem(symmetric=True)):
        with pytest.raises(bf.errors.InputError, match="finds X = UVᴴ"):
            bf.solve(other, 2, AltMin())
    with pytest.raises(bf.errors.InputError, match="penalty"):
        bf.solve(entries.penalized(Quartic()), 2, AltMin())


class Quartic(bf.penalties.Penalty):
    curvature = (0.0, 0.0)

    def evaluate(self, x):
        return float(np.sum(x.left**4)), x.gradient(4 * x.left**3, 0 * x.right)

    def polynomial(self, x, d):
        return np.zeros(5)

    def hessian(self, x, d):
        return x.gradient(12 * x.left**2 * d.left, 0 * d.right)


@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan, "2", True])
def test_incoherence_is_a_number(bad):
    with pytest.raises(bf.errors.InputError, match="incoherence"):
        AltMin(incoherence=bad)


def test_nothing_of_the_size_of_the_matrix_is_formed():
    rng, m, n = np.random.default_rng(0), 3000, 1000
    seen = rng.choice(m * n, 60_000, replace=False)
    problem = bf.Problem(
        bf.losses.Squared(), bf.operators.Entries(seen // n, seen % n, (m, n)), rng.standard_normal(60_000)
    )
    bf.solve(problem, 5, AltMin(), rng=0, max_iter=1)
    tracemalloc.start()
    bf.solve(problem, 5, AltMin(), rng=0, max_iter=3)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < m * n * 8 / 4
