"""The ridge: a quadratic in the factors, the nuclear norm in disguise."""

import numpy as np
import pytest

import bifactor as bf
from bifactor.arrays import gaussian
from bifactor.errors import FileError, InputError
from bifactor.factors import Fixed, Free, Symmetric
from bifactor.penalties import Ridge
from bifactor.testing import check_solver

RIDGES = [Ridge(0.7), Ridge((0.3, 2.0)), Ridge([1, 5]), Ridge(np.array([0.2, 0.4]))]
DTYPES = [np.float64, np.complex128]


KINDS = pytest.mark.parametrize("kind", ["free", "symmetric", "fixed"])


def two(dtype, kind="free", m=8, n=6, r=3, seed=0):
    """A point and a direction."""
    rng = np.random.default_rng(seed)
    if kind == "fixed":
        made = Fixed(np.ones((m, 1), dtype), np.arange(2 * n).reshape(n, 2).astype(dtype))
        x, d = (made.random(rng, (m, n), r + made.fixed_columns, dtype) for _ in range(2))
        start = made.start(x.left[:, 3:], x.right[:, 3:])
        return start + made.gradient(x.left, x.right), made.gradient(d.left, d.right)
    made = Symmetric() if kind == "symmetric" else Free()
    return [made.random(rng, (m, m if kind == "symmetric" else n), r, dtype) for _ in range(2)]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("ridge", RIDGES, ids=str)
@KINDS
def test_it_is_the_sum_of_squares(ridge, dtype, kind):
    x, _ = two(dtype, kind)
    left, right = ridge.sides
    U, V = x.left, x.right
    assert ridge.evaluate(x)[0] == pytest.approx(left / 2 * np.linalg.norm(U) ** 2 + right / 2 * np.linalg.norm(V) ** 2)
    assert ridge.nuclear.sides == (left, right)
    assert ridge.nuclear.rho(Free()) == pytest.approx(np.sqrt(left * right))
    assert all(type(side) is float for side in ridge.sides)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("ridge", RIDGES, ids=str)
@KINDS
def test_along_any_curve_it_is_its_polynomial(ridge, dtype, kind):
    x, d = two(dtype, kind)
    c = ridge.polynomial(x, d)
    assert c.shape == (5,)
    for a in (-3.0, 0.0, 1e-3, 0.4, 7.0):
        assert np.polynomial.polynomial.polyval(a, c) == pytest.approx(ridge.evaluate(x.plus(a, d))[0])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("ridge", RIDGES, ids=str)
@KINDS
def test_derivatives_by_differences(ridge, dtype, kind):
    x, d = two(dtype, kind)
    h = 1e-4
    (ahead, up), (behind, down) = (ridge.evaluate(x.plus(s, d)) for s in (h, -h))
    assert ridge.evaluate(x)[1].inner(d) == pytest.approx((ahead - behind) / (2 * h), rel=1e-8)
    got, wanted = ridge.hessian(x, d), (1 / (2 * h)) * (up - down)
    for side, other in ((got.left, wanted.left), (got.right, wanted.right)):
        np.testing.assert_allclose(side, other, rtol=1e-8, atol=1e-10)


def test_one_number_is_the_same_on_both_sides():
    x, d = two(np.float64)
    one, other = Ridge(0.6), Ridge((0.6, 0.6))
    assert one.sides == other.sides
    np.testing.assert_array_equal(one.polynomial(x, d), other.polynomial(x, d))
    assert one.nuclear.rho(Free()) == pytest.approx(0.6, rel=1e-15)


def test_where_x_is_uu_both_sides_weigh_one_trace():
    x, _ = two(np.complex128, "symmetric")
    for ridge in RIDGES:
        weight = ridge.nuclear.rho(x.kind)
        assert ridge.evaluate(x)[0] == pytest.approx(weight * np.trace(x.left @ x.right.conj().T).real)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("ridge", RIDGES, ids=str)
def test_the_least_over_all_factorisations_is_the_nuclear_norm(ridge, dtype):
    rng = np.random.default_rng(0)
    x, _ = two(dtype)
    U, V = x.left, x.right
    rho = ridge.nuclear.rho(Free())
    nuclear = rho * np.linalg.svd(U @ V.conj().T, compute_uv=False).sum()
    assert bf.metrics.nuclear_norm(U, V) * rho == pytest.approx(nuclear)
    for _ in range(50):
        R = gaussian(rng, (3, 3), dtype) + np.eye(3)
        assert ridge.evaluate(x.times(R, np.linalg.inv(R).conj().T))[0] >= nuclear * (1 - 1e-12)
    # Balanced factors, each scaled to what its own side costs, attain it.
    A, B = bf.metrics.balanced(U, V)
    np.testing.assert_allclose(A @ B.conj().T, U @ V.conj().T, atol=1e-12)
    left, right = ridge.sides
    t = (right / left) ** 0.25
    assert ridge.evaluate(x.kind.pair(t * A, B / t))[0] == pytest.approx(nuclear, rel=1e-12)


@pytest.mark.parametrize(
    "rho", [0, -1.0, np.nan, np.inf, 1e200, "1", b"1", True, None, 1j, {}, [], (1,), (1, 2, 3), (1, 0), (1, -1)]
)
def test_what_is_no_ridge_is_refused(rho):
    with pytest.raises(InputError, match="rho"):
        Ridge(rho)


@pytest.mark.parametrize("rho", [(True, 1), (1, "1"), (np.nan, 1), (1, np.inf), (None, 1), np.ones((2, 2)), np.ones(3)])
def test_what_is_no_ridge_on_one_side_is_refused(rho):
    with pytest.raises(InputError, match="rho"):
        Ridge(rho)


