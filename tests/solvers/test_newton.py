"""The Hessian in the factors is that of F, and Newton's method ends as it should."""

import numpy as np
import pytest
from scipy import sparse

import bifactor as bf
from bifactor.arrays import gaussian
from bifactor.errors import InputError
from bifactor.solvers import PCG, Newton, RankContinuation, ScaledGD
from bifactor.solvers.preconditioner import Curvature

RIDGE = bf.penalties.Ridge((0.4, 1.3))
KINDS = pytest.mark.parametrize("kind", [{}, {"symmetric": True}, {"offsets": True}], ids=["UV", "UU", "offsets"])


def pairs(problem, rank=2, seed=3, count=1, size=0.6):
    """A point at random, then directions; what the problem fixes is in place, and zero in directions."""
    rng, width = np.random.default_rng(seed), rank + problem.kind.fixed_columns
    for i in range(count):
        d = size * problem.kind.gradient(*(gaussian(rng, (k, width), problem.dtype) for k in problem.shape))
        yield d if i else problem.zero(rank) + d


def alike(got, wanted, tol):
    """Each side, entry by entry, up to a share of its norm."""
    for a, b in zip(got.arrays, wanted.arrays, strict=True):
        np.testing.assert_allclose(a, b, atol=tol * np.linalg.norm(b))


def is_the_hessian(problem, tol=1e-6, rank=2):
    """Symmetric, and the derivative of the gradient by differences; with damping, more by the Gram matrices."""
    x, d, e = pairs(problem, rank, count=3)
    H = Curvature(problem, problem.evaluate_keeping_z(x), 0.0, True)
    Hd, He = H.apply(d), H.apply(e)
    h = 1e-5
    ahead, behind = (problem.evaluate_keeping_z(x.plus(s, d)).gradient for s in (h, -h))
    alike(Hd, 1 / (2 * h) * (ahead - behind), tol)
    assert e.inner(Hd) == pytest.approx(He.inner(d), rel=1e-9, abs=1e-9 * Hd.norm() * e.norm())
    damped = Curvature(problem, problem.evaluate_keeping_z(x), 0.7, True).apply(d)
    UU, VV = x.grams()
    alike(damped - Hd, 0.7 * problem.scale * problem.kind.gradient(d.left @ VV, d.right @ UU), 1e-9)


def of_kind(problem, kind):
    """The same measurements, of other factors."""
    return bf.Problem(problem.loss, problem.operator, problem.y, problem.weights, problem.penalties, **kind)


@pytest.mark.parametrize("weights", [None, 0.7])
@pytest.mark.parametrize("penalty", [None, RIDGE])
def test_it_is_the_derivative_of_the_gradient(make_problem, loss, weights, penalty):
    for shape in ((13, 8), (8, 13)):
        is_the_hessian(make_problem(*shape, loss=loss, weights=weights).penalized(penalty))


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@KINDS
def test_every_kind_and_complex(make_problem, dtype, kind):
    for penalty in (None, RIDGE):
        is_the_hessian(of_kind(make_problem(11, 11, dtype=dtype, penalty=penalty), kind))


@KINDS
def test_every_kind_for_every_loss(make_problem, loss, kind):
    is_the_hessian(of_kind(make_problem(11, 11, loss=loss), kind))


@pytest.mark.parametrize(
    "operator",
    [bf.operators.Gaussian((8, 6), 40, rng=0), bf.operators.Noiselet((8, 4), 25, rng=0), bf.operators.Full((7, 5))],
    ids=lambda op: type(op).__name__,
)
def test_other_operators(operator):
    y = np.random.default_rng(0).standard_normal(operator.size)
    for loss in (bf.losses.Squared(), bf.losses.Huber(0.4)):
        is_the_hessian(bf.Problem(loss, operator, y, penalty=RIDGE))


def black_box(dtype=np.float64, as_sparse=False, penalty=None):
    target = gaussian(np.random.default_rng(0), (9, 7), dtype)

    def gradient(X):
        G = (X - target) / np.sqrt(1 + np.abs(X - target) ** 2)
        return sparse.csr_array(G) if as_sparse else G

    def value(X):
        return float(np.sum(np.sqrt(1 + np.abs(X - target) ** 2)))

    return bf.Objective(bf.Function(value, gradient, (9, 7), dtype=dtype), penalty)


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_a_black_box(dtype):
    is_the_hessian(black_box(dtype, penalty=RIDGE), tol=1e-5)


@pytest.mark.parametrize("full", [True, False])
@KINDS
def test_the_preconditioner_is_positive_and_symmetric(make_problem, full, kind):
    entries = make_problem(11, 11, observed=0.3, penalty=RIDGE)
    sensing = bf.Problem(bf.losses.Squared(), bf.operators.Full((6, 6)), np.eye(6))
    for problem in (of_kind(entries, kind), of_kind(sensing, kind)):
        x, d, e = pairs(problem, count=3)
        H = Curvature(problem, problem.evaluate_keeping_z(x), 0.1, full)
        Md, Me = H.divide(d), H.divide(e)
        assert d.inner(Md) > 0
        assert e.inner(Md) == pytest.approx(Me.inner(d))