def test_a_problem_takes_penalties_only(make_problem):
    problem = make_problem(6, 5)
    for bad in (0.5, Ridge, "ridge", bf.penalties.balance.Frobenius()):
        with pytest.raises(InputError, match="penalty"):
            bf.Problem(problem.loss, problem.operator, problem.y, penalty=bad)
        with pytest.raises(InputError, match="penalty"):
            bf.Objective(bf.Function(lambda X: 0.0, lambda X: X, (3, 3)), penalty=bad)


SOLVERS = [
    bf.solvers.BFGD(balance=None),
    bf.solvers.BFGD(bf.steps.Backtracking(), None),
    bf.solvers.ScaledGD(),
    bf.solvers.PCG(),
    bf.solvers.Newton(),
    bf.solvers.RankContinuation(),
    bf.solvers.RidgeHomotopy(),
    bf.solvers.Race(),
]
CASES = [(solver, symmetric) for solver in SOLVERS for symmetric in (False, True)]
CASES.append((bf.solvers.FGD(bf.steps.Backtracking()), True))


@pytest.mark.parametrize(("solver", "symmetric"), CASES, ids=lambda s: str(s).partition("(")[0])
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_solver_minimises_f_and_the_ridge(make_problem, solver, symmetric, dtype):
    ridge = Ridge((0.5, 1.5))
    problem = make_problem(15, 15, dtype=dtype, symmetric=symmetric, penalty=ridge)
    if not isinstance(
        solver, bf.solvers.Race
    ):  # which may be at the start of its second solver after twenty iterations
        check_solver(solver, problem, rank=2)
    states = []
    result = bf.solve(problem, 2, solver, rng=0, max_iter=100, tol=0, callback=lambda t, s: states.append(s))
    for s in states:  # in every stage
        f, GV, GhU, _ = problem.f.evaluate(s.point.x)
        h, slope = ridge.evaluate(s.point.x)
        assert s.point.f == pytest.approx(f, rel=1e-9)
        assert s.value == pytest.approx(f + h, rel=1e-9)
        wanted = s.point.x.gradient(GV, GhU) + slope
        assert (s.point.gradient - wanted).norm() <= 1e-9 * (1 + wanted.norm())
    x = problem.kind.pair(result.U, result.V)
    assert result.objective == pytest.approx(problem.f.value(x) + ridge.evaluate(x)[0], rel=1e-12)


def test_solvers_agree_on_the_least(make_problem, loss):
    # With as many columns as X may have directions, no minimum but the least is left.
    problem = make_problem(10, 7, loss=loss).penalized(Ridge((0.8, 1.2)))
    solvers = bf.solvers.PCG(), bf.solvers.Newton(), bf.solvers.BFGD(bf.steps.Backtracking(), None)
    ends = [bf.solve(problem, 7, s, rng=0, tol=1e-9, max_iter=3000).objective for s in solvers]
    np.testing.assert_allclose(ends, ends[0], rtol=1e-6)


def test_the_default_keeps_the_balance_that_the_ridge_asks_for(make_problem):
    problem = make_problem().penalized(Ridge((0.5, 2.0)))
    result = bf.solve(problem, 2, rng=0, tol=1e-10)
    UU, VV = (F.T @ F for F in (result.U, result.V))
    np.testing.assert_allclose(0.5 * UU, 2.0 * VV, atol=1e-4 * np.linalg.norm(UU))
    x = problem.kind.pair(result.U, result.V)
    assert problem.f.value(x) + problem.penalties[0].evaluate(x)[0] == pytest.approx(result.objective, rel=1e-12)


def test_a_heavy_ridge_leaves_nothing(make_problem):
    problem = make_problem(20, 14)
    top = np.linalg.norm(problem.gradient_at_zero() @ np.eye(14), 2)
    for solver in (None, bf.solvers.Newton(), bf.solvers.RidgeHomotopy(), bf.solvers.RankContinuation()):
        result = bf.solve(problem.penalized(Ridge(1.01 * top)), 3, solver, rng=0, tol=1e-10)
        assert np.linalg.norm(result.matrix()) <= 1e-3 * np.linalg.norm(problem.y), solver
        result = bf.solve(problem.penalized(Ridge(0.8 * top)), 3, solver, rng=0, tol=1e-10)
        assert np.linalg.norm(result.matrix()) >= 1e-2 * np.linalg.norm(problem.y), solver


def test_a_checkpoint_of_another_ridge_is_refused(make_problem, tmp_path):
    path = tmp_path / "run"
    problem = make_problem()
    bf.solve(problem.penalized(Ridge(0.5)), 2, rng=0, max_iter=5, checkpoint=path)
    for other in (None, Ridge(0.6), Ridge((0.5, 0.6))):
        with pytest.raises(FileError, match="another problem"):
            bf.solve(problem.penalized(other), 2, bf.solvers.PCG(), rng=0, max_iter=9, checkpoint=path)
    assert bf.solve(problem.penalized(Ridge(0.5)), 2, rng=0, max_iter=9, checkpoint=path).n_iter == 9


def test_another_penalty_is_another_problem_and_leaves_the_first_alone(make_problem):
    problem = make_problem()
    x = problem.kind.pair(*problem.truth)
    other = problem.penalized(Ridge(1.0))
    assert problem.penalties == ()
    assert other.penalized(None).penalties == ()
    assert other.f.value(x) == problem.f.value(x)
    assert other.operator is problem.operator


def test_an_array_of_no_dimensions_is_refused_in_words():
    with pytest.raises(InputError, match="rho"):
        Ridge(np.array(1.0))