@pytest.mark.parametrize("kind", [{}, {"offsets": True}], ids=["UV", "offsets"])
def test_blocks_of_observed_entries_are_those_of_the_hessian(make_problem, kind):
    # Gauss-Newton in U alone is block-diagonal, so dividing by its blocks undoes it.
    problem = of_kind(make_problem(12, 9, observed=0.8, penalty=RIDGE), kind)
    x, d = pairs(problem, count=2)
    H = Curvature(problem, problem.evaluate_keeping_z(x), 0.2, False)
    left, right = H.divide(H.apply(d.scaled(1.0, 0.0))), H.divide(H.apply(d.scaled(0.0, 1.0)))
    np.testing.assert_allclose(left.left, d.left, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(right.right, d.right, rtol=1e-5, atol=1e-6)


@KINDS
def test_gauss_newton_is_never_indefinite_and_its_equations_are_solved(make_problem, loss, kind):
    problem = of_kind(make_problem(11, 11, loss=loss), kind)
    for seed in range(3):
        (x,) = pairs(problem, seed=seed, size=1.0)
        point = problem.evaluate_keeping_z(x)
        H = Curvature(problem, point, 0.1, False)
        d = H.solve(1e-10, 500)
        Hd = H.apply(d)
        alike(Hd, -point.gradient, 1e-6)
        assert d.inner(Hd) > 0


def test_an_indefinite_hessian_is_noticed():
    problem = bf.Problem(bf.losses.Squared(), bf.operators.Full((5, 5)), 10 * np.eye(5))
    point = problem.evaluate_keeping_z(problem.kind.pair(*pairs_near_zero((5, 1))))
    assert Curvature(problem, point, 0.0, True).solve(1e-3, 50) is None
    result = bf.solve(problem, 1, Newton(), bf.inits.Given(*pairs_near_zero((5, 1))), tol=1e-9)
    assert result.objective == pytest.approx(200.0)


def pairs_near_zero(shape):
    rng = np.random.default_rng(0)
    return 1e-3 * rng.standard_normal(shape), 1e-3 * rng.standard_normal(shape)


def relative_gradient(problem, solver, rank, **options):
    result = bf.solve(problem, rank, solver, rng=0, tol=0, gradient_tol=1e-12, max_iter=100, **options)
    return result, result.history.gradient_norm / result.history.gradient_norm[0]


@pytest.mark.parametrize("name", ["Squared", "Logistic", "Probit", "Poisson"])
@pytest.mark.parametrize("seed", [0, 1])
def test_it_ends_faster_than_linearly(make_problem, name, seed):
    problem = make_problem(loss=getattr(bf.losses, name)(), seed=seed).penalized(bf.penalties.Ridge((0.8, 1.2)))
    result, left = relative_gradient(problem, Newton(), 3)
    assert result.status.converged
    start = np.flatnonzero(left > 1e-4)[-1]
    assert np.any(left[start : start + 5] < 1e-7)


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("full", [False, True])
def test_noiseless_completion_is_exact_in_few_iterations(make_problem, dtype, symmetric, full):
    problem = make_problem(30, 30, dtype=dtype, noiseless=True, symmetric=symmetric, observed=0.6)
    result, left = relative_gradient(problem, Newton(full), 2)
    assert result.n_iter <= 15
    assert left[-1] < 1e-11
    assert bf.metrics.relative_error(result.U, result.V, *problem.truth) < 1e-12


def test_it_agrees_with_conjugate_gradients(make_problem, loss):
    problem = make_problem(loss=loss).penalized(bf.penalties.Ridge(1.0))
    near = bf.solve(problem, 2, PCG(), rng=0, tol=1e-6)
    a, b, c = (
        bf.solve(problem, 2, solver, bf.inits.Given(near.U, near.V), tol=1e-9)
        for solver in (PCG(), Newton(), Newton(full=False))
    )
    assert a.objective == pytest.approx(b.objective, rel=1e-9)
    assert a.objective == pytest.approx(c.objective, rel=1e-9)
    assert b.n_iter <= a.n_iter


@pytest.mark.parametrize("as_sparse", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_a_black_box_is_minimised(dtype, as_sparse):
    problem = black_box(dtype, as_sparse, penalty=bf.penalties.Ridge(0.3))
    result, left = relative_gradient(problem, Newton(), 2)
    assert result.status.converged
    assert left[-1] < 1e-6
    assert result.objective == pytest.approx(bf.solve(problem, 2, PCG(), rng=0, tol=1e-9).objective, rel=1e-8)


def test_every_step_descends(make_problem, loss):
    for problem in (make_problem(loss=loss), make_problem(loss=loss, observed=0.15)):
        result = bf.solve(problem, 3, Newton(), bf.inits.Random(5.0), rng=0, max_iter=25, tol=0)
        objective = result.history.objective
        assert np.all(np.diff(objective) <= 1e-12 * np.abs(objective[1:]))


def test_rows_and_columns_without_data(make_problem):
    truth = np.outer(np.arange(1.0, 13), np.arange(1.0, 9))
    mask = np.random.default_rng(0).random(truth.shape) < 0.8
    mask[4], mask[:, 6] = False, False
    mask[5], mask[5, 0] = False, True
    problem = bf.Problem(bf.losses.Squared(), *bf.operators.Entries.from_dense(truth, mask))
    for rank in (1, 3):
        result = bf.solve(problem, rank, Newton(), rng=0, tol=1e-10)
        assert np.isfinite(result.U).all()
        np.testing.assert_allclose(result.matrix()[mask], truth[mask], rtol=1e-4)


@pytest.mark.parametrize("make", [lambda: Newton(full=1), lambda: Newton("no"), lambda: Newton(None)])
def test_bad_settings_are_refused(make):
    with pytest.raises(InputError, match="not a boolean"):
        make()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("solver", [Newton(), Newton(full=False), RankContinuation(Newton()), ScaledGD(), PCG()])
def test_one_factor_may_start_at_zero(make_problem, solver, dtype):
    problem = make_problem(dtype=dtype, noiseless=True)
    U, V = problem.truth
    result = bf.solve(problem, 2, solver, bf.inits.Given(0 * U, V), max_iter=200)
    assert result.objective < 1e-6 * result.history.objective[0]


def test_nothing_to_find_in_single_precision(make_problem):
    operator = make_problem(9, 6).operator
    problem = bf.Problem(bf.losses.Squared(), operator, np.zeros(operator.size, np.float32))
    for solver in (RankContinuation(Newton()), RankContinuation(Newton(full=False))):
        assert bf.solve(problem, 3, solver, rng=0).objective == 0
